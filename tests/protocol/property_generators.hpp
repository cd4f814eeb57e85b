// How RapidCheck draws the streams of property_streams.hpp.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "tests/protocol/property_streams.hpp"

namespace leasehold {

/// 0 in `calm` of `calm + wild` draws; else from 1 up to `highest`.
inline rc::Gen<int> mostly_zero(std::size_t calm, std::size_t wild, int highest) {
  return rc::gen::weightedOneOf<int>(
      {{calm, rc::gen::just(0)}, {wild, rc::gen::inRange(1, highest + 1)}});
}

/// Mostly little time passes; now and then a deadline is near, or long over.
inline rc::Gen<int> any_time() {
  return rc::gen::weightedOneOf<int>(
      {{10, rc::gen::just(0)},
       {8, rc::gen::elementOf(std::vector<int>{1, 2, 3, 4, 5})},
       {2, rc::gen::elementOf(std::vector<int>{6, 7, 8, 9, 10, 11, 12, 13})}});
}

inline rc::Gen<choice> any_choice() {
  return rc::gen::build<choice>(
      rc::gen::set(&choice::kind, rc::gen::resize(100, rc::gen::inRange(0, 28))),
      rc::gen::set(&choice::generation,
                   rc::gen::weightedElement<int>({{30, 0}, {4, 1}, {2, 2}, {1, -1}})),
      rc::gen::set(&choice::holder, mostly_zero(14, 1, 3)),
      rc::gen::set(&choice::sequence, mostly_zero(3, 2, 4)),
      rc::gen::set(&choice::value, rc::gen::inRange(0, 2)),
      rc::gen::set(&choice::ending, rc::gen::inRange(0, 4)),
      rc::gen::set(&choice::sent, mostly_zero(12, 1, 10)), rc::gen::set(&choice::time, any_time()),
      rc::gen::set(&choice::request, mostly_zero(4, 1, 3)),
      rc::gen::set(&choice::flag, rc::gen::arbitrary<bool>()));
}

/// How a stream begins: with nothing, or some way into the life of a job, up to a cancelled job of
/// which two generations are unproven.
inline std::vector<choice> opening(int steps) {
  const choice offer{.kind = 0, .time = 13};  // when next_offer_at has come
  const choice ack{.kind = 1};
  const choice deadline{.kind = 14, .time = 10};  // a submit changes nothing but that time passes
  const choice cancel{.kind = 9};
  const std::vector<choice> all{offer, ack, deadline, offer, ack, cancel, deadline};
  return {all.begin(), all.begin() + steps};
}

inline rc::Gen<std::vector<choice>> any_stream() {
  return rc::gen::apply(
      [](int steps, std::vector<choice> random) {
        std::vector<choice> stream = opening(steps);
        stream.insert(stream.end(), random.begin(), random.end());
        return stream;
      },
      rc::gen::weightedElement<int>({{4, 0}, {1, 2}, {1, 3}, {1, 5}, {1, 6}, {1, 7}}),
      rc::gen::container<std::vector<choice>>(any_choice()));
}

inline rc::Gen<protocol::policy> any_policy() {
  return rc::gen::map(rc::gen::inRange(0, policy_count), [](int n) { return policy_number(n); });
}

}  // namespace leasehold
