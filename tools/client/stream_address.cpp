#include <time.h>

#include <algorithm>
#include <charconv>

#include "stream_link.hpp"

namespace leasehold::client {
namespace {

struct scheme {
  std::string_view prefix;
  bool tls;
};
constexpr scheme schemes[] = {
    {"ws://", false}, {"wss://", true}, {"http://", false}, {"https://", true}};

bool is_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= 65535;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '@' && c != '?' && c != '#' && c != '"' && c != '\\';
  });
}

/// HOST[:PORT] or [V6][:PORT].
bool read_authority(std::string_view text, stream_address& into) {
  const auto closing = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  const bool v6 = closing != text.npos;
  const auto host_end = v6 ? closing + 1 : text.find(':');
  into.host = v6 ? text.substr(1, closing - 1) : text.substr(0, host_end);
  into.port = into.tls ? "443" : "80";
  if (into.host.empty() || (text.starts_with('[') && !v6)) return false;
  if (host_end == text.npos || host_end == text.size()) return true;
  if (text[host_end] != ':') return false;
  into.port = text.substr(host_end + 1);
  return is_port(into.port);
}

}  // namespace

std::optional<stream_address> parse_stream_address(std::string_view url) {
  const auto* found = std::find_if(std::begin(schemes), std::end(schemes),
                                   [&](const scheme& s) { return url.starts_with(s.prefix); });
  if (found == std::end(schemes) || !is_plain(url)) return std::nullopt;
  stream_address where;
  where.tls = found->tls;
  url.remove_prefix(found->prefix.size());
  const auto slash = url.find('/');
  if (!read_authority(url.substr(0, slash), where)) return std::nullopt;
  if (slash != url.npos && url.substr(slash) != "/") where.target = url.substr(slash);
  return where;
}

local_time local_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return {static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000};
}

}  // namespace leasehold::client
