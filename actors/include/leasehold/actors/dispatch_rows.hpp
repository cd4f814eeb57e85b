// What a claim, a result, an operator and the coordinator do to the tables of cancellation
// dispatch, whatever keeps them (cancellation-dispatch.md, Claim and Result).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "leasehold/actors/dispatch_store.hpp"

namespace leasehold::actors {

/// The rows of the tables as the transaction of one thread sees them. A fault of one of these calls
/// has written nothing of that call.
class dispatch_rows {
 public:
  virtual ~dispatch_rows() = default;

  virtual store_result<std::optional<protocol::dispatch_record>> find(
      const protocol::lease_key& key) = 0;
  virtual std::optional<store_error> insert(const protocol::dispatch_record& made) = 0;
  /// False, and nothing is written: the stored version is not `before`.
  virtual store_result<bool> update(const protocol::dispatch_record& after,
                                    std::int64_t before) = 0;
  /// Closes a record that cannot be read.
  virtual std::optional<store_error> close_unread(const protocol::dispatch_change& what) = 0;
  virtual std::optional<store_error> append(const protocol::dispatch_event& event) = 0;

  virtual store_result<std::optional<protocol::process_handle>> find_handle(
      const protocol::lease_key& key, protocol::generation gen) = 0;
  virtual std::optional<store_error> put_handle(const protocol::lease_key& key,
                                                protocol::generation gen,
                                                const protocol::process_handle& handle) = 0;
  /// Generation 0: those of all.
  virtual std::optional<store_error> drop_handles(const protocol::lease_key& key,
                                                  protocol::generation gen) = 0;
  /// Record, events and handles.
  virtual std::optional<store_error> forget(const protocol::lease_key& key) = 0;

  /// What is written from here on can be undone alone.
  virtual std::optional<store_error> begin_part() = 0;
  /// A fault: the whole transaction is lost.
  virtual std::optional<store_error> end_part(bool keep) = 0;
};

/// Each is a part of the transaction of its own. What fails in it is undone and answered with
/// store_unavailable; an error says that the transaction is lost. `asked` of a key without a record
/// is answered with unknown_dispatch. No record that is answered has a token but a claim that was
/// made.
store_result<dispatch_claimed> claim_in(dispatch_rows& rows, const protocol::dispatch_claim& asked,
                                        protocol::instant now, const protocol::dispatch_pace& pace);
store_result<dispatch_reported> report_in(dispatch_rows& rows,
                                          const protocol::dispatch_report& said,
                                          protocol::instant now,
                                          const protocol::dispatch_pace& pace);
store_result<dispatch_reported> operate_in(dispatch_rows& rows, const protocol::lease_key& key,
                                           protocol::dispatch_operation what,
                                           protocol::instant now);

/// What the coordinator's row means. A record that is there is never made again; one of another
/// attempt is left as it is.
std::optional<store_error> apply_change(dispatch_rows& rows, const protocol::dispatch_change& what);

/// Whether a record may be claimed now.
bool is_claimable(const protocol::dispatch_record& record, protocol::instant now);
/// Whether a record is one of those that are asked for, wherever the page begins.
bool fits(const dispatch_query& what, const protocol::dispatch_record& record,
          protocol::instant now);

/// A cursor names the last key of the page before.
dispatch_cursor cursor_after(const protocol::lease_key& key);
/// Nothing: it is none of ours. The empty one is before every key.
std::optional<protocol::lease_key> key_of(const dispatch_cursor& cursor);
/// `limit` within its bounds.
std::size_t bounded_page(std::size_t limit);

/// What a call is refused with before it is tried.
store_error unknown_cursor();
store_error too_many_dispatches();
store_error too_many_calls();

}  // namespace leasehold::actors
