// Words, reasons, rules and policy keys: each list is complete and says one thing once.
#include <gtest/gtest.h>

#include <set>

#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::protocol {
namespace {

TEST(Vocabulary, EventWordsGoBothWays) {
  int known = 0;
  for (int number = 0; number < 256; ++number) {
    const auto kind = static_cast<event_kind>(number);
    if (word(kind).empty()) continue;
    EXPECT_EQ(event_kind_from_word(word(kind)), kind);
    ++known;
  }
  EXPECT_EQ(known, 27);
  EXPECT_EQ(event_kind_from_word("tick"), std::nullopt);
}

TEST(Vocabulary, StateWordsGoBothWays) {
  for (int number = 0; number <= static_cast<int>(lease_state::cancelled); ++number) {
    const auto state = static_cast<lease_state>(number);
    EXPECT_EQ(lease_state_from_word(word(state)), state);
  }
}

TEST(Vocabulary, AnOutcomeOfNoneIsEmptyInAFrameAndNoneInARecord) {
  EXPECT_EQ(word(outcome::none), "");
  EXPECT_EQ(terminal_word(outcome::none), "none");
  EXPECT_EQ(outcome_from_word("none"), std::nullopt);
  for (const auto how : {outcome::success, outcome::failed, outcome::cancelled}) {
    EXPECT_EQ(outcome_from_word(word(how)), how);
    EXPECT_EQ(terminal_word(how), word(how));
  }
}

TEST(Vocabulary, DecisionWordsGoBothWays) {
  for (const auto* text : {"accepted", "applied", "ignored", "rejected", "deferred"}) {
    const auto what = decision_from_word(text);
    ASSERT_TRUE(what);
    EXPECT_EQ(word(*what), text);
  }
  EXPECT_EQ(decision_from_word("refused"), std::nullopt);
}

TEST(Reasons, HaveOneWordAndOneNumberEach) {
  std::set<std::string_view> words;
  std::set<int> numbers;
  for (const auto& entry : all_reasons()) {
    EXPECT_TRUE(words.insert(entry.word).second) << entry.word;
    EXPECT_TRUE(numbers.insert(entry.number).second) << entry.number;
    EXPECT_EQ(find_reason(entry.code), &entry);
    EXPECT_EQ(reason_from_word(entry.word), entry.code);
    EXPECT_EQ(word(entry.code), entry.word);
    EXPECT_EQ(entry.text.back(), '.');
  }
  EXPECT_EQ(find_reason(reason::none), nullptr);
  EXPECT_EQ(find_reason(static_cast<reason>(99)), nullptr);
  EXPECT_EQ(find_reason(static_cast<reason>(60000)), nullptr);
}

TEST(Reasons, AreAnErrorOnlyWhereTheyRefuse) {
  EXPECT_EQ(class_of(decision::rejected, reason::offer_declined), reason_class::permanent);
  EXPECT_EQ(class_of(decision::accepted, reason::offer_declined), reason_class::ok);
  EXPECT_EQ(class_of(decision::deferred, reason::awaiting_activation), reason_class::pending);
  EXPECT_EQ(class_of(decision::rejected, reason::lease_frozen), reason_class::retryable);
  EXPECT_EQ(http_status_of(decision::rejected, reason::offer_declined), 410);
  EXPECT_EQ(http_status_of(decision::accepted, reason::offer_declined), 200);
  EXPECT_EQ(http_status_of(decision::deferred, reason::awaiting_activation), 202);
}

TEST(Rules, HaveOneWordEach) {
  std::set<std::string_view> words;
  for (const auto rule : all_rules()) EXPECT_TRUE(words.insert(word(rule)).second) << word(rule);
  EXPECT_EQ(word(rule_id::none), "");
  for (const auto* text : {"1", "7a", "7b", "16", "ack.offered", "renew.duplicate"}) {
    EXPECT_TRUE(words.contains(text)) << text;
  }
}

TEST(PolicyKeys, ReadBackWhatTheyWrote) {
  for (const auto& key : policy_keys()) {
    policy chosen;
    EXPECT_EQ(find_policy_key(key.name), &key);
    if (key.words.empty()) {
      EXPECT_TRUE(key.set(chosen, std::int64_t{7})) << key.name;
      EXPECT_EQ(std::get<std::int64_t>(key.get(chosen)), 7);
      EXPECT_FALSE(key.set(chosen, std::string("7"))) << key.name;
      continue;
    }
    const auto bar = key.words.find('|');
    for (const auto text : {key.words.substr(0, bar), key.words.substr(bar + 1)}) {
      EXPECT_TRUE(key.set(chosen, std::string(text))) << key.name;
      EXPECT_EQ(std::get<std::string>(key.get(chosen)), text);
    }
    EXPECT_FALSE(key.set(chosen, std::string(key.words))) << key.name;
    EXPECT_FALSE(key.set(chosen, std::int64_t{0})) << key.name;
  }
  EXPECT_EQ(policy_keys().size(), 18U);
  EXPECT_EQ(find_policy_key("ttl_ms"), nullptr);
}

TEST(PolicyKeys, StartWithTheDocumentedDefaults) {
  EXPECT_EQ(find_fault(policy{}), std::nullopt);
  EXPECT_EQ(std::get<std::int64_t>(find_policy_key("lease_duration_ms")->get(policy{})), 30000);
  EXPECT_EQ(std::get<std::string>(find_policy_key("on_unresolved")->get(policy{})), "operator");
}

TEST(PolicyBounds, AreHeldToTheMillisecond) {
  constexpr std::int64_t thirty_days = 2'592'000'000;
  policy chosen;
  chosen.lease_duration = duration{thirty_days};
  EXPECT_EQ(find_fault(chosen), std::nullopt);
  chosen.lease_duration = duration{thirty_days + 1};
  EXPECT_EQ(find_fault(chosen), "lease_duration_ms must be from 1 to 2592000000, not 2592000001.");
  chosen.lease_duration = duration{1};
  EXPECT_EQ(find_fault(chosen), std::nullopt);
  chosen.lease_duration = duration{0};
  EXPECT_NE(find_fault(chosen), std::nullopt);
}

TEST(PolicyBounds, MaxLifetimeIsNoneOrAtLeastOneLease) {
  policy chosen;
  chosen.lease_duration = duration{100};
  for (const auto& [ms, fine] : {std::pair{0, true}, {99, false}, {100, true}, {101, true}}) {
    chosen.max_lifetime = duration{ms};
    EXPECT_EQ(find_fault(chosen) == std::nullopt, fine) << ms;
  }
}

}  // namespace
}  // namespace leasehold::protocol
