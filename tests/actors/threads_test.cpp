// The same actors on one and on three threads, with workers on each of them: every job ends once,
// and the evidence rebuilds every record.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "support/memory_store.hpp"
#include "support/threaded_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;

/// Counts down from another thread.
class latch_of_jobs {
 public:
  explicit latch_of_jobs(int jobs) : left_(jobs) {}
  void one_done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
};

/// Takes each offer, renews once, reports progress and success, out of order on purpose.
class eager_worker final : public actors::outbound,
                           public std::enable_shared_from_this<eager_worker> {
 public:
  eager_worker(threaded_rig& rig, std::size_t thread, latch_of_jobs& done)
      : rig_(rig), thread_(thread), done_(done) {}

  void start() {
    rig_.loops[thread_]->post([self = shared_from_this()] {
      actors::principal who;
      who.name = "w" + std::to_string(self->thread_);
      who.tenant = protocol::tenant_id{"t"};
      who.queues = {"*"};
      self->epoch_ = self->gateway().open_session(who, self);
      protocol::hello hello;
      hello.incarnation = std::string(32, 'a');
      hello.queues = {{"q", {}}};
      self->say({std::move(hello)});
    });
  }

  void send(std::span<const protocol::coordinator_frame> frames) override {
    for (const auto& frame : frames) {
      if (const auto* welcome = std::get_if<protocol::welcome>(&frame.body)) {
        holder_ = welcome->holder;
        say({protocol::credit{epoch_, {1}, "q", 8}});
      } else if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) {
        work(*offer);
      } else if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
        if (verdict->reason == protocol::reason::completed) done_.one_done();
      }
    }
  }
  void close(protocol::close_code, std::string_view) override {}
  void pause_reading(bool) override {}

 private:
  using body = decltype(protocol::worker_frame::body);
  actors::gateway& gateway() { return rig_.coordinator->on(thread_); }

  protocol::lease_frame frame(const protocol::offer& offer, event_kind kind, std::int64_t seq = 0) {
    protocol::lease_frame f;
    f.what.kind = kind;
    f.what.lease = offer.standing.lease;
    f.what.gen = offer.standing.gen;
    f.what.from = holder_;
    f.what.seq = {seq};
    f.what.sent_at = rig_.clock->now();
    return f;
  }

  void work(const protocol::offer& offer) {
    auto progress = frame(offer, event_kind::progress, 1);
    progress.what.value = "half";
    auto result = frame(offer, event_kind::result);
    result.what.ending = protocol::outcome::success;
    say({std::move(progress), frame(offer, event_kind::renew, 1), frame(offer, event_kind::ack)});
    say({std::move(result)});
  }

  void say(std::vector<body> bodies) {
    protocol::decoded_message<protocol::worker_frame> message;
    for (auto& b : bodies) message.frames.push_back({next_++, std::move(b)});
    gateway().deliver(epoch_, std::move(message), rig_.clock->now());
  }

  threaded_rig& rig_;
  std::size_t thread_;
  latch_of_jobs& done_;
  actors::session_id epoch_ = 0;
  protocol::holder holder_;
  std::int64_t next_ = 1;
};

class OnThreads : public testing::TestWithParam<std::size_t> {};

TEST_P(OnThreads, EveryJobEndsOnceAndTheEvidenceRebuildsEveryRecord) {
  constexpr int jobs = 300;
  const auto store = std::make_shared<memory_store>();
  {
    threaded_rig rig(store, {.threads = GetParam(),
                             .actors = {},
                             .on_fatal = [](std::string_view why) { FAIL() << why; }});
    latch_of_jobs done(jobs);
    std::vector<std::shared_ptr<eager_worker>> workers;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      workers.push_back(std::make_shared<eager_worker>(rig, i, done));
      workers.back()->start();
    }
    for (int i = 0; i < jobs; ++i) {
      const auto thread = static_cast<std::size_t>(i) % GetParam();
      rig.loops[thread]->post([&rig, thread, i] {
        rig.coordinator->on(thread).submit(
            {protocol::tenant_id{"t"}, protocol::job_id{"j" + std::to_string(i)}, {.queue = "q"}},
            [](const actors::answer& a) { EXPECT_TRUE(a.created); });
      });
    }
    EXPECT_TRUE(done.wait());
  }
  protocol::fold folded;
  const auto rows = std::get<std::vector<protocol::stored_row>>(store->rows_from({1}, 100'000));
  for (const auto& row : rows) {
    const auto wrong = folded.feed(row);
    ASSERT_FALSE(wrong) << wrong->row.value << " " << wrong->column << ": " << wrong->sentence;
  }
  EXPECT_TRUE(folded.missing_rows().empty());
  EXPECT_EQ(folded.leases().size(), static_cast<std::size_t>(jobs));
  for (const auto& [key, image] : folded.leases()) {
    EXPECT_EQ(image.state.state, protocol::lease_state::completed) << key.lease.value;
    EXPECT_EQ(image.state.progress_value, "half") << key.lease.value;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, OnThreads, testing::Values(1, 3));

}  // namespace
}  // namespace leasehold::tests
