// A coordinator for one lock, as far as its holder can see: the HTTP shapes of /v1/locks, and the
// ways in which they go wrong.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::tests {

class fake_lock_server {
 public:
  fake_lock_server();
  ~fake_lock_server();

  [[nodiscard]] std::string url() const;

  /// Somebody else has the lock until free().
  void hold();
  void free();
  /// The lock is held; a waiter that still waits then gets it.
  void hold_for(std::chrono::milliseconds time);
  /// The generation ends: long polls are told at once, renews are refused with `reason`.
  void end_generation(const std::string& reason);
  /// As end_generation, but long polls are told nothing.
  void refuse_renews(int status, const std::string& reason);
  /// Takes calls from now on and never answers.
  void fall_silent();
  /// The next so many granted acquires, or accepted renews, take effect and are not answered.
  void lose_answers(int count);
  /// What a refused credential gets.
  void refuse_everybody();

  struct seen {
    int grants = 0;
    std::int64_t renews = 0;            ///< accepted
    int releases = 0;                   ///< accepted
    std::set<std::string> request_ids;  ///< of acquires
    std::vector<boost::json::object> acquires;
  };
  [[nodiscard]] seen so_far() const;
  /// When the coordinator takes the term for over, in ms of CLOCK_BOOTTIME.
  [[nodiscard]] std::int64_t expires_boot_ms() const;

 private:
  struct answer {
    int status = 0;  ///< 0: none is given
    boost::json::object body;
  };
  void serve(boost::asio::ip::tcp::socket& socket);
  answer answer_to(const std::string& method, const std::string& target, const std::string& body);
  answer acquire(const boost::json::object& body, std::unique_lock<std::mutex>& hold);
  answer renew(const boost::json::object& body);
  answer release(const boost::json::object& body);
  answer watch(const std::string& target, std::unique_lock<std::mutex>& hold);
  answer with_lock(int status, const char* decision, const char* reason);
  [[nodiscard]] boost::json::object lock() const;

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  bool is_held_elsewhere_ = false;
  std::int64_t held_until_ms_ = 0;
  bool is_silent_ = false;
  bool refuses_everybody_ = false;
  int lost_answers_ = 0;
  int refusal_status_ = 0;
  std::string refusal_;
  std::string state_ = "vacant";
  std::string holder_;
  std::string granted_request_;
  boost::json::object target_;
  std::string program_;
  std::int64_t generation_ = 0;
  std::int64_t ttl_ms_ = 0;
  std::int64_t acquired_at_ = 0;
  std::int64_t renewed_at_ = 0;
  std::int64_t expires_at_ = 0;
  std::int64_t sequence_ = 0;
  seen seen_;
  std::list<boost::asio::ip::tcp::socket> sockets_;
  std::vector<std::thread> threads_;  ///< one a connection
  std::thread accepting_;
};

}  // namespace leasehold::tests
