#include "src/postgres_epoch_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace leasehold::server {
namespace {

using actors::store_error;
using std::chrono::milliseconds;
using storage::epoch_state;

storage::postgres_limits limits_of(protocol::duration term) {
  // Whoever asks once more in time has the lease; whoever waits for an answer may not.
  const milliseconds half{std::clamp<std::int64_t>(term.ms / 2, 1000, 10'000)};
  storage::postgres_limits out;
  out.connect = milliseconds{2000};
  out.statement = half;
  out.lock = half;
  out.answer = half + milliseconds{500};
  return out;
}

/// Nobody has taken it yet: there is no row to the keeper. A holder whose term is not known waits
/// as long as ours.
std::optional<epoch_row> row_of(const epoch_state& found, protocol::duration own_term) {
  if (found.epoch == 0) return std::nullopt;
  epoch_row out{.epoch = found.epoch, .renewal = found.renewals, .released = found.released};
  out.by = {found.owner, found.address, term_in(found.owner).value_or(own_term)};
  return out;
}

epoch_state state_of(const std::optional<epoch_row>& row) {
  if (!row) return {};
  return {.epoch = row->epoch,
          .owner = row->by.holder,
          .address = row->by.active,
          .renewals = row->renewal,
          .released = row->released};
}

}  // namespace

std::string holder_name(std::string_view process, protocol::duration term) {
  return std::string(process) + "-" + std::to_string(term.ms);
}

std::optional<protocol::duration> term_in(std::string_view holder) {
  const auto dash = holder.rfind('-');
  if (dash == holder.npos) return std::nullopt;
  const auto digits = holder.substr(dash + 1);
  protocol::duration out;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.ms);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole && out.ms > 0 ? std::optional(out) : std::nullopt;
}

postgres_epoch_store::postgres_epoch_store(std::string url, const epoch_claim& mine)
    : access_{std::move(url), mine.holder, limits_of(mine.term)}, term_(mine.term) {}

std::optional<store_error> postgres_epoch_store::connect() {
  if (db_) return std::nullopt;
  auto opened = storage::postgres_epoch::open(access_);
  if (auto* why = std::get_if<store_error>(&opened)) return std::move(*why);
  db_.emplace(std::get<storage::postgres_epoch>(std::move(opened)));
  return std::nullopt;
}

actors::store_result<std::optional<epoch_row>> postgres_epoch_store::read() {
  if (auto why = connect()) return std::move(*why);
  auto found = db_->read();
  if (auto* why = std::get_if<store_error>(&found)) return std::move(*why);
  return row_of(std::get<epoch_state>(found), term_);
}

actors::store_result<std::optional<epoch_row>> postgres_epoch_store::take(
    const std::optional<epoch_row>& seen, const epoch_claim& by) {
  if (auto why = connect()) return std::move(*why);
  auto won = db_->take(state_of(seen), by.holder, by.active);
  if (auto* why = std::get_if<store_error>(&won)) return std::move(*why);
  const auto& state = std::get<std::optional<epoch_state>>(won);
  return state ? row_of(*state, term_) : std::nullopt;
}

actors::store_result<std::optional<epoch_row>> postgres_epoch_store::renew(const epoch_row& mine) {
  if (auto why = connect()) return std::move(*why);
  auto still = db_->renew(mine.epoch);
  if (auto* why = std::get_if<store_error>(&still)) return std::move(*why);
  if (!std::get<bool>(still)) return std::optional<epoch_row>{};
  epoch_row out = mine;
  ++out.renewal;
  return std::optional(std::move(out));
}

actors::store_result<bool> postgres_epoch_store::release(const epoch_row& mine) {
  if (auto why = connect()) return std::move(*why);
  return db_->release(mine.epoch);
}

}  // namespace leasehold::server
