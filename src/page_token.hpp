// The tokens by which a list goes on: opaque to callers, and known again, so that one that was made
// up or belongs elsewhere is refused and does not quietly begin somewhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::server {

/// Goes on after `last`, the last id of a page; the empty id, the end of a list, has an empty
/// token.
std::string make_page_token(const protocol::tenant_id& tenant, std::string_view last);
/// The id that make_page_token was given; nothing when the token was not made by it.
std::optional<std::string> read_page_token(const protocol::tenant_id& tenant,
                                           std::string_view token);

}  // namespace leasehold::server
