// The dispatch port on SQLite: beside the coordinator's log, on its writer's thread, and from a
// process of its own on the same file (cancellation-dispatch.md, Who runs it).
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "leasehold/actors/dispatch_rows.hpp"
#include "leasehold/actors/store.hpp"
#include "src/store/sqlite_connection.hpp"

namespace leasehold::storage {

/// The calls that wait for one thread.
inline constexpr std::size_t most_dispatch_calls = 64;

/// One call's part in a transaction.
struct dispatch_turn {
  /// In the transaction. A fault: nothing of it counts.
  std::function<std::optional<actors::store_error>(actors::dispatch_rows&)> act;
  /// Once it is durable, or with the reason why it is not.
  std::function<void(const std::optional<actors::store_error>&)> answer;
};

/// The port, for whoever has a thread that writes and one that reads.
class sqlite_dispatch_store : public actors::dispatch_store {
 public:
  void page(actors::dispatch_query what, then<actors::dispatch_page> done) override;
  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<actors::dispatch_claimed>> done) override;
  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<actors::dispatch_reported>> done) override;
  void operate(protocol::lease_key key, protocol::dispatch_operation what,
               then<actors::dispatch_reported> done) override;
  void find(protocol::lease_key key, then<std::optional<protocol::dispatch_record>> done) override;
  void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override;
  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override;
  void count(then<actors::dispatch_counts> done) override;

 protected:
  using reading = std::function<void(actors::store_result<connection*>)>;
  /// Both false: too much waits, and nothing is called.
  virtual bool read(reading what) = 0;
  virtual bool write(dispatch_turn what) = 0;

 private:
  template <class Said>
  void read_for(then<Said> done, std::function<actors::store_result<Said>(connection&)> query);
  template <class Answer, class Asked, class Step>
  void write_each(std::vector<Asked> asked, then<std::vector<Answer>> done, Step step);
};

struct sqlite_dispatch_options {
  std::filesystem::path directory;  ///< of a store that a coordinator has made
  /// The coordinator's clock as the machine's clocks and the anchor of the newest batch tell it.
  std::function<protocol::instant(const actors::clock_anchor&)> now;
  /// How long a call waits for the coordinator's commits before it is refused as busy.
  std::chrono::milliseconds lock_wait{5000};
  /// Nothing more is written while the write-ahead log is longer: only a coordinator shortens it.
  std::int64_t most_wal_bytes = std::int64_t{1024} * 1024 * 1024;
};

/// For a process beside the coordinator, or without one. Never copies or deletes the write-ahead
/// log. What still waits when it is destroyed is not answered.
actors::store_result<std::unique_ptr<actors::dispatch_store>> open_sqlite_dispatches(
    const sqlite_dispatch_options& how);

}  // namespace leasehold::storage
