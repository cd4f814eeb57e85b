#include "src/peer_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace leasehold::server {
namespace {

// More than this is worth a system call of its own.
constexpr std::size_t enough_bytes = std::size_t{16} * 1024;
// Each costs a turn of the loop in latency, and only while every one of them brings more.
constexpr int most_turns = 10;
// The kernel takes so much that it cannot send yet; without a bound it takes megabytes for each
// peer that does not read, where no limit of ours counts them.
constexpr int unsent_bytes = 32 * 1024;

}  // namespace

peer_stream::peer_stream(socket_type socket, std::shared_ptr<net_counters> counters)
    : socket_(std::move(socket)),
      counters_(std::move(counters)),
      finish_limit_(socket_.get_executor()) {
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes,
               sizeof unsent_bytes);
}

void peer_stream::write(std::string_view bytes) {
  if (closed_ || bytes.empty()) return;
  waiting_.append(bytes);
  if (!busy_) schedule_turn();
}

void peer_stream::when_drained(std::function<void()> then) {
  drained_ = std::move(then);
  if (!busy_) schedule_turn();
}

void peer_stream::schedule_turn() {
  busy_ = true;
  seen_ = waiting_.size();
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->take_turn(); });
}

void peer_stream::take_turn() {
  // The first turn shows nothing: what the loop had ready when the bytes came runs only after it.
  const bool more_may_come = turns_ == 0 || waiting_.size() > seen_;
  if (more_may_come && !waiting_.empty() && waiting_.size() < enough_bytes &&
      ++turns_ < most_turns) {
    schedule_turn();
    return;
  }
  turns_ = 0;
  send_waiting();
}

void peer_stream::send_waiting() {
  sending_.clear();
  sent_ = 0;
  if (closed_ || waiting_.empty()) {
    busy_ = false;
    // A burst does not keep its memory: most connections are quiet most of the time.
    if (sending_.capacity() > enough_bytes) sending_ = {};
    if (waiting_.capacity() > enough_bytes) waiting_ = {};
    if (!closed_ && drained_) std::exchange(drained_, nullptr)();
    return;
  }
  sending_.swap(waiting_);
  send_rest();
}

void peer_stream::send_rest() {
  counters_->write_calls.fetch_add(1, std::memory_order_relaxed);
  socket_.async_write_some(
      boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
      [self = shared_from_this()](const boost::system::error_code& failed, std::size_t bytes) {
        if (failed || self->closed_) {
          self->fail();
          return;
        }
        self->counters_->bytes_sent.fetch_add(static_cast<std::int64_t>(bytes),
                                              std::memory_order_relaxed);
        self->sent_ += bytes;
        if (self->sent_ < self->sending_.size()) {
          self->send_rest();
        } else {
          self->sending_.clear();
          self->take_turn();
        }
      });
}

void peer_stream::fail() {
  busy_ = false;
  const auto failed = std::exchange(failed_, nullptr);
  close();
  if (failed) failed();
}

void peer_stream::finish(std::chrono::milliseconds limit, bool being_read,
                         std::function<void()> done) {
  finished_ = std::move(done);
  being_read_ = being_read;
  failed_ = [this] { end_finish(); };
  if (closed_) {
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->end_finish(); });
    return;
  }
  finish_limit_.expires_after(limit);
  finish_limit_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (!cancelled) self->end_finish();
  });
  when_drained([this] {
    boost::system::error_code ignored;
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
    shut_ = true;
    if (peer_ended_) {
      end_finish();
    } else if (!being_read_) {
      discard();
    }
  });
}

void peer_stream::read_ended(const boost::system::error_code& failed) {
  if (!finished_) return;
  if (!failed) {
    discard();
    return;
  }
  peer_ended_ = true;
  if (shut_ || failed != boost::asio::error::eof) end_finish();
}

void peer_stream::discard() {
  being_read_ = true;
  discarded_.resize(4096);
  socket_.async_read_some(boost::asio::buffer(discarded_),
                          [self = shared_from_this()](const boost::system::error_code& failed,
                                                      std::size_t) { self->read_ended(failed); });
}

void peer_stream::end_finish() {
  finish_limit_.cancel();
  close();
  if (auto done = std::exchange(finished_, nullptr)) done();
}

void peer_stream::close() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  // What is not sent now never will be: a peer that does not read is cut off, or the kernel would
  // keep its share of it for minutes.
  if (queued_bytes() > 0) socket_.set_option(boost::asio::socket_base::linger{true, 0}, ignored);
  waiting_.clear();
  drained_ = nullptr;
  failed_ = nullptr;
  socket_.close(ignored);
  if (finished_) end_finish();
}

}  // namespace leasehold::server
