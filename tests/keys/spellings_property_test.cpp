// Whatever is typed: normalising twice is normalising once, and another spelling of a target is the
// same target.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <vector>

#include "src/keys/normalise.hpp"

namespace leasehold::keys {
namespace {

using protocol::lock_name;
using protocol::target_kind;
using texts = std::vector<std::string>;

std::string pick(const texts& from) { return *rc::gen::elementOf(from); }
bool toss() { return *rc::gen::arbitrary<bool>(); }

/// The normalised target; a refusal fails the property.
std::string target_of(target_kind kind, const std::string& typed) {
  const auto made = normalise({"p", kind, typed, "", ""});
  if (const auto* why = std::get_if<refusal>(&made))
    RC_FAIL(typed + " is refused: " + why->sentence);
  return std::get<lock_name>(made).target;
}

std::string joined(const texts& pieces) {
  std::string out;
  for (const auto& piece : pieces) out += piece;
  return out;
}

/// Pieces out of which targets of the kind are made, and much that is almost one.
texts pieces_of(target_kind kind) {
  switch (kind) {
    case target_kind::host:
      return {"a",        "B",
              "1",        "0x",
              ".",        "。",
              "．",       "-",
              "_",        "xn--",
              "ü",        "ß",
              "ς",        "İ",
              "Ａ",       "日",
              "א",        "\xe2\x80\x8d",
              "\xc2\xad", "bcher-kva",
              "zca",      "/",
              "::",       "%61",
              "\xff",     "e\xcc\x81",
              "--",       "क\xe0\xa5\x8d",
              "n3h",      "…",
              "ẞ",        "l",
              "·",        "・",
              "≠",        "=\xcc\xb8",
              "٠",        "۰",
              "\xcd\xb5", "α"};
    case target_kind::ip:
      return {"1", "0", "255", ".", ":", "::", "ffff", "::ffff:", "1.2.3.4", "ABCD", "%1", "/"};
    case target_kind::cidr:
      return {
          "1", "0", ".", "::", "ffff", "::ffff:", "1.2.3.4", "2001:db8::", "/", "8", "96", "12"};
    case target_kind::url:
      return {"http://", "https://", "WS://", "a",   "b.example",
              ":80",     ":443",     ":",     "/",   "//",
              ".",       "..",       "%2e",   "%2F", "%7e",
              "%",       "?",        "#",     "@",   "ü",
              "[::1]",   "1.2.3.4",  "0x1",   "&=",  "[::ffff:1.2.3.4]",
              ";",       " ",        "%C3%BC"};
    case target_kind::opaque:
      return {"a",        "e\xcc\x81", "é",  "\xe2\x84\xab", "/", "\xcc\x81",
              "\xcc\xa7", "ᄀ",        "ᅡ", "ᆨ",           "각"};
  }
  return {};
}

TEST(Spellings, NormalisingTwiceIsNormalisingOnce) {
  int accepted = 0;
  for (const auto kind : {target_kind::host, target_kind::ip, target_kind::cidr, target_kind::url,
                          target_kind::opaque}) {
    const auto pieces = pieces_of(kind);
    EXPECT_TRUE(rc::check(std::string(protocol::word(kind)), [&] {
      auto typed = joined(*rc::gen::container<texts>(rc::gen::elementOf(pieces)));
      if (kind == target_kind::url) typed.insert(0, "http://");
      const auto once = normalise({"p", kind, typed, "", ""});
      const auto* name = std::get_if<lock_name>(&once);
      if (name == nullptr) return;
      ++accepted;
      RC_ASSERT(normalise(*name) == once);
      const protocol::tenant_id tenant("t");
      const auto read = protocol::parse_canonical_key(protocol::canonical_key(tenant, *name));
      RC_ASSERT(read && read->name == *name);
    }));
  }
  EXPECT_GT(accepted, 50);
}

TEST(Spellings, BytesOfAnyKindAreAnsweredOneWayOrTheOther) {
  EXPECT_TRUE(rc::check("no bytes break it", [] {
    const auto kind = static_cast<target_kind>(*rc::gen::inRange(1, 6));
    const auto bytes = *rc::gen::arbitrary<std::string>();
    const auto made = normalise({bytes, kind, bytes, bytes, bytes});
    if (const auto* name = std::get_if<lock_name>(&made)) RC_ASSERT(normalise(*name) == made);
  }));
}

std::string any_label() {
  return pick({"a", "example", "x-1", "_srv", "xn--bcher-kva", "xn--strae-oqa", "r3---b", "0b"});
}

/// Each ASCII letter or digit as it is, in upper case, or in its full width.
std::string disguise_label(const std::string& label) {
  std::string out;
  // The reserved hyphens of r3---b are DNS's own: IDNA, which full width calls in, has them not.
  const bool may_be_wide = label != "r3---b" && label != "_srv";
  for (const char c : label) {
    const bool is_letter = c >= 'a' && c <= 'z';
    const int way = *rc::gen::inRange(0, may_be_wide ? 3 : 2);
    if (way == 1 && is_letter) {
      out += static_cast<char>(c - 'a' + 'A');
    } else if (way == 2 && is_letter) {
      // U+FF41 is the full-width a: EF BD 81.
      out += "\xef\xbd";
      out += static_cast<char>(0x81 + (c - 'a'));
    } else {
      out += c;
    }
  }
  return out;
}

TEST(Spellings, AHostIsTheSameInAnyCaseWidthAndWithAnyDots) {
  EXPECT_TRUE(rc::check("hosts", [] {
    std::string plain;
    std::string disguised;
    for (int left = *rc::gen::inRange(0, 4); left >= 0; --left) {
      const auto label = any_label();
      plain += label;
      disguised += disguise_label(label);
      if (left > 0) plain += '.';
      if (left > 0 || toss()) disguised += pick({".", "。", "．", "｡"});
    }
    RC_ASSERT(target_of(target_kind::host, disguised) == plain);
  }));
}

/// The address in full, with any number of leading zeros and in any case.
std::string write_out(const std::array<unsigned char, 16>& bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    constexpr std::string_view lower = "0123456789abcdef";
    constexpr std::string_view upper = "0123456789ABCDEF";
    std::string group;
    const unsigned value = static_cast<unsigned>(bytes[at]) << 8U | bytes[at + 1];
    for (const unsigned shift : {12U, 8U, 4U, 0U}) {
      group += (toss() ? lower : upper)[value >> shift & 15U];
    }
    while (group.size() > 1 && group.front() == '0' && toss()) group.erase(0, 1);
    out += (at == 0 ? "" : ":") + group;
  }
  return out;
}

std::array<unsigned char, 16> any_address() {
  std::array<unsigned char, 16> out{};
  for (auto& byte : out)
    byte = *rc::gen::weightedElement<unsigned char>({{5, 0}, {1, 1}, {1, 0xab}});
  if (*rc::gen::inRange(0, 4) == 0) {
    std::fill_n(out.begin(), 10, static_cast<unsigned char>(0));
    out[10] = out[11] = 0xff;
  }
  return out;
}

TEST(Spellings, AnAddressIsTheSameInEveryFormAndStaysTheSameAddress) {
  EXPECT_TRUE(rc::check("addresses", [] {
    const auto bytes = any_address();
    std::array<char, INET6_ADDRSTRLEN> systems{};
    RC_ASSERT(inet_ntop(AF_INET6, bytes.data(), systems.data(), systems.size()) != nullptr);
    const auto text = target_of(target_kind::ip, write_out(bytes));
    RC_ASSERT(target_of(target_kind::ip, systems.data()) == text);
    const bool is_four = text.find(':') == std::string::npos;
    std::array<unsigned char, 16> back{};
    const auto six = is_four ? "::ffff:" + text : text;
    RC_ASSERT(inet_pton(AF_INET6, six.c_str(), back.data()) == 1);
    RC_ASSERT(back == bytes);
  }));
}

TEST(Spellings, ANetworkIsTheSameByEachOfItsAddresses) {
  EXPECT_TRUE(rc::check("networks", [] {
    auto bytes = any_address();
    const int prefix = *rc::gen::inRange(0, 129);
    const auto suffix = "/" + std::to_string(prefix);
    const auto network = target_of(target_kind::cidr, write_out(bytes) + suffix);
    for (int bit = prefix; bit < 128; ++bit) {
      const auto mask = static_cast<unsigned char>(0x80U >> static_cast<unsigned>(bit % 8));
      if (toss()) bytes[static_cast<std::size_t>(bit / 8)] ^= mask;
    }
    RC_ASSERT(target_of(target_kind::cidr, write_out(bytes) + suffix) == network);
    if (prefix == 0) return;
    bytes[static_cast<std::size_t>((prefix - 1) / 8)] ^=
        static_cast<unsigned char>(0x80U >> static_cast<unsigned>((prefix - 1) % 8));
    RC_ASSERT(target_of(target_kind::cidr, write_out(bytes) + suffix) != network);
  }));
}

std::string disguise_segment(const std::string& segment) {
  std::string out;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    if (segment[at] == '%') {
      out += "%" + std::string(1, segment[at + 1]);
      out += toss() ? static_cast<char>(segment[at + 2] - 'A' + 'a') : segment[at + 2];
      at += 2;
    } else if (segment[at] >= 'a' && segment[at] <= 'z' && toss()) {
      constexpr std::string_view hex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(segment[at]);
      (out += '%') += hex[byte >> 4U];
      out += hex[byte & 15U];
    } else {
      out += segment[at];
    }
  }
  return out;
}

TEST(Spellings, AUrlIsTheSameWithDotSegmentsEscapesAndItsDefaultPort) {
  EXPECT_TRUE(rc::check("urls", [] {
    const bool is_safe = toss();
    const auto host = any_label() + ".example";
    std::string plain = (is_safe ? "https://" : "http://") + host;
    std::string disguised =
        pick(is_safe ? texts{"https://", "HTTPS://"} : texts{"http://", "hTTp://"});
    disguised += toss() ? host : host + ".";
    disguised += pick({"", ":", is_safe ? ":443" : ":80", is_safe ? ":0443" : ":00080"});
    for (int left = *rc::gen::inRange(1, 5); left > 0; --left) {
      const auto segment = pick({"a", "b%2F", "x;y=1", "z:@", "%3F"});
      plain += "/" + segment;
      disguised += pick({"", "/.", "/%2e", "/q/..", "/q/%2E."}) + "/" + disguise_segment(segment);
    }
    if (toss()) {
      plain += "?k=v%26&k=";
      disguised += "?" + disguise_segment("k=v") + "%26&k=";
    }
    if (toss()) disguised += "#f";
    RC_ASSERT(target_of(target_kind::url, disguised) == plain);
  }));
}

}  // namespace
}  // namespace leasehold::keys
