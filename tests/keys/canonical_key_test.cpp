// The canonical key: one text a lock, one lock a text.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "src/keys/normalise.hpp"

namespace leasehold::protocol {
namespace {

const tenant_id acme("acme");

/// Text that tries to look like other parts of a key.
rc::Gen<std::string> treacherous(std::size_t least, std::size_t most) {
  const auto byte = rc::gen::weightedOneOf<char>(
      {{4, rc::gen::elementOf(std::string("/:%2FaA.-_~ "))}, {1, rc::gen::arbitrary<char>()}});
  return rc::gen::mapcat(rc::gen::inRange(least, most + 1), [byte](std::size_t size) {
    return rc::gen::container<std::string>(size, byte);
  });
}

rc::Gen<lock_key> any_lock() {
  return rc::gen::map(
      rc::gen::tuple(
          treacherous(1, 6), treacherous(1, 6),
          rc::gen::elementOf(std::vector{target_kind::host, target_kind::ip, target_kind::cidr,
                                         target_kind::url, target_kind::opaque}),
          treacherous(1, 6), treacherous(0, 3), treacherous(0, 3)),
      [](auto parts) {
        auto& [tenant, program, kind, target, workflow, operation_class] = parts;
        return lock_key{tenant_id(tenant), {program, kind, target, workflow, operation_class}};
      });
}

std::string key_of(const lock_key& lock) { return canonical_key(lock.tenant, lock.name); }

TEST(CanonicalKey, HasItsPartsInTheirOrder) {
  EXPECT_EQ(canonical_key(acme, {"prog-1", target_kind::host, "example.com", "scan", "write"}),
            "acme/prog-1/host:example.com/scan/write");
  EXPECT_EQ(canonical_key(acme, {"p", target_kind::ip, "2001:db8::1", "", ""}),
            "acme/p/ip:2001%3Adb8%3A%3A1//");
  EXPECT_EQ(canonical_key(tenant_id("a:b"), {"p/q", target_kind::opaque, "\xc3\xa9%2F", "", "~"}),
            "a%3Ab/p%2Fq/opaque:%C3%A9%252F//~");
}

TEST(CanonicalKey, ReadsBackToItsLock) {
  EXPECT_TRUE(rc::check("a key reads back", [] {
    const auto lock = *any_lock();
    RC_ASSERT(parse_canonical_key(key_of(lock)) == lock);
  }));
}

TEST(CanonicalKey, NoPartBringsASeparatorWithIt) {
  EXPECT_TRUE(rc::check("a key has four slashes and one colon", [] {
    const auto key = key_of(*any_lock());
    RC_ASSERT(std::ranges::count(key, '/') == 4);
    RC_ASSERT(std::ranges::count(key, ':') == 1);
  }));
}

TEST(CanonicalKey, IsSharedByNoTwoLocks) {
  EXPECT_TRUE(rc::check("keys are equal where locks are", [] {
    const auto one = *any_lock();
    auto other = *any_lock();
    // Most pairs differ in everything; a part that is the same brings them near.
    if (*rc::gen::arbitrary<bool>()) other.tenant = one.tenant;
    if (*rc::gen::arbitrary<bool>()) other.name.program = one.name.program;
    if (*rc::gen::arbitrary<bool>()) other.name.kind = one.name.kind;
    if (*rc::gen::arbitrary<bool>()) other.name.target = one.name.target;
    if (*rc::gen::arbitrary<bool>()) other.name.workflow = one.name.workflow;
    if (*rc::gen::arbitrary<bool>()) other.name.operation_class = one.name.operation_class;
    RC_ASSERT((key_of(one) == key_of(other)) == (one == other));
  }));
}

TEST(CanonicalKey, WhatMovesFromOnePartIntoTheNextIsAnotherLock) {
  EXPECT_NE(canonical_key(acme, {"p", target_kind::opaque, "a/b", "c", ""}),
            canonical_key(acme, {"p", target_kind::opaque, "a", "b/c", ""}));
  EXPECT_NE(canonical_key(acme, {"p", target_kind::opaque, "a", "b", ""}),
            canonical_key(acme, {"p", target_kind::opaque, "a", "", "b"}));
  EXPECT_NE(canonical_key(acme, {"p/host:a", target_kind::host, "b", "", ""}),
            canonical_key(acme, {"p", target_kind::host, "a/host:b", "", ""}));
}

TEST(CanonicalKey, HasOneSpelling) {
  ASSERT_TRUE(parse_canonical_key("t/p/host:a/w/o"));
  ASSERT_TRUE(parse_canonical_key("t/p/host:a//"));
  for (const char* text : {"",
                           "/",
                           "////",
                           "t/p/host:a/w",
                           "t/p/host:a/w/o/",
                           "/t/p/host:a/w/o",
                           "t/p/host:a",
                           "/p/host:a//",
                           "t//host:a//",
                           "t/p/host://",
                           "t/p/:a//",
                           "t/p/a//",
                           "t/p/HOST:a//",
                           "t/p/hosts:a//",
                           "t/p/host:a:b//",
                           "t:/p/host:a//",
                           "t/p/host:a//o ",
                           "t/p/opaque:%2f//",
                           "t/p/opaque:%61//",
                           "t/p/opaque:%//",
                           "t/p/opaque:%2//",
                           "t/p/opaque:%2",
                           "t/p/opaque:a//%",
                           "t/p/opaque:%zz//",
                           "t/p/opaque:\xc3\xa9//",
                           "t/p/opaque:a?//",
                           "t/p/opaque:a//\n"}) {
    EXPECT_EQ(parse_canonical_key(text), std::nullopt) << text;
  }
}

TEST(CanonicalKey, AnyTextThatIsReadIsTheKeyOfItsLock) {
  EXPECT_TRUE(rc::check("what is read is written so", [] {
    auto text = key_of(*any_lock());
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = *rc::gen::elementOf(std::string("/:%2faF"));
    const auto lock = parse_canonical_key(text);
    if (lock) RC_ASSERT(key_of(*lock) == text);
  }));
}

TEST(CanonicalKey, IsReadUpToTheSizesOfItsParts) {
  const auto key = [](std::size_t part, std::size_t target) {
    const std::string text(part, '/');
    return canonical_key(tenant_id(text),
                         {text, target_kind::opaque, std::string(target, '/'), text, text});
  };
  EXPECT_EQ(key(128, 2048).size(), largest_canonical_key);
  EXPECT_TRUE(parse_canonical_key(key(127, 2047)));
  EXPECT_TRUE(parse_canonical_key(key(128, 2048)));
  EXPECT_FALSE(parse_canonical_key(key(129, 2048)));
  EXPECT_FALSE(parse_canonical_key(key(128, 2049)));
  EXPECT_FALSE(parse_canonical_key("t/p/opaque:a//" + std::string(129, 'o')));
}

TEST(CanonicalKey, KindsHaveOneWordEach) {
  int known = 0;
  for (int number = 0; number < 256; ++number) {
    const auto kind = static_cast<target_kind>(number);
    if (word(kind).empty()) continue;
    EXPECT_EQ(target_kind_from_word(word(kind)), kind);
    ++known;
  }
  EXPECT_EQ(known, 5);
  EXPECT_EQ(target_kind_from_word(""), std::nullopt);
  EXPECT_EQ(target_kind_from_word("Host"), std::nullopt);
}

TEST(LockLeaseId, IsTheSha256OfTheKey) {
  EXPECT_EQ(keys::lock_lease_id("abc").value,
            "k:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(keys::lock_lease_id("").value,
            "k:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace leasehold::protocol
