// Stands between a client of PostgreSQL and the server, reads the messages of both (the frontend
// and backend protocol, version 3) and does to the n-th of them what networks do. It uses nothing
// of libpq. Sessions are not encrypted: who asks for encryption is told that there is none.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "support/temporary_directory.hpp"

namespace leasehold::tests {

enum class toward : std::uint8_t { server, client };

/// A message on its way.
struct passing_message {
  toward to = toward::server;
  char type = 0;               ///< as on the wire; 0: the start of a session, which has none
  std::string_view body;       ///< behind the length
  std::string_view statement;  ///< toward the server: the SQL that it parses, binds or executes
  int session = 0;             ///< 1 is the first that connected
  pid_t backend = 0;           ///< the server's process for the session; 0: not known yet
};

/// Whether it asks for a commit, or says that there was one.
bool is_commit(const passing_message& what);

/// What happens at the n-th message of those that match, counted over all sessions since it was
/// set.
struct proxy_fault {
  toward to = toward::server;
  int nth = 1;
  /// Empty: every message counts.
  std::function<bool(const passing_message&)> matches;
  /// Whether the message is passed on.
  bool passes = false;
  /// Whether nothing of its session passes any more, in either direction.
  bool ends = true;
  /// Of an ended session: whether the client, and the server, see its end. Who does not hears
  /// nothing until heal().
  bool closes_client = true;
  bool closes_server = true;
  /// How long it is kept back before it is passed on; later ones stay behind it.
  std::chrono::milliseconds delay{0};
  /// The n-th and each one after it.
  bool lasts = false;
  /// Called before anything else happens to the message, on the proxy's thread; what came before it
  /// has been passed on.
  std::function<void(const passing_message&)> first;
};

/// The usual ones.
proxy_fault cut_before(toward to, int nth);
proxy_fault cut_after(toward to, int nth);

enum class proxy_link : std::uint8_t {
  open,
  refused,  ///< sessions are cut, new ones at once
  silent,   ///< nothing passes, new sessions hear nothing
};

class postgres_proxy {
 public:
  /// Listens on a socket of its own and leads to that of a server.
  explicit postgres_proxy(std::filesystem::path server_socket);
  ~postgres_proxy();
  postgres_proxy(const postgres_proxy&) = delete;
  postgres_proxy& operator=(const postgres_proxy&) = delete;

  /// Where the socket is: a host as libpq takes it, with port 5432.
  [[nodiscard]] const std::filesystem::path& directory() const { return place_.path(); }

  /// Takes the place of the fault before it.
  void set(proxy_fault fault);
  /// No fault from now on, and an open link. Sessions that were left in silence end.
  void heal();
  void set_link(proxy_link how);

  /// How many messages the fault has met.
  [[nodiscard]] int hits() const;
  /// What the first of them was, for people.
  [[nodiscard]] std::string met() const;
  /// Messages that match the fault's, since it was set.
  [[nodiscard]] int counted() const;
  /// Sessions whose both ends are open and of which messages pass.
  [[nodiscard]] int sessions() const;

 private:
  class relay;
  temporary_directory place_;
  std::unique_ptr<relay> relay_;
};

}  // namespace leasehold::tests
