#include "src/event_stream.hpp"

#include <boost/json.hpp>
#include <utility>

namespace leasehold::server {
namespace {

namespace json = boost::json;
using actors::store_error;
using protocol::close_code;
using protocol::row_number;

constexpr std::size_t rows_read_at_once = 256;
constexpr std::size_t rows_sent_at_once = 64;
constexpr protocol::duration pause_when_full{50};
constexpr protocol::duration pause_when_busy{200};

}  // namespace

bool event_filter::wants(const shown_row& shown, const evidence_cursor& cursor) const {
  const auto& r = shown.row;
  return (until.value == 0 || r.row <= until) && (job.empty() || r.key.lease.value == job) &&
         (event.empty() || protocol::word(r.input.kind) == event) &&
         (decision.empty() || protocol::word(r.answer.decision) == decision) &&
         (reason.empty() || protocol::word(r.answer.reason) == reason) &&
         (queue.empty() || cursor.queue_of(r.key) == queue);
}

event_stream::event_stream(const call& admitted, event_filter wanted, row_number from)
    : api_(admitted.api),
      credential_(admitted.make_credential()),
      wanted_(std::move(wanted)),
      from_(from) {}

void event_stream::start(std::shared_ptr<socket> on) {
  socket_ = std::move(on);
  api_->shared.counters->watchers.add();
  api_->sockets.add(shared_from_this());
  watch_ = api_->gateway->watch([self = weak_from_this()](row_number last) {
    if (const auto s = self.lock()) s->hear(last);
  });
  find_place();
  check_credential();  // it may have ended between the upgrade's request and its answer
}

void event_stream::check_credential() {
  if (socket_ != nullptr && !credential_.holds()) {
    socket_->close(close_code::credential_ended, credential_ended);
  }
}

void event_stream::find_place() {
  auto task = [self = shared_from_this(), store = api_->shared.store] {
    auto head = store->head();
    self->api_->post([self, head = std::move(head)] {
      const auto* known = std::get_if<actors::log_head>(&head);
      if (self->socket_ == nullptr) return;
      if (known == nullptr) {
        self->socket_->close(close_code::internal_error, "The evidence cannot be read now.");
        return;
      }
      if (self->from_.value == 0) self->from_ = {known->last_row.value + 1};
      self->cursor_ =
          self->api_->shared.evidence->take_cursor(self->credential_.who().tenant, self->from_);
      self->hear(known->last_row);
    });
  };
  if (api_->shared.reads->submit(std::move(task))) return;
  api_->after(pause_when_busy, [self = weak_from_this()] {
    if (const auto s = self.lock(); s != nullptr && s->socket_ != nullptr) s->find_place();
  });
}

void event_stream::on_message(std::span<const std::byte>, bool) {
  if (socket_ != nullptr)
    socket_->close(close_code::policy, "This socket tells and takes nothing.");
}

void event_stream::on_close() {
  socket_.reset();
  api_->sockets.remove(this);
  api_->shared.counters->watchers.add(-1);
  api_->gateway->unwatch(watch_);
}

void event_stream::hear(row_number last) {
  if (last > last_) last_ = last;
  pump();
}

void event_stream::pump() {
  if (socket_ == nullptr || cursor_ == nullptr || reading_ || resting_) return;
  if (!credential_.holds()) {
    socket_->close(close_code::credential_ended, credential_ended);
    return;
  }
  if (is_complete()) {
    socket_->close(close_code::goodbye, "This was the last row that was asked for.");
    return;
  }
  if (cursor_->next() > last_) {
    told_behind_ = false;
    return;
  }
  tell_if_behind();
  if (socket_->queued_bytes() > enough_waiting) {
    pump_after(pause_when_full);
  } else {
    read();
  }
}

bool event_stream::is_complete() const {
  return wanted_.until.value > 0 && cursor_->next() > wanted_.until && last_ >= wanted_.until;
}

void event_stream::pump_after(protocol::duration pause) {
  resting_ = true;
  api_->after(pause, [self = weak_from_this()] {
    const auto s = self.lock();
    if (s == nullptr) return;
    s->resting_ = false;
    s->pump();
  });
}

void event_stream::read() {
  reading_ = true;
  auto task = [self = shared_from_this(), cursor = cursor_] {
    auto got = std::make_shared<portion>(read_portion(*cursor, self->wanted_));
    self->api_->post([self, got] { self->take(std::move(*got)); });
  };
  if (api_->shared.reads->submit(std::move(task))) return;
  reading_ = false;
  pump_after(pause_when_busy);
}

event_stream::portion event_stream::read_portion(evidence_cursor& cursor,
                                                 const event_filter& wanted) {
  auto read = cursor.read(rows_read_at_once, rows_sent_at_once);
  portion out;
  if (auto* fault = std::get_if<store_error>(&read)) {
    out.fault = fault->sentence;
    return out;
  }
  for (const shown_row& shown : std::get<std::vector<shown_row>>(read)) {
    if (!wanted.wants(shown, cursor)) continue;
    std::string line;
    append_json_line(line, shown);
    line.pop_back();
    out.lines.push_back(std::move(line));
  }
  return out;
}

void event_stream::take(portion got) {
  reading_ = false;
  if (socket_ == nullptr) return;
  if (got.fault) {
    api_->shared.lines->write(log_level::error, "reading evidence failed", {{"what", *got.fault}});
    socket_->close(close_code::internal_error, "The evidence cannot be read now.");
    return;
  }
  if (!api_->may_answer()) {
    socket_->close(close_code::going_away, no_longer_active);
    return;
  }
  for (std::string& line : got.lines) {
    if (socket_ != nullptr) socket_->send(std::move(line));
  }
  pump();
}

void event_stream::tell_if_behind() {
  const std::int64_t behind = last_.value - cursor_->next().value + 1;
  if (told_behind_ || behind < far_behind) return;
  told_behind_ = true;
  socket_->send(json::serialize(json::object{
      {"behind", behind}, {"next_row", cursor_->next().value}, {"last_row", last_.value}}));
}

upgrade_answer upgrade_events(const call_ptr& c) {
  event_filter wanted;
  const row_number from{c->query.number("from", 0, protocol::max_number).value_or(0)};
  wanted.until = {c->query.number("until", 1, protocol::max_number).value_or(0)};
  if (wanted.until.value > 0 && from > wanted.until) {
    c->query.refuse("The parameter until must not lie before from.");
  }
  wanted.job = c->query.text("job", 128).value_or("");
  wanted.queue = c->query.text("queue", 128).value_or("");
  wanted.event = c->query.text("event", 32).value_or("");
  wanted.decision = c->query.text("decision", 32).value_or("");
  wanted.reason = c->query.text("reason", 64).value_or("");
  if (auto fault = c->query.fault()) {
    problem p;
    p.reason = fault->reason;
    p.detail = fault->sentence;
    p.request_id = c->request_id;
    return upgrade_refused{to_response(p)};
  }
  upgrade_accepted out;
  out.message_limit = 1024;
  out.outbound_limit = 1 << 20;
  out.text = true;
  out.start = [c, wanted = std::move(wanted), from](std::shared_ptr<socket> on) {
    auto made = std::make_shared<event_stream>(*c, wanted, from);
    made->start(std::move(on));
    return made;
  };
  return out;
}

}  // namespace leasehold::server
