#include "support/postgres_proxy.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/postgres_session.hpp"

namespace leasehold::tests {

namespace {

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  path.string().copy(out.sun_path, sizeof out.sun_path - 1);
  return out;
}

int unix_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

bool begins_with_commit(std::string_view text) {
  constexpr std::string_view word = "commit";
  return text.size() >= word.size() &&
         std::ranges::equal(text.substr(0, word.size()), word, {},
                            [](char c) { return std::tolower(static_cast<unsigned char>(c)); });
}

}  // namespace

bool is_commit(const passing_message& what) {
  if (what.to == toward::client) return what.type == 'C' && begins_with_commit(what.body);
  return (what.type == 'Q' || what.type == 'E') && begins_with_commit(what.statement);
}

proxy_fault cut_before(toward to, int nth) {
  proxy_fault out;
  out.to = to;
  out.nth = nth;
  return out;
}

proxy_fault cut_after(toward to, int nth) {
  auto out = cut_before(to, nth);
  out.passes = true;
  return out;
}

/// The proxy's thread and what it shares with the test.
class postgres_proxy::relay {
 public:
  relay(const std::filesystem::path& own, std::filesystem::path server)
      : server_(std::move(server)), listener_(unix_socket()), bell_(::eventfd(0, EFD_CLOEXEC)) {
    const auto address = address_of(own);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~relay() {
    thread_.request_stop();
    ring();
    thread_.join();
    ::close(listener_);
    ::close(bell_);
  }
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  void set(proxy_fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::make_shared<proxy_fault>(std::move(fault));
    counted_ = 0;
    hits_ = 0;
    met_.clear();
  }
  void heal() {
    {
      const std::lock_guard lock(mutex_);
      fault_.reset();
    }
    heals_ = true;
    set_link(proxy_link::open);
  }
  /// Returns when it holds.
  void set_link(proxy_link how) {
    link_ = how;
    const auto before = turns_.load();
    ring();
    // The turn that runs may have looked at the link already; the one after it has not.
    while (turns_.load() < before + 2 && !thread_.get_stop_token().stop_requested()) {
      ring();
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
  }
  [[nodiscard]] int hits() const {
    const std::lock_guard lock(mutex_);
    return hits_;
  }
  [[nodiscard]] int counted() const {
    const std::lock_guard lock(mutex_);
    return counted_;
  }
  [[nodiscard]] std::string met() const {
    const std::lock_guard lock(mutex_);
    return met_;
  }
  [[nodiscard]] int sessions() const { return open_; }

 private:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_, &one, sizeof one);
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      apply_link();
      std::vector<pollfd> polled{{listener_, POLLIN, 0}, {bell_, POLLIN, 0}};
      auto next = postgres_session::never();
      for (auto& each : sessions_) {
        each.add_to(polled);
        next = std::min(next, each.next_due());
      }
      ++turns_;
      ::poll(polled.data(), polled.size(), postgres_session::milliseconds_to(next));
      if ((polled[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto read = ::read(bell_, &count, sizeof count);
      }
      for (auto& each : sessions_) {
        each.move([this](const passing_message& what) { return judge(what); });
      }
      sessions_.remove_if([](const postgres_session& each) { return each.is_over(); });
      if ((polled[0].revents & POLLIN) != 0) accept();
      open_ = static_cast<int>(std::ranges::count_if(
          sessions_, [](const postgres_session& each) { return each.is_passing(); }));
    }
  }

  void apply_link() {
    const auto now = link_.load();
    if (heals_.exchange(false)) {
      for (auto& each : sessions_) each.close_silent();
    }
    if (now == applied_) return;
    for (auto& each : sessions_) {
      switch (now) {
        case proxy_link::open:
          break;
        case proxy_link::refused:
          each.end(true, true);
          break;
        case proxy_link::silent:
          each.end(false, false);
          break;
      }
    }
    applied_ = now;
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    if (applied_ == proxy_link::refused) {
      ::close(client);
      return;
    }
    const int server = unix_socket();
    const auto address = address_of(server_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(server);
      ::close(client);
      return;
    }
    auto& made = sessions_.emplace_back(client, server, ++last_session_);
    if (applied_ == proxy_link::silent) made.end(false, false);
  }

  /// The fault, when it meets this message.
  std::shared_ptr<const proxy_fault> judge(const passing_message& what) {
    const std::lock_guard lock(mutex_);
    if (!fault_ || fault_->to != what.to || (fault_->matches && !fault_->matches(what))) return {};
    ++counted_;
    const bool meets = fault_->lasts ? counted_ >= fault_->nth : counted_ == fault_->nth;
    if (!meets) return {};
    if (++hits_ == 1) {
      met_ = std::string(what.to == toward::server ? "to the server " : "to the client ") +
             (what.type == 0 ? '-' : what.type) + " of session " + std::to_string(what.session) +
             ": " + std::string(what.statement.substr(0, 60));
    }
    return fault_;
  }

  std::filesystem::path server_;
  int listener_;
  int bell_;
  std::list<postgres_session> sessions_;
  int last_session_ = 0;
  proxy_link applied_ = proxy_link::open;
  std::atomic<proxy_link> link_{proxy_link::open};
  std::atomic<bool> heals_{false};
  std::atomic<std::int64_t> turns_{0};
  std::atomic<int> open_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const proxy_fault> fault_;
  int counted_ = 0;
  int hits_ = 0;
  std::string met_;
  std::jthread thread_;
};

postgres_proxy::postgres_proxy(std::filesystem::path server_socket)
    : relay_(std::make_unique<relay>(place_.path() / ".s.PGSQL.5432", std::move(server_socket))) {}
postgres_proxy::~postgres_proxy() = default;

void postgres_proxy::set(proxy_fault fault) { relay_->set(std::move(fault)); }
void postgres_proxy::heal() { relay_->heal(); }
void postgres_proxy::set_link(proxy_link how) { relay_->set_link(how); }
int postgres_proxy::hits() const { return relay_->hits(); }
std::string postgres_proxy::met() const { return relay_->met(); }
int postgres_proxy::counted() const { return relay_->counted(); }
int postgres_proxy::sessions() const { return relay_->sessions(); }

}  // namespace leasehold::tests
