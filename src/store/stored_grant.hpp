// The grant of one lease as a store has it: its record of the checkpoint with the rows after it.
#pragma once

#include <optional>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/sqlite_reader.hpp"

namespace leasehold::storage {

/// Folds `rows`, the newest first as rows_of_lease yields them, into what the checkpoint has.
/// `folded` knows the policies. An error when a row does not follow from the ones before it.
actors::store_result<actors::stored_grant> fold_grant(
    protocol::fold folded, const protocol::lease_key& key,
    std::optional<protocol::fold::lease_image> checkpoint,
    const std::vector<protocol::stored_row>& rows);

/// Reads the grant as of the lease's row `newest`, in one view of the database.
actors::store_result<actors::stored_grant> read_grant(sqlite_reader& from,
                                                      const protocol::lease_key& key,
                                                      protocol::row_number newest);

}  // namespace leasehold::storage
