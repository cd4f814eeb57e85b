// The batch log without a database: how rows are sealed so that each can be told from a changed
// one, how waiting batches are cut into pieces of the log, and how the chain is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

/// The formats of stored_batch::rows that this build reads; it writes the newest.
inline constexpr std::int64_t newest_format = 1;

/// A piece of the log is cut once it has this many bytes: a reader of one row reads one piece.
inline constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

/// The check value that the first row of a batch is chained to.
std::uint32_t first_check(const actors::chain_hash& before) noexcept;

/// Fills in the check of each framed row of `bytes` from `begin` on, chained from `check`, which
/// moves on. Yields how many rows there are; nothing when the bytes are not whole framed rows.
std::optional<std::int64_t> seal_rows(std::string& bytes, std::size_t begin, std::uint32_t& check);

/// What is wrong with a stored batch: the first row whose check does not follow, and why.
struct broken_row {
  protocol::row_number row;
  std::string sentence;
};

/// Checks what can be checked without the rules: the format, the check of each row, how many rows
/// there are and that they begin where the log goes on, and the chain.
std::optional<broken_row> find_broken(const actors::log_head& before,
                                      const actors::stored_batch& what);

/// The beginning of the chain of a store: no batch of another store fits behind it.
actors::chain_hash genesis_chain(std::string_view store_id);

/// The chain's next value: SHA-256 over the hash before, the row range, the anchor and the rows.
actors::chain_hash next_chain(const actors::chain_hash& before, const actors::stored_batch& what);

/// Turns what one transaction commits into pieces of the log behind `head`, which moves on. Nothing
/// when a batch is not whole framed rows or does not have as many as it says; `head` then is as it
/// was.
std::optional<std::vector<actors::stored_batch>> cut_pieces(
    const std::vector<const actors::batch*>& batches, actors::log_head& head);

std::string to_hex(const actors::chain_hash& hash);
std::optional<actors::chain_hash> chain_from_hex(std::string_view text);

}  // namespace leasehold::storage
