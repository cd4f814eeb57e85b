// Who may say what on a stream: every principal and every kind of frame, in one table that is
// walked. Who may open a stream at all is told by the table of the HTTP API.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "support/lock_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::reason;
using frame_body = decltype(protocol::worker_frame::body);

/// A principal with the role worker.
actors::principal somebody(const char* name, const char* tenant, const char* granted) {
  actors::principal who;
  who.name = name;
  who.tenant = protocol::tenant_id{tenant};
  who.roles = {actors::role::worker};
  who.queues = who.programs = {granted};
  return who;
}

const actors::principal colleague = somebody("colleague", "t", "*");
const actors::principal narrow = somebody("narrow", "t", "other");
const actors::principal stranger = somebody("stranger", "u", "*");

/// A session of a principal, by hand.
class speaker {
 public:
  speaker(coordinator_rig& rig, const actors::principal& who, std::vector<std::string> queues = {})
      : holder{protocol::holder{who.name + "/" + std::string(32, 'c')}}, rig_(rig) {
    epoch = rig.gateway().open_session(who, session);
    protocol::hello hello;
    hello.incarnation = std::string(32, 'c');
    hello.client_name = "speaker";
    for (auto& queue : queues) hello.queues.push_back({std::move(queue), {}});
    say(std::move(hello));
  }
  std::int64_t say(frame_body body) {
    protocol::decoded_message<protocol::worker_frame> message;
    message.frames.push_back({++last_, std::move(body)});
    rig_.gateway().deliver(epoch, std::move(message), rig_.clock->now());
    rig_.settle();
    return last_;
  }
  /// The reason of the answer to a frame; none: it is not answered.
  reason tell(frame_body body) {
    const auto said = session->verdict_of(say(std::move(body)));
    return said ? said->reason : reason::none;
  }

  std::shared_ptr<memory_session> session = std::make_shared<memory_session>();
  actors::session_id epoch = 0;
  protocol::holder holder;

 private:
  coordinator_rig& rig_;
  std::int64_t last_ = 0;
};

/// A coordinator in which the worker "h" of the tenant "t" holds the job "j" of the queue "q" and
/// the lock "x" of the program "prog", each in generation 1. Without it: one that knows nothing.
class scene {
 public:
  explicit scene(bool with_things = true) {
    if (!with_things) return;
    holder_ = std::make_unique<rig_worker>(rig, "h");
    holder_->credit(1);
    submit(rig, "j");
    holder_->ack("j", 1);
    holder_->say(acquire_frame(*holder_, "x", "r1"));
    rig.settle();
  }
  coordinator_rig rig;

 private:
  std::unique_ptr<rig_worker> holder_;
};

/// A frame about a lease, as `from` would say it of the current generation.
protocol::lease_frame about(const std::string& lease, event_kind kind, const speaker& from) {
  protocol::lease_frame f;
  f.what.kind = kind;
  f.what.lease = protocol::lease_id{lease};
  f.what.gen = {1};
  f.what.from = from.holder;
  f.what.seq = {1};
  f.what.sent_at = {1'000'000};
  if (kind == event_kind::result) f.what.ending = protocol::outcome::success;
  return f;
}

protocol::acquire acquire_of(const speaker& from) {
  protocol::acquire frame;
  frame.what.kind = event_kind::acquire;
  frame.what.from = from.holder;
  frame.what.sent_at = {1'000'000};
  frame.what.request = protocol::request_id{"r2"};
  frame.name = lock_named("x");
  return frame;
}

using make_frame = frame_body (*)(const speaker&);

template <event_kind Kind>
frame_body about_the_job(const speaker& from) {
  return about("j", Kind, from);
}
template <event_kind Kind>
frame_body about_the_lock(const speaker& from) {
  return about(lock_id("x"), Kind, from);
}

/// What a frame about the things of "h" is answered with; none: it needs no answer.
struct table_row {
  const char* frame;
  make_frame make;
  reason to_colleague;  ///< of the same tenant with every grant
  reason to_narrow;     ///< of the same tenant with other grants
  reason to_stranger;   ///< of another tenant
};

constexpr auto conflict = reason::ownership_conflict;
constexpr auto forbidden = reason::forbidden;
constexpr auto unknown = reason::unknown_lease;
constexpr auto none = reason::none;

const std::array table{
    table_row{"ack", about_the_job<event_kind::ack>, conflict, forbidden, unknown},
    table_row{"decline", about_the_job<event_kind::decline>, conflict, forbidden, unknown},
    table_row{"renew", about_the_job<event_kind::renew>, conflict, forbidden, unknown},
    table_row{"progress", about_the_job<event_kind::progress>, conflict, forbidden, unknown},
    table_row{"cancel_ack", about_the_job<event_kind::cancel_ack>, conflict, forbidden, unknown},
    table_row{"result", about_the_job<event_kind::result>, conflict, forbidden, unknown},
    table_row{"release", about_the_job<event_kind::release>, conflict, forbidden, unknown},
    table_row{"ack of a lock", about_the_lock<event_kind::ack>, conflict, forbidden, unknown},
    table_row{"decline of a lock", about_the_lock<event_kind::decline>, conflict, forbidden,
              unknown},
    table_row{"renew of a lock", about_the_lock<event_kind::renew>, conflict, forbidden, unknown},
    table_row{"progress of a lock", about_the_lock<event_kind::progress>, conflict, forbidden,
              unknown},
    table_row{"cancel_ack of a lock", about_the_lock<event_kind::cancel_ack>, conflict, forbidden,
              unknown},
    table_row{"result of a lock", about_the_lock<event_kind::result>, conflict, forbidden, unknown},
    table_row{"release of a lock", about_the_lock<event_kind::release>, conflict, forbidden,
              unknown},
    table_row{"acquire", [](const speaker& from) -> frame_body { return acquire_of(from); },
              reason::already_held, forbidden, reason::acquired},
    table_row{"stop_waiting",
              [](const speaker&) -> frame_body {
                return protocol::stop_waiting{lock_named("x"), 1};
              },
              none, forbidden, none},
    table_row{"register_process",
              [](const speaker& from) -> frame_body {
                return protocol::process_registration{
                    protocol::lease_id{"j"},
                    {1},
                    from.holder,
                    {"linux", 4242, "11111111-2222-3333-4444-555555555555", 77, 4242}};
              },
              reason::holder_mismatch, forbidden, unknown},
    // Hello names the queues; a credit for any other is refused.
    table_row{"credit",
              [](const speaker& from) -> frame_body {
                return protocol::credit{from.epoch, {1}, "q", 1};
              },
              forbidden, forbidden, forbidden},
    table_row{"heartbeat",
              [](const speaker&) -> frame_body { return protocol::worker_heartbeat{1}; }, none,
              none, none},
    table_row{"hello again",
              [](const speaker&) -> frame_body {
                protocol::hello again;
                again.incarnation = std::string(32, 'c');
                return again;
              },
              none, none, none},
    table_row{"goodbye",
              [](const speaker&) -> frame_body {
                return protocol::goodbye{{{protocol::lease_id{"j"}, {1}, {}}}};
              },
              conflict, forbidden, unknown},
};

TEST(FrameAccess, TheTableHasEveryKindOfFrame) {
  scene s;
  const speaker from(s.rig, colleague);
  std::set<std::size_t> bodies;
  std::set<event_kind> kinds;
  for (const table_row& row : table) {
    const auto body = row.make(from);
    bodies.insert(body.index());
    if (const auto* lease = std::get_if<protocol::lease_frame>(&body))
      kinds.insert(lease->what.kind);
  }
  EXPECT_EQ(bodies.size(), std::variant_size_v<frame_body>);
  std::set<event_kind> all;
  for (int kind = 1; protocol::is_frame(static_cast<event_kind>(kind)); ++kind) {
    all.insert(static_cast<event_kind>(kind));
  }
  EXPECT_EQ(kinds, all);
}

TEST(FrameAccess, IsWhatEachPrincipalMeets) {
  for (const table_row& row : table) {
    for (const auto& [who, expected] : {std::pair{&colleague, row.to_colleague},
                                        {&narrow, row.to_narrow},
                                        {&stranger, row.to_stranger}}) {
      scene s;
      speaker from(s.rig, *who);
      EXPECT_EQ(protocol::word(from.tell(row.make(from))), protocol::word(expected))
          << row.frame << " by " << who->name;
      // Whatever it was, the holder holds on.
      EXPECT_EQ(job(s.rig, "j")->state->held_by.value, "h/" + std::string(32, 'a'));
      for (const auto& lease : {std::string("j"), lock_id("x")}) {
        const auto seen = job(s.rig, lease);
        EXPECT_EQ(seen->state->state, protocol::lease_state::active) << row.frame;
        EXPECT_EQ(seen->state->gen.value, 1) << row.frame;
        EXPECT_EQ(seen->state->renew_sequence.value, 0) << row.frame;
      }
    }
  }
}

TEST(FrameAccess, NobodySpeaksForAnotherHolder) {
  for (const table_row& row : table) {
    scene s;
    speaker from(s.rig, colleague);
    auto body = row.make(from);
    if (auto* lease = std::get_if<protocol::lease_frame>(&body)) {
      lease->what.from.value = "h/" + std::string(32, 'a');
    } else if (auto* wanted = std::get_if<protocol::acquire>(&body)) {
      wanted->what.from.value = "h/" + std::string(32, 'a');
    } else {
      continue;
    }
    EXPECT_EQ(from.tell(std::move(body)), reason::holder_not_yours) << row.frame;
    EXPECT_FALSE(job(s.rig, "j")->state->frozen) << row.frame;
  }
}

/// All that a session of the other tenant is sent, where the things are and where nothing is.
TEST(FrameAccess, WhatIsAnothersReadsAsWhatNeverWas) {
  for (const table_row& row : table) {
    const auto hears = [&](bool with_things) {
      scene s(with_things);
      speaker from(s.rig, stranger);
      from.say(row.make(from));
      auto heard = from.session->received;
      for (auto& frame : heard) {
        // These count what happened in the process, to whomever.
        if (auto* welcome = std::get_if<protocol::welcome>(&frame.body)) welcome->session_epoch = 0;
        if (auto* said = std::get_if<protocol::frame_verdict>(&frame.body)) {
          said->epoch = 0;
          said->standing.row = {};
        }
      }
      return std::pair{heard, from.session->closed};
    };
    EXPECT_EQ(hears(true), hears(false)) << row.frame;
  }
}

TEST(FrameAccess, AQueueThatIsNotGrantedEndsTheSessionAtHello) {
  scene s;
  const speaker from(s.rig, narrow, {"q"});
  EXPECT_EQ(from.session->closed, protocol::close_code::policy);
  EXPECT_TRUE(from.session->all<protocol::welcome>().empty());
}

}  // namespace
}  // namespace leasehold::tests
