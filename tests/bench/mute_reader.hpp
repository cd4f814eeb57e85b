// A worker that does not read: it upgrades, says Hello, takes credit by its Welcome, and from then
// on only asks, for answer after answer, until it is closed or cut off.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "load_stream.hpp"

namespace leasehold::bench {

class mute_reader {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  struct options {
    std::uint16_t port = 0;
    std::string principal;
    std::string token;
    std::string incarnation;  ///< 32 hexadecimal digits
    std::string queue;
    std::size_t frames = 32;  ///< of one message, each of which is refused
  };

  explicit mute_reader(const options& how);

  /// Was not upgraded, or has been closed since.
  [[nodiscard]] bool gone() noexcept { return stream_.socket().gone(); }
  [[nodiscard]] load_socket& socket() noexcept { return stream_.socket(); }
  /// Asks for more answers, unless what it asked for before has not gone yet.
  void ask();
  /// Looks at what has come, without taking it; `hung_up`: the other end has closed.
  void look(time_point now, bool hung_up);
  /// When it was closed; nothing while it is open.
  [[nodiscard]] std::optional<time_point> ended() const noexcept { return ended_; }
  /// From when nothing more could come to it until it was closed; nothing while it is open.
  [[nodiscard]] std::optional<std::chrono::duration<double>> took() const noexcept { return took_; }

 private:
  std::int64_t read_welcome();

  load_stream stream_;
  std::string requests_;  ///< one message
  int unread_ = 0;        ///< bytes
  time_point stuck_since_;
  std::optional<time_point> ended_;
  std::optional<std::chrono::duration<double>> took_;
};

/// Lets all of them ask every `pause` until `enough` says so, and looks at them in between.
void keep_asking(std::vector<mute_reader>& all, std::chrono::milliseconds pause,
                 const std::function<bool()>& enough);

}  // namespace leasehold::bench
