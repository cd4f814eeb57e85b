// Text as frames may carry it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::client {

/// Valid UTF-8 of at most `most` bytes: a byte that belongs to no character becomes '?', and no
/// character is cut in two.
std::string clean_text(std::string_view text, std::size_t most);

}  // namespace leasehold::client
