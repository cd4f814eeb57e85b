#include "src/store/stored_grant.hpp"

#include <string>
#include <utility>

#include "leasehold/protocol/record_image.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using protocol::fold;
using protocol::row_number;
using protocol::stored_row;

/// Rows of one lease; more are not read for one conflict or one request.
constexpr std::size_t most_rows = 65'536;

store_error not_folding(const protocol::lease_key& key, row_number row) {
  return {store_error::kind::corrupt,
          "row " + std::to_string(row.value) + " of lease '" + key.lease.value +
              "' does not follow from the rows before it; 'leasehold verify' names everything that "
              "is damaged"};
}

actors::store_result<std::optional<fold::lease_image>> find_image(log_reader& from,
                                                                  const protocol::lease_key& key) {
  auto found = from.find_image(key);
  if (auto* fault = std::get_if<store_error>(&found)) return std::move(*fault);
  const auto& bytes = std::get<std::optional<std::string>>(found);
  if (!bytes) return std::optional<fold::lease_image>{};
  auto image = protocol::decode_image(*bytes);
  if (!image) return not_folding(key, {});
  return image;
}

std::optional<store_error> learn_policy(log_reader& from, protocol::policy_id id, fold& into) {
  if (id.value == 0 || into.policy_of(id) != nullptr) return std::nullopt;
  const auto found = from.find_policy(id);
  if (const auto* fault = std::get_if<store_error>(&found)) return *fault;
  if (const auto& chosen = std::get<std::optional<protocol::policy>>(found)) {
    into.learn(id, *chosen);
  }
  return std::nullopt;
}

}  // namespace

actors::store_result<actors::stored_grant> fold_grant(fold folded, const protocol::lease_key& key,
                                                      std::optional<fold::lease_image> checkpoint,
                                                      const std::vector<stored_row>& rows) {
  if (checkpoint) folded.load(key, std::move(*checkpoint));
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (folded.feed(*row)) return not_folding(key, row->row);
  }
  const auto* image = folded.find(key);
  if (image == nullptr) return actors::stored_grant{};
  return actors::stored_grant{image->state.gen, image->state.held_by};
}

actors::store_result<actors::stored_grant> read_grant(log_reader& from,
                                                      const protocol::lease_key& key,
                                                      row_number newest) {
  auto found = find_image(from, key);
  if (auto* fault = std::get_if<store_error>(&found)) return std::move(*fault);
  auto& checkpoint = std::get<std::optional<fold::lease_image>>(found);
  const row_number upto = checkpoint ? checkpoint->last_row : row_number{};
  auto read = from.rows_of_lease(key, newest, most_rows, upto);
  if (auto* fault = std::get_if<store_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<std::vector<stored_row>>(read);
  if (rows.size() == most_rows) {
    return store_error{store_error::kind::busy,
                       "the checkpoint is more than 65536 rows of one lease behind"};
  }
  fold folded;
  if (checkpoint) {
    if (auto fault = learn_policy(from, checkpoint->policy, folded)) return *fault;
  }
  for (const stored_row& row : rows) {
    if (auto fault = learn_policy(from, row.policy, folded)) return *fault;
  }
  return fold_grant(std::move(folded), key, std::move(checkpoint), rows);
}

actors::store_result<std::vector<protocol::past_request>> read_requests(
    log_reader& from, const protocol::lease_key& key, row_number newest, protocol::generation gen,
    protocol::instant since) {
  const auto before = from.row_before(since);
  if (const auto* fault = std::get_if<store_error>(&before)) return *fault;
  auto read = from.rows_of_lease(key, newest, most_rows, std::get<row_number>(before));
  if (auto* fault = std::get_if<store_error>(&read)) return std::move(*fault);
  return protocol::requests_in(std::get<std::vector<stored_row>>(read), gen);
}

}  // namespace leasehold::storage
