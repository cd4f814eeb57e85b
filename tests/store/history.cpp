#include "tests/store/history.hpp"

#include "leasehold/actors/job.hpp"
#include "tests/store/store_conformance.hpp"

namespace leasehold::tests {

using protocol::event;
using protocol::event_kind;
using protocol::instant;
using protocol::row_group;
using protocol::row_number;

template <class Decide>
void history::write(lease& about, instant ingress, const Decide& decide) {
  row_group rows(about.key, about.image.policy, about.image.last_row, ingress, now_);
  if (!about.image.state.known()) rows.attach(about.image.body);
  const bool was_known = about.image.state.known();
  protocol::image_rows counted(rows, about.image);
  decide(about.image.state, rows, counted);
  if (rows.count() == 0) return;
  actors::batch what;
  const auto rows_count = what.rows = rows.count();
  what.groups.push_back(rows.take_bytes());
  what.anchor = {"boot-1", now_.ms - 1'699'999'999'000, now_.ms, now_};
  last_row_ = expect(commit(to_, std::move(what))).head.last_row;
  if (!about.image.state.known()) return;
  about.image.last_row = last_row_;
  if (!was_known) about.image.base_row = {last_row_.value - rows_count + 1};
}

void history::submit(const std::string& name) {
  lease& made = leases_[name];
  made.key = key_of(name);
  made.chosen = policy_number(policies_++ % policy_count);
  made.image.policy = protocol::id_of(made.chosen);
  actors::job_spec spec;
  spec.queue = "q";
  spec.payload = "payload of " + name;
  spec.labels = {{"size", "small"}};
  spec.submitted_by = "tester";
  made.image.body = actors::encode_job(spec);
  actors::batch what;
  what.groups.push_back(protocol::encode_policy_row(made.chosen, now_));
  what.rows = 1;
  what.policies.emplace_back(made.image.policy, made.chosen);
  what.anchor = {"boot-1", now_.ms - 1'699'999'999'000, now_.ms, now_};
  last_row_ = expect(commit(to_, std::move(what))).head.last_row;
  event submitted;
  submitted.kind = event_kind::submit;
  submitted.lease = made.key.lease;
  submitted.job = protocol::job_id(name);
  happen(name, submitted);
}

void history::happen(const std::string& name, event what, std::int64_t after_ms) {
  lease& about = leases_.at(name);
  now_.ms += after_ms;
  what.lease = about.key.lease;
  what.frame_id = last_row_.value + 1;
  what.session_epoch = 7;
  write(about, now_, [&](protocol::record& r, row_group& rows, protocol::row_sink& sink) {
    const std::size_t waited = r.deferred.size();
    protocol::step(r, about.chosen, what, now_, sink);
    // Only this event can have been deferred, and its row is then the last of the group.
    if (r.deferred.size() > waited) r.deferred.back().row.value = last_row_.value + rows.count();
  });
}

void history::work(const std::string& name) {
  submit(name);
  event next;
  next.from = protocol::holder("worker/000102030405060708090a0b0c0d0e0f");
  next.kind = event_kind::offer;
  next.job = protocol::job_id(name);
  happen(name, next);
  next.job = {};
  next.gen.value = 1;
  const auto frame = [&](event_kind kind, std::int64_t sequence) {
    next.kind = kind;
    next.seq.value = sequence;
    next.value = kind == event_kind::progress ? "half" : "";
    next.sent_at = now_;
    happen(name, next);
  };
  frame(event_kind::progress, 1);
  frame(event_kind::ack, 0);
  for (std::int64_t i = 1; i <= 6; ++i) frame(event_kind::renew, i);
  frame(event_kind::renew, 3);
}

void history::restart(std::int64_t after_ms) {
  now_.ms += after_ms;
  const auto each = [&](auto part) {
    for (auto& named : leases_) {
      auto& about = named.second;
      write(about, {}, [&](protocol::record& r, row_group&, protocol::row_sink& sink) {
        part(r, about.chosen, now_, sink);
      });
    }
  };
  each([](auto&... all) { protocol::recover_due(all...); });
  each([](auto&... all) { protocol::recover_grace(all...); });
  each([](auto&... all) { protocol::expire_due(all...); });
}

row_number history::append(std::string framed) {
  actors::batch what;
  what.groups.push_back(std::move(framed));
  what.rows = 1;
  what.anchor = {"boot-1", now_.ms - 1'699'999'999'000, now_.ms, now_};
  last_row_ = expect(commit(to_, std::move(what))).head.last_row;
  return last_row_;
}

void history::base_all() {
  for (auto& [name, about] : leases_) {
    if (!about.image.state.known()) continue;
    auto& image = about.image;
    image.last_row = image.base_row =
        append(protocol::encode_base_row(about.key, {about.chosen, image}, now_));
    image.last_at = now_;
    image.counts.clear();
  }
}

void history::forget(const std::string& name) {
  auto& about = leases_.at(name);
  append(protocol::encode_forget_row(about.key, about.image.last_row, about.image.state, now_));
  auto& floor = state_.floors[protocol::shard_of(about.key)];
  floor = std::max(floor, about.image.state.gen);
  forgotten_.push_back(about.key);
  leases_.erase(name);
}

void history::checkpoint() {
  actors::checkpoint_slice slice;
  for (const auto& [key, image] : images()) slice.changed.push_back({key, image});
  slice.forgotten = forgotten_;
  slice.upto = last_row_;
  slice.last = true;
  slice.state = state_;
  expect(tests::checkpoint(to_, std::move(slice)));
}

choice history::random_choice() {
  const auto below = [this](int bound) {
    return static_cast<int>(random_() % static_cast<std::uint32_t>(bound));
  };
  choice c;
  c.kind = below(22);
  c.generation = below(6) == 0 ? below(3) - 1 : 0;
  c.holder = below(5) == 0 ? below(4) : 0;
  c.sequence = below(3) == 0 ? below(5) : 0;
  c.value = below(2);
  c.ending = below(4);
  c.sent = below(4) == 0 ? below(10) : 0;
  c.time = below(2) == 0 ? below(14) : 0;
  c.request = below(4) == 0 ? below(4) : 0;
  c.flag = below(2) == 0;
  return c;
}

void history::wander(int events) {
  std::vector<std::string> names;
  for (const auto& [name, about] : leases_) names.push_back(name);
  for (int i = 0; i < events; ++i) {
    const std::string& name = names[random_() % names.size()];
    const lease& about = leases_.at(name);
    const moment next = resolve_choice(random_choice(), subject::job, about.image.state, now_);
    happen(name, next.what, std::max<std::int64_t>(next.at.ms - now_.ms, 0));
  }
}

std::map<protocol::lease_key, protocol::fold::lease_image> history::images() const {
  std::map<protocol::lease_key, protocol::fold::lease_image> found;
  for (const auto& [name, about] : leases_) {
    if (about.image.state.known()) found[about.key] = about.image;
  }
  return found;
}

}  // namespace leasehold::tests
