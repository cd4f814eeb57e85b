// The tables of cancellation dispatch in memory: for a program whose cancels need not outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leasehold/actors/dispatch_store.hpp"

namespace leasehold::actors {

/// Any thread may call it. `done` runs inside the call.
class memory_dispatches : public dispatch_store {
 public:
  memory_dispatches();
  ~memory_dispatches() override;
  memory_dispatches(const memory_dispatches&) = delete;
  memory_dispatches& operator=(const memory_dispatches&) = delete;

  /// The coordinator's clock. Until it is set: the newest time of a change that was applied.
  void set_clock(std::function<protocol::instant()> now);
  /// What a batch has (`batch::dispatches`), in its order.
  void apply(const std::vector<protocol::dispatch_change>& changes);

  /// The record with its token.
  [[nodiscard]] std::optional<protocol::dispatch_record> stored(
      const protocol::lease_key& key) const;
  [[nodiscard]] std::vector<protocol::dispatch_event> events_of(
      const protocol::lease_key& key) const;
  [[nodiscard]] std::optional<protocol::process_handle> handle_of(const protocol::lease_key& key,
                                                                  protocol::generation gen) const;

  store_result<protocol::instant> now() override;
  void page(dispatch_query what, then<dispatch_page> done) override;
  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<dispatch_claimed>> done) override;
  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<dispatch_reported>> done) override;
  void operate(protocol::lease_key key, protocol::dispatch_operation what,
               then<dispatch_reported> done) override;
  void find(protocol::lease_key key, then<std::optional<protocol::dispatch_record>> done) override;
  void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override;
  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override;
  void count(then<dispatch_counts> done) override;

 protected:
  /// Asked under the lock before a call, which is not done when there is a fault; and after it,
  /// when a fault takes the place of its answer.
  virtual std::optional<store_error> refuse_call() { return std::nullopt; }
  virtual std::optional<store_error> lose_answer() { return std::nullopt; }
  /// Whatever stands in the way of an event that is to be appended.
  void put_row(const protocol::dispatch_event& event);
  void remove_row(const protocol::dispatch_event& event);

 private:
  struct parts;
  template <class Said, class Ask>
  void answer(const then<Said>& done, const Ask& ask);
  template <class Answer, class Asked, class Step>
  void answer_each(const then<std::vector<Answer>>& done, const std::vector<Asked>& asked,
                   const Step& step);

  std::unique_ptr<parts> parts_;
};

}  // namespace leasehold::actors
