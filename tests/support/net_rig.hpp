// A listener with a few loops and an API that does what its tests ask for by path.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "src/listener.hpp"
#include "src/thread_loop.hpp"
#include "src/transport.hpp"

namespace leasehold::test {

/// What the API and its sockets have seen; read by the test's thread.
class witness {
 public:
  void note(const std::string& what) {
    const std::lock_guard lock{mutex_};
    seen_.push_back(what);
    more_.notify_all();
  }
  /// Waits until `what` has been noted; false after five seconds.
  bool wait_for(const std::string& what, std::ptrdiff_t times = 1) {
    std::unique_lock lock{mutex_};
    return more_.wait_for(lock, std::chrono::seconds{5}, [&] { return count(what) >= times; });
  }
  std::ptrdiff_t count_of(const std::string& what) {
    const std::lock_guard lock{mutex_};
    return count(what);
  }

 private:
  std::ptrdiff_t count(const std::string& what) const {
    return std::count(seen_.begin(), seen_.end(), what);
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> seen_;
};

/// Answers each message with itself; some words ask for more.
class echo_events final : public server::socket_events {
 public:
  echo_events(std::shared_ptr<server::socket> socket, std::shared_ptr<witness> seen)
      : socket_(std::move(socket)), seen_(std::move(seen)) {}

  void on_message(std::span<const std::byte> message, bool text) override {
    const std::string words{reinterpret_cast<const char*>(message.data()), message.size()};
    if (closed_) seen_->note("message after close");
    seen_->note(text ? "text" : "binary");
    if (words == "flood") {
      for (int i = 0; i < 64; ++i) socket_->send(std::string(100'000, 'f'));
      seen_->note("flooded");
    } else if (words == "count") {
      for (int i = 0; i < 64; ++i) socket_->send("answer " + std::to_string(i));
    } else if (words == "supersede") {
      socket_->close(protocol::close_code::superseded, "another one came");
      socket_->send("never sent");
    } else if (words == "pause") {
      socket_->pause_reading(true);
      seen_->note("paused");
    } else {
      socket_->send(words);
    }
  }
  void on_close() override {
    closed_ = true;
    seen_->note("closed");
    socket_.reset();
  }

 private:
  std::shared_ptr<server::socket> socket_;
  std::shared_ptr<witness> seen_;
  bool closed_ = false;
};

class test_api final : public server::http_handler {
 public:
  explicit test_api(std::shared_ptr<witness> seen) : seen_(std::move(seen)) {}

  void handle(server::http_request request, std::shared_ptr<const std::atomic<bool>> gone,
              std::function<void(server::http_response)> reply) override {
    seen_->note(request.target);
    if (request.target == "/wait") {
      gone_ = std::move(gone);
      reply_ = std::move(reply);
    } else if (request.target == "/big") {
      reply({200, {}, std::string(4'000'000, 'b')});
    } else if (request.target == "/names") {
      std::string names;
      for (const auto& name : request.certificate) names += name + ';';
      reply({200, {}, names});
    } else {
      reply({200, {{"x-method", request.method}}, request.target + ' ' + request.body});
    }
  }

  std::variant<server::upgrade_refused, server::upgrade_accepted> upgrade(
      const server::http_request& request) override {
    seen_->note(request.target);
    if (!request.target.starts_with("/ws")) {
      return server::upgrade_refused{{403, {}, "not here"}};
    }
    server::upgrade_accepted accepted;
    accepted.subprotocol = std::string{request.header("sec-websocket-protocol")};
    accepted.text = request.target == "/ws/text";
    accepted.message_limit = std::size_t{64} * 1024;
    accepted.start = [this](std::shared_ptr<server::socket> socket) {
      last_socket_ = socket;
      return std::make_shared<echo_events>(std::move(socket), seen_);
    };
    return accepted;
  }

  // On the loop.
  [[nodiscard]] bool waiting_peer_gone() const { return *gone_; }
  void answer_waiting() { std::exchange(reply_, nullptr)({200, {}, "at last"}); }
  [[nodiscard]] std::shared_ptr<server::socket> last_socket() const { return last_socket_.lock(); }

 private:
  std::shared_ptr<witness> seen_;
  std::shared_ptr<const std::atomic<bool>> gone_;
  std::function<void(server::http_response)> reply_;
  std::weak_ptr<server::socket> last_socket_;
};

class net_rig {
 public:
  explicit net_rig(server::net_limits limits = {}, std::size_t threads = 1,
                   std::shared_ptr<const server::live_tls> tls = nullptr) {
    std::vector<server::listener::thread> served;
    for (std::size_t i = 0; i < threads; ++i) {
      loops_.push_back(std::make_unique<server::thread_loop>());
      loops_.back()->start();
      apis_.push_back(std::make_shared<test_api>(seen_));
      served.push_back({loops_.back().get(), apis_.back()});
    }
    listener_ = std::make_unique<server::listener>(std::move(served), limits, std::move(tls));
    auto opened = listener_->open("127.0.0.1", 0);
    if (const auto* failed = std::get_if<server::listen_failed>(&opened)) {
      ADD_FAILURE() << failed->sentence;
    } else {
      port_ = std::get<std::uint16_t>(opened);
    }
  }
  ~net_rig() {
    listener_->stop(protocol::close_code::going_away, "the test is over", std::chrono::seconds{2});
    for (auto& loop : loops_) loop->stop();
  }

  /// Runs `what` on a loop and waits for its answer.
  template <class Function>
  auto on_loop(Function what, std::size_t thread = 0) {
    std::packaged_task<decltype(what())()> task{std::move(what)};
    auto answer = task.get_future();
    loops_[thread]->post(std::move(task));
    return answer.get();
  }

  /// Waits until a counter or condition that other threads move is as expected.
  template <class Condition>
  static bool eventually(Condition holds) {
    const auto by = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    while (!holds()) {
      if (std::chrono::steady_clock::now() > by) return false;
      std::this_thread::yield();
    }
    return true;
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  witness& seen() { return *seen_; }
  test_api& api(std::size_t thread = 0) { return *apis_[thread]; }
  server::listener& listener() { return *listener_; }
  [[nodiscard]] const server::net_counters& counters() const { return listener_->counters(); }

 private:
  std::shared_ptr<witness> seen_ = std::make_shared<witness>();
  std::vector<std::unique_ptr<server::thread_loop>> loops_;
  std::vector<std::shared_ptr<test_api>> apis_;
  std::unique_ptr<server::listener> listener_;
  std::uint16_t port_ = 0;
};

}  // namespace leasehold::test
