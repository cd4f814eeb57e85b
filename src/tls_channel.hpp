// One TLS connection of the server's side over a socket that does not block. Knows no loop: who
// drives it waits until the socket can do what it wants, and asks again.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

struct ssl_free {
  void operator()(SSL* what) const noexcept { SSL_free(what); }
};
using ssl_ptr = std::unique_ptr<SSL, ssl_free>;

class tls_channel {
 public:
  enum class step : std::uint8_t {
    done,
    wants_read,   ///< again when the socket can be read
    wants_write,  ///< again when the socket can be written, with the same bytes
    ended,        ///< the peer has said that it sends no more
    failed,       ///< the connection is of no use any more
  };
  struct moved {
    step how = step::failed;
    std::size_t bytes = 0;  ///< of a step that is done
  };

  explicit tls_channel(ssl_ptr made);
  tls_channel(const tls_channel&) = delete;
  tls_channel& operator=(const tls_channel&) = delete;
  ~tls_channel() = default;

  /// The socket; -1 takes it away before it is closed.
  void use(int descriptor) noexcept { descriptor_ = descriptor; }

  [[nodiscard]] step shake_hands();
  [[nodiscard]] moved read(void* into, std::size_t room);
  [[nodiscard]] moved write(std::string_view bytes);
  /// Says that nothing more is sent. The peer's own word is not waited for.
  step say_end();

  /// Why the handshake failed: a text that lives for ever and holds nothing of the peer's.
  [[nodiscard]] const char* fault() const noexcept { return fault_; }
  /// The peer has sent nothing at all.
  [[nodiscard]] bool heard_nothing() const noexcept { return !heard_; }
  /// What failed the handshake is a request in plain HTTP.
  [[nodiscard]] bool met_plain_http() const noexcept { return plain_http_; }
  /// The names in the certificate that the peer has proven to own, after the handshake.
  [[nodiscard]] std::vector<std::string> peer_names() const;

 private:
  static BIO_METHOD* socket_method();
  static int read_socket(BIO* bio, char* into, int room);
  static int write_socket(BIO* bio, const char* bytes, int count);
  step step_after(int result);
  void note_fault();

  int descriptor_ = -1;
  bool heard_ = false;
  bool plain_http_ = false;
  const char* fault_ = "";
  ssl_ptr ssl_;
};

}  // namespace leasehold::server
