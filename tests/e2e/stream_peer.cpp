#include "stream_peer.hpp"

namespace leasehold::e2e {

using protocol::event_kind;

stream_peer::stream_peer(const live_server& server, const std::string& principal, char digit,
                         protocol::encoding how)
    : incarnation_(32, digit), codec_(how), socket_(server.port()) {
  const auto subprotocol =
      how == protocol::encoding::json ? protocol::subprotocol_json : protocol::subprotocol_protobuf;
  std::string headers = "Sec-WebSocket-Protocol: " + std::string(subprotocol) + "\r\n";
  if (!principal.empty()) headers += "Authorization: Bearer " + server.token(principal) + "\r\n";
  socket_.send(test::upgrade_request("/v1/stream", headers));
  upgrade_answer_ = socket_.read_until("\r\n\r\n").value_or("");
  upgraded_ = upgrade_answer_.starts_with("HTTP/1.1 101");
  ended_ = !upgraded_;
}

protocol::welcome stream_peer::hello(std::vector<protocol::running_lease> running,
                                     const std::string& queue) {
  protocol::hello body;
  body.incarnation = incarnation_;
  body.client_name = "by hand";
  body.queues.push_back({queue, {}});
  body.running = std::move(running);
  say(std::move(body));
  const auto welcomed = await<protocol::welcome>();
  if (!welcomed) {
    ADD_FAILURE() << "no Welcome";
    return {};
  }
  welcome_read_ = std::chrono::steady_clock::now();
  welcomed_at_ = welcomed->server_time;
  holder_ = welcomed->holder;
  epoch_ = welcomed->session_epoch;
  return *welcomed;
}

void stream_peer::credit(std::int64_t slots, const std::string& queue) {
  say(protocol::credit{epoch_, {++credit_sequence_}, queue, slots});
}

std::int64_t stream_peer::say(frame_body body) {
  std::vector<frame_body> one;
  one.push_back(std::move(body));
  return say_all(std::move(one));
}

std::int64_t stream_peer::say_all(std::vector<frame_body> bodies) {
  const auto first = frame_id_ + 1;
  std::vector<protocol::worker_frame> frames;
  frames.reserve(bodies.size());
  for (auto& body : bodies) frames.push_back({++frame_id_, std::move(body)});
  std::string message;
  codec_.encode(frames, message);
  send_message(message, codec_.how() == protocol::encoding::json ? 1 : 2);
  return first;
}

void stream_peer::send_message(std::string_view bytes, int opcode) {
  socket_.send(test::bytes_of({.opcode = opcode, .payload = std::string(bytes)}));
}

protocol::lease_frame stream_peer::frame(event_kind kind, const std::string& lease,
                                         std::int64_t gen, std::int64_t seq) const {
  protocol::lease_frame f;
  f.what.kind = kind;
  f.what.lease = protocol::lease_id{lease};
  f.what.gen = {gen};
  f.what.from = holder_;
  f.what.seq = {seq};
  f.what.sent_at = now();
  return f;
}

protocol::lease_frame stream_peer::progress(const std::string& lease, std::int64_t gen,
                                            std::int64_t seq, std::string value) const {
  auto f = frame(event_kind::progress, lease, gen, seq);
  f.what.value = std::move(value);
  return f;
}

protocol::lease_frame stream_peer::result(const std::string& lease, std::int64_t gen,
                                          protocol::outcome how, std::string detail,
                                          bool retryable) const {
  auto f = frame(event_kind::result, lease, gen);
  f.what.ending = how;
  f.what.detail = std::move(detail);
  f.what.retryable = retryable;
  return f;
}

protocol::frame_verdict stream_peer::tell(protocol::lease_frame f) {
  const auto id = say(std::move(f));
  const auto said = verdict_of(id);
  if (!said) ADD_FAILURE() << "frame " << id << " was not answered";
  return said.value_or(protocol::frame_verdict{});
}

protocol::activated stream_peer::start(const std::string& lease, std::int64_t gen) {
  EXPECT_EQ(tell(frame(event_kind::ack, lease, gen)).reason, protocol::reason::ack_accepted);
  const auto began = await<protocol::activated>([&](const protocol::activated& a) {
    return a.standing.lease.value == lease && a.standing.gen.value == gen;
  });
  if (!began) ADD_FAILURE() << lease << " was not activated";
  return began.value_or(protocol::activated{});
}

std::optional<protocol::frame_verdict> stream_peer::verdict_of(std::int64_t frame_id) {
  return await<protocol::frame_verdict>(
      [&](const protocol::frame_verdict& v) { return v.answers == frame_id && v.epoch == epoch_; });
}

std::optional<protocol::offer> stream_peer::offer_of(const std::string& lease) {
  auto found = await<protocol::offer>(
      [&](const protocol::offer& o) { return o.standing.lease.value == lease; });
  if (!found) ADD_FAILURE() << lease << " was not offered";
  return found;
}

std::optional<protocol::lease_lost> stream_peer::loss_of(const std::string& lease) {
  auto found = await<protocol::lease_lost>(
      [&](const protocol::lease_lost& l) { return l.lost.lease.value == lease; });
  if (!found) ADD_FAILURE() << lease << " was not lost";
  return found;
}

std::optional<int> stream_peer::close_code() {
  const auto by = std::chrono::steady_clock::now() + patience;
  while (!ended_ && std::chrono::steady_clock::now() < by) read_more();
  if (!ended_) return std::nullopt;
  return close_code_;
}

protocol::instant stream_peer::now() const {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - welcome_read_);
  return welcomed_at_ + protocol::duration{since.count()};
}

bool stream_peer::read_more() {
  if (ended_) return false;
  const auto frame = test::read_frame(socket_);
  if (!frame) {
    ended_ = true;
    return false;
  }
  if (frame->opcode == 9) {
    socket_.send(test::bytes_of({.opcode = 10, .payload = frame->payload}));
  } else if (frame->opcode == 8) {
    const auto byte = [&](std::size_t i) {
      return static_cast<int>(static_cast<unsigned char>(frame->payload[i]));
    };
    if (frame->payload.size() >= 2) close_code_ = byte(0) << 8 | byte(1);
    socket_.send(test::bytes_of({.opcode = 8, .payload = frame->payload}));
    socket_.close();
    ended_ = true;
  } else {
    newest_message_ = frame->payload;
    auto read = codec_.decode_coordinator(std::as_bytes(std::span(frame->payload)));
    EXPECT_FALSE(read.broken.has_value() || !read.unreadable.empty());
    for (auto& each : read.frames) inbox_.push_back(std::move(each));
  }
  return !ended_;
}

}  // namespace leasehold::e2e
