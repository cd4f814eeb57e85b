#include "leasehold/actors/dispatch_rows.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

namespace leasehold::actors {

namespace {

using protocol::dispatch_change;
using protocol::dispatch_event;
using protocol::dispatch_record;
using protocol::dispatch_status;
using protocol::reason;
using found_record = std::optional<dispatch_record>;

constexpr std::size_t longest_cursor = 512;

/// A record was changed although this transaction alone may write.
store_error changed_meanwhile() {
  return {store_error::kind::busy, "the dispatch was changed meanwhile; try again"};
}

std::optional<store_error> update(dispatch_rows& rows, const dispatch_record& after,
                                  std::int64_t before) {
  auto written = rows.update(after, before);
  if (auto* fault = std::get_if<store_error>(&written)) return *fault;
  if (!std::get<bool>(written)) return changed_meanwhile();
  return std::nullopt;
}

template <class Answer>
store_result<Answer> apart(dispatch_rows& rows, const std::function<store_result<Answer>()>& step) {
  if (auto fault = rows.begin_part()) return *fault;
  auto said = step();
  auto* failed = std::get_if<store_error>(&said);
  if (auto lost = rows.end_part(failed == nullptr)) return failed != nullptr ? *failed : *lost;
  if (failed == nullptr) return said;
  Answer refused;
  refused.why = reason::store_unavailable;
  return refused;
}

/// A result, or what an operator does: the record and its event are written together or not at all.
store_result<dispatch_reported> change_with_event(
    dispatch_rows& rows, const protocol::lease_key& key,
    const std::function<reason(dispatch_record&, dispatch_event&)>& judge) {
  auto read = rows.find(key);
  if (auto* fault = std::get_if<store_error>(&read)) return *fault;
  auto& found = std::get<found_record>(read);
  if (!found) return dispatch_reported{reason::unknown_dispatch, {}};
  dispatch_reported said;
  const std::int64_t before = found->version;
  dispatch_event event;
  said.why = judge(*found, event);
  if (said.why == reason::none) {
    if (auto fault = update(rows, *found, before)) return *fault;
    if (auto fault = rows.append(event)) return *fault;
  }
  said.record = std::move(*found);
  said.record.lease_token.clear();
  return said;
}

store_result<dispatch_claimed> claim(dispatch_rows& rows, const protocol::dispatch_claim& asked,
                                     protocol::instant now, const protocol::dispatch_pace& pace) {
  auto read = rows.find(asked.key);
  if (auto* fault = std::get_if<store_error>(&read)) return *fault;
  auto& found = std::get<found_record>(read);
  if (!found) return dispatch_claimed{reason::unknown_dispatch, {}, {}};
  dispatch_claimed said;
  const std::int64_t before = found->version;
  said.why = protocol::claim_dispatch(*found, asked, now, pace);
  if (said.why != reason::none) {
    found->lease_token.clear();
    said.record = std::move(*found);
    return said;
  }
  if (auto fault = update(rows, *found, before)) return *fault;
  if (asked.stage == protocol::dispatch_stage::process) {
    auto handle = rows.find_handle(asked.key, asked.gen);
    if (auto* fault = std::get_if<store_error>(&handle)) return *fault;
    said.process = std::move(std::get<std::optional<protocol::process_handle>>(handle));
  }
  said.record = std::move(*found);
  return said;
}

std::optional<store_error> open(dispatch_rows& rows, const dispatch_change& what) {
  auto read = rows.find(what.key);
  const auto* found = std::get_if<found_record>(&read);
  // One that cannot be read is there, too.
  if (found == nullptr || *found) return std::nullopt;
  auto handle = rows.find_handle(what.key, what.gen);
  if (auto* fault = std::get_if<store_error>(&handle)) return *fault;
  const auto& known = std::get<std::optional<protocol::process_handle>>(handle);
  return rows.insert(protocol::open_dispatch(what, known ? known->boot_id : ""));
}

std::optional<store_error> close(dispatch_rows& rows, const dispatch_change& what) {
  auto read = rows.find(what.key);
  if (auto* found = std::get_if<found_record>(&read)) {
    if (*found) {
      const std::int64_t before = (*found)->version;
      if (protocol::close_dispatch(**found, what)) {
        if (auto fault = update(rows, **found, before)) return fault;
      }
    }
  } else if (auto fault = rows.close_unread(what)) {
    return fault;
  }
  // The attempt is never dispatched again.
  return rows.drop_handles(what.key, what.gen);
}

std::optional<store_error> put_handle(dispatch_rows& rows, const dispatch_change& what) {
  if (auto fault = rows.put_handle(what.key, what.gen, what.process)) return fault;
  auto read = rows.find(what.key);
  auto* found = std::get_if<found_record>(&read);
  if (found == nullptr || !*found) return std::nullopt;
  const std::int64_t before = (*found)->version;
  if (!protocol::register_process(**found, what)) return std::nullopt;
  return update(rows, **found, before);
}

}  // namespace

store_result<dispatch_claimed> claim_in(dispatch_rows& rows, const protocol::dispatch_claim& asked,
                                        protocol::instant now,
                                        const protocol::dispatch_pace& pace) {
  return apart<dispatch_claimed>(rows, [&] { return claim(rows, asked, now, pace); });
}

store_result<dispatch_reported> report_in(dispatch_rows& rows,
                                          const protocol::dispatch_report& said,
                                          protocol::instant now,
                                          const protocol::dispatch_pace& pace) {
  return apart<dispatch_reported>(rows, [&] {
    return change_with_event(rows, said.key, [&](dispatch_record& record, dispatch_event& event) {
      return protocol::report_dispatch(record, said, now, pace, event);
    });
  });
}

store_result<dispatch_reported> operate_in(dispatch_rows& rows, const protocol::lease_key& key,
                                           protocol::dispatch_operation what,
                                           protocol::instant now) {
  return apart<dispatch_reported>(rows, [&] {
    return change_with_event(rows, key, [&](dispatch_record& record, dispatch_event& event) {
      return protocol::operate_dispatch(record, what, now, event);
    });
  });
}

std::optional<store_error> apply_change(dispatch_rows& rows, const dispatch_change& what) {
  switch (what.what) {
    case dispatch_change::kind::open:
      return open(rows, what);
    case dispatch_change::kind::close:
      return close(rows, what);
    case dispatch_change::kind::forget:
      return rows.forget(what.key);
    case dispatch_change::kind::handle:
      return put_handle(rows, what);
  }
  return std::nullopt;
}

bool is_claimable(const dispatch_record& record, protocol::instant now) {
  switch (record.status) {
    case dispatch_status::pending:
    case dispatch_status::retry_wait:
      return record.next_attempt_at <= now;
    case dispatch_status::leased:
      return record.lease_expires_at <= now;
    case dispatch_status::dispatched:
    case dispatch_status::blocked:
    case dispatch_status::closed:
      break;
  }
  return false;
}

bool fits(const dispatch_query& what, const dispatch_record& record, protocol::instant now) {
  const bool wanted = what.statuses.empty() ||
                      std::ranges::find(what.statuses, record.status) != what.statuses.end();
  return wanted && (!what.stage || *what.stage == record.stage) &&
         (!what.host || *what.host == record.host) &&
         (!what.tenant || *what.tenant == record.key.tenant) &&
         (!what.claimable || is_claimable(record, now));
}

dispatch_cursor cursor_after(const protocol::lease_key& key) {
  return {std::to_string(key.tenant.value.size()) + ':' + key.tenant.value + key.lease.value};
}

std::optional<protocol::lease_key> key_of(const dispatch_cursor& cursor) {
  if (cursor.after.empty()) return protocol::lease_key{};
  if (cursor.after.size() > longest_cursor) return std::nullopt;
  const char* const end = cursor.after.data() + cursor.after.size();
  std::size_t size = 0;
  const auto read = std::from_chars(cursor.after.data(), end, size);
  if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ':') return std::nullopt;
  const std::string_view rest(read.ptr + 1, end);
  if (size > rest.size()) return std::nullopt;
  return protocol::lease_key{protocol::tenant_id(std::string(rest.substr(0, size))),
                             protocol::lease_id(std::string(rest.substr(size)))};
}

std::size_t bounded_page(std::size_t limit) {
  return std::clamp<std::size_t>(limit, 1, most_dispatches);
}

store_error unknown_cursor() {
  return {store_error::kind::io, "the page token is none of a page of dispatches; begin anew"};
}

store_error too_many_dispatches() {
  return {store_error::kind::io,
          "a call takes at most " + std::to_string(most_dispatches) + " dispatches; ask in parts"};
}

store_error too_many_calls() {
  return {store_error::kind::busy, "too many calls of the dispatch tables wait; try again"};
}

}  // namespace leasehold::actors
