// One session that a postgres_proxy passes on: its two sockets, and the messages between them.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/postgres_proxy.hpp"

namespace leasehold::tests {

class postgres_session {
 public:
  using time = std::chrono::steady_clock::time_point;
  /// Says which fault meets a message, if one does.
  using judge = std::function<std::shared_ptr<const proxy_fault>(const passing_message&)>;

  static time never() { return time::max(); }
  static int milliseconds_to(time at);

  /// Owns both sockets.
  postgres_session(int client, int server, int number);
  ~postgres_session();
  postgres_session(const postgres_session&) = delete;
  postgres_session& operator=(const postgres_session&) = delete;

  void add_to(std::vector<pollfd>& polled) const;
  [[nodiscard]] time next_due() const;
  /// Reads what is there and passes on what is due.
  void move(const judge& what_meets);
  /// Passes nothing any more. A server that sees the end has read what was passed on before.
  void end(bool closes_client, bool closes_server);
  /// Closes what was left open in silence.
  void close_silent();

  [[nodiscard]] bool is_passing() const { return !ended_; }
  [[nodiscard]] bool is_over() const { return client_ < 0 && server_ < 0; }

 private:
  struct chunk {
    time due;
    std::string bytes;
  };
  /// One direction.
  struct way {
    std::string read;        ///< not a whole message yet
    std::deque<chunk> kept;  ///< to be written
    bool source_ended = false;
  };

  [[nodiscard]] int& source(toward to) { return to == toward::server ? client_ : server_; }
  [[nodiscard]] int target(toward to) const { return to == toward::server ? server_ : client_; }
  way& of(toward to) { return to == toward::server ? to_server_ : to_client_; }

  void read(toward to);
  void take_messages(toward to, const judge& what_meets);
  /// The bytes of the message that `from` begins with; 0: it is not whole.
  [[nodiscard]] std::size_t size_of_message(toward to, std::string_view from) const;
  bool answers_encryption(std::string_view message);
  passing_message describe(toward to, std::string_view message);
  void note_statement(passing_message& what);
  void meet(toward to, std::string message, const proxy_fault& fault);
  void keep(toward to, std::string bytes, std::chrono::milliseconds delay);
  void write(toward to);
  void write_all(toward to);
  void pass_ends_on();
  void drain_server();

  int client_;
  int server_;
  int number_;
  bool started_ = false;   ///< the client has said what it wants
  bool ended_ = false;     ///< nothing passes any more
  bool draining_ = false;  ///< the server has been told, and may still speak
  pid_t backend_ = 0;
  way to_server_;
  way to_client_;
  std::map<std::string, std::string, std::less<>> statements_;
  std::map<std::string, std::string, std::less<>> portals_;
};

}  // namespace leasehold::tests
