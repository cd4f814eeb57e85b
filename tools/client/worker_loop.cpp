#include "worker_loop.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::client {
namespace {

/// A message stays well below the coordinator's limit of 64 KiB in either encoding.
constexpr std::size_t message_bytes = std::size_t{16} * 1024;
constexpr std::size_t message_frames = 256;
constexpr protocol::duration least_pause{20};

std::size_t size_of(const protocol::worker_frame& frame) {
  const auto* about = std::get_if<protocol::lease_frame>(&frame.body);
  if (about == nullptr) return 512;
  const auto& what = about->what;
  return 128 + what.lease.value.size() + what.from.value.size() + what.value.size() +
         what.detail.size() + about->last_progress_value.size() + about->decline_reason.size();
}

session_options session_options_of(const worker_options& chosen) {
  session_options options;
  options.incarnation = process_incarnation();
  options.client_name = chosen.client_name;
  options.client_version = chosen.client_version;
  options.queues = chosen.queues;
  options.jitter_seed = std::random_device{}();
  return options;
}

std::size_t slots_of(const std::vector<queue_slots>& queues) {
  std::size_t all = 0;
  for (const auto& queue : queues) all += static_cast<std::size_t>(queue.slots);
  return all;
}

}  // namespace

worker::loop::loop(worker_options options, std::vector<stream_address> addresses)
    : options_(std::move(options)),
      addresses_(std::move(addresses)),
      session_(session_options_of(options_)),
      codec_(options_.json ? protocol::encoding::json : protocol::encoding::protobuf),
      to_coordinator_(options_.chaos.value_or(chaos_options{}), 0),
      to_worker_(options_.chaos.value_or(chaos_options{}), 1),
      random_(std::random_device{}()),
      link_(make_stream_link(*this,
                             {.ca_file = options_.ca_file,
                              .cert_file = options_.cert_file,
                              .key_file = options_.key_file,
                              .user_agent = options_.client_name + "/" + options_.client_version})),
      told_(1) {
  if (!options_.executor) pool_ = std::make_unique<task_pool>(slots_of(options_.queues));
}

worker::loop::~loop() {
  door_->shut();
  leave();
}

void worker::loop::start() {
  connect_at_ = local_now();
  link_->post([this] { turn(); });
  thread_ = std::thread([this] { link_->run(); });
}

void worker::loop::drain() {
  link_->post([this] {
    session_.drain(local_now());
    turn();
  });
}

void worker::loop::ask_to_stop() {
  link_->post([this] {
    for (const auto& [what, work] : works_) stop_job(what, stop_reason::worker_stops);
  });
}

void worker::loop::leave() {
  if (!thread_.joinable()) return;
  link_->post([this] {
    leaving_ = true;
    connect_at_.reset();
    if (!session_.stopped()) session_.goodbye(local_now());
    turn();
    if (!socket_open_) link_->stop();
  });
  thread_.join();
}

// ---- reports of the program --------------------------------------------------------------------

void worker::loop::progress(const grant& what, std::string value) {
  link_->post([this, what, value = std::move(value)]() mutable {
    session_.progress(local_now(), what, value);
    turn();
  });
}

void worker::loop::register_process(const grant& what, const protocol::process_handle& process) {
  link_->post([this, what, process] {
    session_.register_process(local_now(), what, process);
    turn();
  });
}

void worker::loop::finish(const grant& what, protocol::outcome how, std::string detail,
                          bool retryable) {
  link_->post([this, what, how, detail = std::move(detail), retryable]() mutable {
    works_.erase(what);
    session_.finish(local_now(), what, how, detail, retryable);
    turn();
  });
}

// ---- the link ----------------------------------------------------------------------------------

void worker::loop::on_open() {
  socket_open_ = true;
  session_.open(local_now());
  turn();
}

void worker::loop::on_message(std::span<const std::byte> message) {
  const auto now = local_now();
  const auto read = codec_.decode_coordinator(message);
  if (read.broken)
    return link_->close(static_cast<std::uint16_t>(protocol::close_code::protocol_error));
  for (const auto& frame : read.frames) {
    if (options_.chaos) {
      to_worker_.push(now, frame);
    } else {
      session_.receive(now, frame);
    }
  }
  turn();
}

void worker::loop::on_end(const link_end& how) {
  const auto now = local_now();
  socket_open_ = false;
  connected_ = false;
  to_coordinator_.clear();
  to_worker_.clear();
  session_.close(now, how.close_code);
  // A session that was never welcomed and is closed for a policy will never be.
  const bool unwanted = how.http_status == 401 || how.http_status == 403 ||
                        how.close_code == static_cast<std::uint16_t>(protocol::close_code::policy);
  if (leaving_) {
    link_->stop();
  } else if (unwanted && !was_ready_) {
    give_up(how.sentence, how.http_status);
  } else if (!session_.stopped()) {
    tell(worker_event::kind::disconnected, how.sentence, {}, how.http_status);
    connect_later(now, how);
  }
  turn();
}

void worker::loop::on_wake() { turn(); }

void worker::loop::connect() {
  connect_at_.reset();
  const auto where = sent_to_ ? *std::exchange(sent_to_, std::nullopt)
                              : addresses_[next_address_++ % addresses_.size()];
  link_->open(where, options_.token, options_.json);
}

/// Full jitter: anything up to a bound that doubles with each round of failures [R8].
void worker::loop::connect_later(local_time now, const link_end& how) {
  const auto rounds =
      std::min<std::int64_t>(failures_++ / static_cast<std::int64_t>(addresses_.size()), 16);
  const auto bound = std::min(options_.reconnect_most.ms, options_.reconnect_first.ms << rounds);
  const auto pause = std::uniform_int_distribution<std::int64_t>(
      least_pause.ms, std::max(least_pause.ms, bound))(random_);
  connect_at_ = now + protocol::duration{std::max(pause, how.retry_after.ms)};
}

void worker::loop::give_up(std::string why, int http_status) {
  if (ended_.exchange(true)) return;
  tell(worker_event::kind::ended, std::move(why), {}, http_status);
}

// ---- one turn ----------------------------------------------------------------------------------

void worker::loop::turn() {
  const auto now = local_now();
  if (connect_at_ && *connect_at_ <= now && !ended_) connect();
  receive_due(now);
  session_.tick(now);
  send_due(now);
  for (const auto& each : session_.take_notices()) {
    std::visit([&](const auto& what) { on(what); }, each);
  }
  count();
  close_when_said();
  set_alarm(now);
}

void worker::loop::receive_due(local_time now) {
  for (const auto& frame : to_worker_.take(now)) session_.receive(now, frame);
}

void worker::loop::send_due(local_time now) {
  const auto frames = session_.take_frames();
  if (!socket_open_) return;
  if (!options_.chaos) return write(frames);
  for (const auto& frame : frames) to_coordinator_.push(now, frame);
  write(to_coordinator_.take(now));
}

void worker::loop::write(std::span<const protocol::worker_frame> frames) {
  while (!frames.empty()) {
    std::size_t count = 0;
    for (std::size_t bytes = 0; count < std::min(frames.size(), message_frames); ++count) {
      bytes += size_of(frames[count]);
      if (count > 0 && bytes > message_bytes) break;
    }
    std::string message;
    codec_.encode(frames.first(count), message);
    if (!message.empty()) link_->send(std::move(message));
    frames = frames.subspan(count);
  }
}

/// Goodbye has been said once nothing is on its way to the socket any more.
void worker::loop::close_when_said() {
  if (leaving_ && socket_open_ && !to_coordinator_.next()) {
    link_->close(static_cast<std::uint16_t>(protocol::close_code::goodbye));
  }
}

void worker::loop::set_alarm(local_time now) {
  auto next = session_.next_tick();
  const auto sooner = [&](const std::optional<local_time>& candidate) {
    if (candidate && (!next || *candidate < *next)) next = candidate;
  };
  sooner(to_coordinator_.next());
  sooner(to_worker_.next());
  if (!ended_) sooner(connect_at_);
  link_->wake_at(next ? *next : now + protocol::duration{60000});
}

void worker::loop::count() {
  running_ = session_.running();
  open_ = session_.grants();
}

// ---- notices -----------------------------------------------------------------------------------

void worker::loop::tell(worker_event::kind what, std::string text, grant about, int http_status) {
  if (!options_.on_event) return;
  worker_event event{what, std::move(text), std::move(about), http_status};
  told_.run([this, event = std::move(event)] { options_.on_event(event); });
}

void worker::loop::stop_job(const grant& what, stop_reason why) {
  const auto at = works_.find(what);
  if (at == works_.end()) return;
  if (auto work = at->second.lock()) {
    told_.run([work = std::move(work), why] { work->must_stop(why); });
  }
}

void worker::loop::on(const job_start& what) {
  auto work = std::make_shared<job_work>(what, door_);
  works_[what.what] = work;
  auto task = [this, handle = job(std::move(work))]() mutable {
    options_.on_job(std::move(handle));
  };
  options_.executor ? options_.executor(std::move(task)) : pool_->run(std::move(task));
}

void worker::loop::on(const job_deadline& what) {
  const auto at = works_.find(what.what);
  if (at == works_.end()) return;
  if (const auto work = at->second.lock()) work->move_deadline(what.deadline);
}

void worker::loop::on(const job_cancel& what) { stop_job(what.what, stop_reason::cancelled); }
void worker::loop::on(const job_lost& what) { stop_job(what.what, stop_reason::lost); }

void worker::loop::on(const job_closed& what) {
  tell(worker_event::kind::closed,
       std::string(protocol::word(what.decision)) + " " + std::string(protocol::word(what.reason)),
       what.what);
}

void worker::loop::on(const session_ready& what) {
  failures_ = 0;
  was_ready_ = true;
  connected_ = true;
  tell(worker_event::kind::connected, what.node);
}

void worker::loop::on(const session_drain& what) {
  sent_to_ = parse_stream_address(what.where);
  // Whoever asked for TLS everywhere does not send the token without it because somebody says so.
  const bool may_be_plain = std::ranges::any_of(addresses_, [](const auto& a) { return !a.tls; });
  if (sent_to_ && !sent_to_->tls && !may_be_plain) sent_to_.reset();
  tell(worker_event::kind::draining, what.where);
}

void worker::loop::on(const session_over& what) {
  if (what.why == over_reason::superseded)
    return give_up("another session of this process took over");
  if (what.why == over_reason::goodbye) return;  // closed once it has been said
  const bool answers = what.why == over_reason::moved;
  link_->close(answers ? static_cast<std::uint16_t>(protocol::close_code::goodbye) : 0);
}

}  // namespace leasehold::client
