// The one thread that writes a PostgreSQL store. Each transaction is one flush: it begins with a
// look at the epoch and ends with its commit. One whose outcome is not known is written again under
// its key until the database says which it was.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/store/log_writer.hpp"
#include "src/store/postgres_connection.hpp"
#include "src/store/postgres_schema.hpp"
#include "src/store/postgres_store.hpp"

namespace leasehold::storage {

class postgres_writer final : public log_writer {
 public:
  /// `head`: where the log ends.
  postgres_writer(const postgres_options& how, postgres_connection db, store_facts facts,
                  actors::log_head head);
  /// Writes what still waits and ends the thread.
  ~postgres_writer() { stop(); }

 private:
  /// What one transaction does, and how it is known that it was done.
  struct work {
    /// Adds the statement that inserts its key: it fails on a second time.
    std::function<void(postgres_pipeline&)> add_key;
    std::function<void(postgres_pipeline&)> add_rest;
    /// Whether the key is there, with what we wrote.
    std::function<postgres_result<bool>(postgres_connection&)> is_there;
    bool durable = true;  ///< false: a loss of it is made good by later ones
  };
  /// How a transaction stands after a try.
  enum class outcome : std::uint8_t {
    done,
    refused,  ///< nothing of it is there, and trying again is of no use
    passing,  ///< nothing of it is there; it may pass
    unknown,  ///< it may be there
    moved,    ///< the epoch has moved: nothing of ours is on its way any more
    met_key,  ///< its key was there
  };
  struct tried {
    outcome what = outcome::done;
    std::optional<actors::store_error> fault;
  };

  std::optional<actors::store_error> write(const std::vector<actors::stored_batch>& pieces,
                                           const batches& of,
                                           const actors::log_head& after) override;
  std::optional<actors::store_error> write_records(const actors::checkpoint_slice& what,
                                                   std::size_t begin, std::size_t end,
                                                   bool finishes, store_facts& facts) override;
  actors::store_result<std::int64_t> delete_batches(protocol::row_number upto,
                                                    store_facts& facts) override;

  std::optional<actors::store_error> transact(const work& what);
  tried try_once(const work& what);
  tried send(const work& what);
  tried look_for(const work& what, outcome seen, actors::store_error fault);
  std::optional<actors::store_error> confirm();
  work marked(std::function<void(postgres_pipeline&)> rest, bool durable = true) const;
  [[nodiscard]] actors::store_error unsettled(const actors::store_error& last) const;
  [[nodiscard]] actors::store_error deposed() const;

  std::optional<actors::store_error> connect();
  std::optional<actors::store_error> check_log();
  void end_former_session();

  /// Runs a read on the writer's connection, which is opened anew once when it was lost.
  postgres_result<postgres_rows> read(std::string_view sql, const postgres_values& with);
  void insert(postgres_pipeline& into, const std::vector<actors::stored_batch>& pieces) const;
  std::optional<actors::store_error> take_from_sums(const std::vector<std::string_view>& tenants,
                                                    const std::vector<std::string_view>& leases,
                                                    store_facts& facts);

  postgres_options how_;
  std::string place_;
  std::optional<postgres_connection> db_;
  int former_pid_ = 0;       ///< of the session that was lost
  bool is_unknown_ = false;  ///< the outcome of the transaction that is being tried
  bool is_confirming_ = false;
  bool is_down_ = false;  ///< the last connection failed: the next is tried only once
};

}  // namespace leasehold::storage
