#include "mute_reader.hpp"

#include <poll.h>
#include <sys/ioctl.h>

#include <span>
#include <utility>
#include <variant>

#include "leasehold/protocol/codec.hpp"

namespace leasehold::bench {

namespace {

/// Small, so that what the kernels keep between the two ends is soon full.
constexpr int receive_buffer = 16 * 1024;
/// The longest name that a lease may have: it comes back with every answer.
constexpr std::size_t longest_id = 128;
/// Of so many frames one asks for a lease of its own; the others name a holder that is somebody
/// else.
constexpr std::size_t own_frames = 8;
constexpr int turn_ms = 1;
constexpr std::chrono::milliseconds look_pause{100};

std::string encoded(const std::vector<protocol::worker_frame>& frames) {
  protocol::codec codec(protocol::encoding::protobuf);
  std::string bytes;
  codec.encode(std::span<const protocol::worker_frame>(frames), bytes);
  return bytes;
}

/// One message of frames that are refused.
std::string requests_of(const mute_reader::options& how) {
  std::vector<protocol::worker_frame> frames;
  for (std::size_t i = 0; i < how.frames; ++i) {
    protocol::lease_frame frame;
    frame.what.kind = protocol::event_kind::renew;
    frame.what.lease.value = std::string(longest_id, 'n');
    frame.what.gen = {1};
    frame.what.seq = {1};
    frame.what.from.value =
        (i % own_frames == 0 ? how.principal : "another") + "/" + how.incarnation;
    frames.push_back({static_cast<std::int64_t>(i) + 3, std::move(frame)});
  }
  return encoded(frames);
}

}  // namespace

mute_reader::mute_reader(const options& how)
    : stream_(how.port, how.token, receive_buffer), requests_(requests_of(how)) {
  protocol::hello said;
  said.incarnation = how.incarnation;
  said.client_name = "mute";
  said.queues.push_back({how.queue, {}});
  stream_.send(encoded({{1, std::move(said)}}));
  const auto epoch = read_welcome();
  stream_.send(encoded({{2, protocol::credit{epoch, {1}, how.queue, 1}}}));
  socket().flush();
  socket().forget();
  stuck_since_ = std::chrono::steady_clock::now();
}

std::int64_t mute_reader::read_welcome() {
  protocol::codec codec(protocol::encoding::protobuf);
  for (socket().flush(); !gone(); socket().fill()) {
    while (const auto bytes = stream_.next()) {
      for (const auto& frame : codec.decode_coordinator(std::as_bytes(std::span(*bytes))).frames) {
        const auto* welcome = std::get_if<protocol::welcome>(&frame.body);
        if (welcome != nullptr) return welcome->session_epoch;
      }
    }
    pollfd one{socket().descriptor(), POLLIN, 0};
    ::poll(&one, 1, -1);
  }
  return 0;
}

void mute_reader::ask() {
  if (gone()) return;
  if (!socket().waits_to_write()) stream_.send(requests_);
  socket().flush();
}

void mute_reader::look(time_point now, bool hung_up) {
  if (took_) return;
  int unread = 0;
  ::ioctl(socket().descriptor(), FIONREAD, &unread);
  if (std::exchange(unread_, unread) != unread) stuck_since_ = now;
  if (!hung_up && !gone()) return;
  ended_ = now;
  took_ = now - stuck_since_;
  socket().close();
}

namespace {

void look_at(std::vector<mute_reader>& all) {
  std::vector<pollfd> waits;
  waits.reserve(all.size());
  for (auto& each : all) {
    waits.push_back({each.gone() ? -1 : each.socket().descriptor(), POLLRDHUP, 0});
  }
  ::poll(waits.data(), waits.size(), 0);
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].look(now, (waits[i].revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0);
  }
}

}  // namespace

void keep_asking(std::vector<mute_reader>& all, std::chrono::milliseconds pause,
                 const std::function<bool()>& enough) {
  using clock = std::chrono::steady_clock;
  // Each in its turn, so that they do not all ask at one instant.
  const auto share = std::chrono::duration_cast<clock::duration>(pause) / all.size();
  auto due = clock::now();
  auto look_due = due;
  for (std::size_t next = 0; !enough();) {
    const auto now = clock::now();
    for (; due <= now; due += share) {
      all[next].ask();
      next = (next + 1) % all.size();
    }
    if (look_due <= now) {
      look_at(all);
      look_due = now + look_pause;
    }
    ::poll(nullptr, 0, turn_ms);
  }
}

}  // namespace leasehold::bench
