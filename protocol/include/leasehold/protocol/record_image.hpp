// A record as bytes: what a checkpoint keeps of a lease, and what a base row carries.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

/// The bytes begin with their format. Equal images have equal bytes.
std::string encode_image(const fold::lease_image& image);

/// Nothing when the bytes are not a whole image of a format that this version reads.
std::optional<fold::lease_image> decode_image(std::string_view bytes);

/// The attachment of a base row: the lease as a whole, its policy, and a hash over both, so that it
/// can be told from another without the rows before it.
struct history_base {
  policy chosen;
  fold::lease_image image;  ///< as of the row before the base row
};
std::string encode_base(const history_base& what);
/// Nothing when the bytes are not whole or the hash is not theirs.
std::optional<history_base> decode_base(std::string_view bytes);
/// The base row of a lease, framed.
std::string encode_base_row(const lease_key& key, const history_base& what, instant at);

/// The first field of two records that differs, by its name in record.hpp; "" when they are equal.
std::string_view first_difference(const record& a, const record& b);

}  // namespace leasehold::protocol
