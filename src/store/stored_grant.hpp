// What the rows of one lease say: its grant, as the checkpoint with the rows after it has it, and
// the requests that took effect.
#pragma once

#include <optional>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/log_reader.hpp"

namespace leasehold::storage {

/// Folds `rows`, the newest first as rows_of_lease yields them, into what the checkpoint has.
/// `folded` knows the policies. An error when a row does not follow from the ones before it.
actors::store_result<actors::stored_grant> fold_grant(
    protocol::fold folded, const protocol::lease_key& key,
    std::optional<protocol::fold::lease_image> checkpoint,
    const std::vector<protocol::stored_row>& rows);

/// Reads the grant as of the lease's row `newest`, in one view of the database.
actors::store_result<actors::stored_grant> read_grant(log_reader& from,
                                                      const protocol::lease_key& key,
                                                      protocol::row_number newest);

/// Reads the requests that took effect in rows up to `newest`, written at `since` or later.
actors::store_result<std::vector<protocol::past_request>> read_requests(
    log_reader& from, const protocol::lease_key& key, protocol::row_number newest,
    protocol::generation gen, protocol::instant since);

}  // namespace leasehold::storage
