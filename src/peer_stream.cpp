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

peer_stream::peer_stream(socket_type socket, std::shared_ptr<net_counters> counters,
                         std::unique_ptr<tls_channel> tls)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      counters_(std::move(counters)),
      finish_limit_(socket_.get_executor()) {
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes,
               sizeof unsent_bytes);
  if (tls_ == nullptr) return;
  boost::system::error_code ignored;
  socket_.native_non_blocking(true, ignored);
  tls_->use(socket_.native_handle());
}

// ---- TLS

void peer_stream::when_ready(tls_channel::step wanted, std::function<void(bool ready)> then) {
  const auto what = wanted == tls_channel::step::wants_write ? boost::asio::socket_base::wait_write
                                                             : boost::asio::socket_base::wait_read;
  socket_.async_wait(
      what, [self = shared_from_this(), then = std::move(then)](
                const boost::system::error_code& failed) { then(!failed && !self->closed_); });
}

void peer_stream::shake_hands(std::function<void(bool worked)> then) {
  const auto how = tls_->shake_hands();
  if (how == tls_channel::step::wants_read || how == tls_channel::step::wants_write) {
    when_ready(how, [this, then = std::move(then)](bool ready) mutable {
      if (ready) shake_hands(std::move(then));
    });
  } else {
    then(how == tls_channel::step::done);
  }
}

void peer_stream::read_sealed(boost::asio::mutable_buffer into, read_done done) {
  auto wanted = tls_channel::step::wants_read;
  if (const auto outcome = try_read(into, wanted)) {
    boost::asio::post(socket_.get_executor(),
                      [self = shared_from_this(), outcome = *outcome, done = std::move(done)] {
                        done(outcome.failed, outcome.bytes);
                      });
    return;
  }
  when_ready(wanted, [this, into, done = std::move(done)](bool ready) mutable {
    auto next = tls_channel::step::wants_read;
    if (!ready) {
      done(boost::asio::error::operation_aborted, 0);
    } else if (const auto outcome = try_read(into, next)) {
      done(outcome->failed, outcome->bytes);
    } else {
      read_sealed(into, std::move(done));
    }
  });
}

std::optional<peer_stream::read_outcome> peer_stream::try_read(boost::asio::mutable_buffer into,
                                                               tls_channel::step& wanted) {
  if (closed_) return read_outcome{boost::asio::error::operation_aborted};
  if (into.size() == 0) return read_outcome{};
  const auto got = tls_->read(into.data(), into.size());
  switch (got.how) {
    case tls_channel::step::done:
      return read_outcome{{}, got.bytes};
    case tls_channel::step::ended:
      return read_outcome{boost::asio::error::eof};
    case tls_channel::step::failed:
      // Also an end without a word: somebody between the two may have cut off the rest.
      return read_outcome{boost::asio::error::connection_reset};
    case tls_channel::step::wants_read:
    case tls_channel::step::wants_write:
      break;
  }
  wanted = got.how;
  return std::nullopt;
}

/// As long as the socket takes more; who waits for bytes of ours waits for nobody else.
void peer_stream::send_sealed() {
  while (sent_ < sending_.size()) {
    const auto went = tls_->write(std::string_view(sending_).substr(sent_));
    if (went.how == tls_channel::step::done) {
      count_sent(went.bytes);
    } else if (went.how == tls_channel::step::wants_write ||
               went.how == tls_channel::step::wants_read) {
      when_ready(went.how, [this](bool ready) {
        if (!ready) {
          fail();
          return;
        }
        counters_->write_calls.fetch_add(1, std::memory_order_relaxed);
        send_sealed();
      });
      return;
    } else {
      fail();
      return;
    }
  }
  sending_.clear();
  take_turn();
}

// ---- writing

void peer_stream::count_sent(std::size_t bytes) {
  counters_->bytes_sent.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  sent_ += bytes;
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
  if (tls_ != nullptr) {
    send_sealed();
    return;
  }
  socket_.async_write_some(
      boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
      [self = shared_from_this()](const boost::system::error_code& failed, std::size_t bytes) {
        if (failed || self->closed_) {
          self->fail();
          return;
        }
        self->count_sent(bytes);
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
  when_drained([this] { end_sending(); });
}

void peer_stream::end_sending() {
  if (tls_ != nullptr && tls_->say_end() == tls_channel::step::wants_write) {
    when_ready(tls_channel::step::wants_write, [this](bool ready) {
      if (ready) end_sending();
    });
    return;
  }
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  shut_ = true;
  if (peer_ended_) {
    end_finish();
  } else if (!being_read_) {
    discard();
  }
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

/// Over TLS as it comes: nobody wants to know what it was.
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
  if (tls_ != nullptr) {
    if (finished_ && !shut_ && queued_bytes() == 0) tls_->say_end();
    tls_->use(-1);
  }
  waiting_.clear();
  drained_ = nullptr;
  failed_ = nullptr;
  socket_.close(ignored);
  if (finished_) end_finish();
}

}  // namespace leasehold::server
