// Small pieces of text work that configuration files, tokens and logs share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server::config_text {

/// Parts between `separator`; empty parts are dropped.
std::vector<std::string> split(std::string_view text, char separator);

/// Text from outside, safe to show on one line of a terminal or a log: control characters, text
/// direction marks and broken UTF-8 are escaped, and at most `limit` bytes are kept.
std::string printable(std::string_view text, std::size_t limit = 256);

/// How many bytes the well-formed UTF-8 character at the start of `text` has; 0: none is there.
std::size_t utf8_length(std::string_view text) noexcept;
bool is_utf8(std::string_view text) noexcept;

std::string toml_string(std::string_view text);
std::string toml_list(std::span<const std::string> items);

}  // namespace leasehold::server::config_text
