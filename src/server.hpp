// leaseholdd put together: store, clock, threads, coordinator, API and listener, in the order in
// which they need each other, and taken apart in the opposite one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "src/options.hpp"

namespace leasehold::server {

/// What kept the server from starting: one sentence with the way out. The exit code tells what was
/// set up wrongly (exit_bad_options) from what may be gone at the next try.
struct start_failed {
  std::string sentence;
  int exit_code = EXIT_FAILURE;
};

/// Used on the thread that started it, which is none of its own.
class server {
 public:
  /// Of a store that no other coordinator can have: returns once it serves. Else it is a standby at
  /// first, and `wake` is called, on any thread, when look_after is to be called at once.
  static std::variant<std::unique_ptr<server>, start_failed> start(invocation how,
                                                                   std::function<void()> wake = {});
  /// Stops, when nobody has.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Reads the options and principals again; what is wrong is logged and changes nothing. Takes
  /// over principals, limits, the default policies, origins and the log's level.
  void reload();

  /// What is done now and then, every second or so: becomes the active coordinator once the epoch
  /// is taken; logs that connections were turned away, at most once a minute. Why it cannot go on.
  std::optional<start_failed> look_after();

  /// No new work: offers end, submits and streams are refused, workers are told to finish.
  void drain();
  /// True once no job's lease is live, or drain_timeout has passed since drain().
  [[nodiscard]] bool drained() const;

  /// Ends what is open, commits what waits, and takes everything apart.
  void stop();
  /// Ends the process now, as a crash would; the store is made for that.
  [[noreturn]] void end_at_once(int exit_code);

 private:
  struct parts;
  explicit server(std::unique_ptr<parts> made);
  std::unique_ptr<parts> parts_;
};

/// Starts, serves until SIGTERM or SIGINT has drained it (a second one ends it at once), reloads at
/// SIGHUP. Returns the exit code.
int run_server(invocation how);

}  // namespace leasehold::server
