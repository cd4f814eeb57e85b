// Safety, row by row: what no row may do to a lease, whatever came in. Used by the random streams
// and by the walk over reachable states.
#pragma once

#include <string>

#include "leasehold/protocol/rules.hpp"

namespace leasehold {

/// Compares each row with the lease as it was before the row. The first thing that is wrong is kept
/// as a sentence.
class safety_watch final : public protocol::row_sink {
 public:
  /// From here on rows are about `lease`.
  void start(const protocol::record& lease);
  void on_row(const protocol::row& what, const protocol::record& after) override;
  /// The rows of one event end here: nothing is left half done.
  void finish(const protocol::record& lease);

  [[nodiscard]] bool ok() const noexcept { return complaint_.empty(); }
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }

 private:
  /// What the checks need to know of the lease before a row.
  struct standing {
    protocol::lease_state state = protocol::lease_state::none;
    protocol::generation gen;
    protocol::holder held_by;
    protocol::instant issued_at;
    protocol::instant acquired_at;
    protocol::instant expires_at;
    protocol::sequence renew_sequence;
    protocol::sequence progress_sequence;
    std::string progress_value;
    protocol::instant cancel_requested_at;
    protocol::instant cancel_deadline;
    protocol::instant last_sent;
    protocol::outcome terminal_result = protocol::outcome::none;
    std::string terminal_detail;
    protocol::instant next_offer_at;
    protocol::instant reconcile_deadline;
    std::int64_t attempt = 0;
    std::int64_t losses = 0;
    std::int64_t unproven = 0;
    std::size_t deferred = 0;
    bool frozen = false;

    void take(const protocol::record& lease);
    [[nodiscard]] bool same_but_deferred_and_frozen(const protocol::record& lease) const;
  };

  void check_shape(const protocol::row& what, const protocol::record& after);
  void check_generation(const protocol::row& what, const protocol::record& after);
  void check_acceptance(const protocol::row& what, const protocol::record& after);
  void check_path(const protocol::row& what, const protocol::record& after);
  void check_deadlines(const protocol::row& what, const protocol::record& after);
  void check_sequences(const protocol::row& what, const protocol::record& after);
  void check_cancel(const protocol::row& what, const protocol::record& after);
  void check_unproven(const protocol::row& what, const protocol::record& after);
  void check_freeze(const protocol::row& what, const protocol::record& after);
  void check_settled(const protocol::row& what, const protocol::record& after);
  void require(bool holds, const char* sentence, const protocol::row& what);

  standing before_;
  std::string complaint_;
};

}  // namespace leasehold
