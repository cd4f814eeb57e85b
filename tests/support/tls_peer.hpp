// A peer for tests that speaks TLS by hand, with the reading calls of raw_peer.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "certificates.hpp"

namespace leasehold::test {

/// What the client wants of TLS.
struct tls_wish {
  std::filesystem::path ca;
  certificate_files own = {};  ///< empty paths: it has none
  int most_version = 0;        ///< TLS1_1_VERSION; 0: as OpenSSL has it
  std::string protocols = {};  ///< ALPN, as on the wire
  int receive_buffer = 0;      ///< of the kernel; 0: its own choice
};

class tls_peer {
 public:
  /// Connects and shakes hands.
  tls_peer(std::uint16_t port, const tls_wish& wish) : context_(SSL_CTX_new(TLS_client_method())) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes as if to a file
    SSL_CTX_load_verify_file(context_.get(), wish.ca.c_str());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (wish.most_version != 0) {
      // Level 0 allows what OpenSSL itself would refuse: the server is to be asked.
      SSL_CTX_set_security_level(context_.get(), 0);
      SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
      SSL_CTX_set_max_proto_version(context_.get(), wish.most_version);
    }
    if (!wish.own.certificate.empty()) {
      SSL_CTX_use_certificate_chain_file(context_.get(), wish.own.certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), wish.own.key.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    if (!wish.protocols.empty()) {
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(wish.protocols.data()),
                          static_cast<unsigned>(wish.protocols.size()));
    }
    SSL_set1_host(ssl_.get(), "localhost");
    connect(port, wish.receive_buffer);
    SSL_set_fd(ssl_.get(), descriptor_);
    ERR_clear_error();
    secure_ = SSL_connect(ssl_.get()) == 1;
    if (!secure_) note_fault();
  }
  tls_peer(const tls_peer&) = delete;
  tls_peer& operator=(const tls_peer&) = delete;
  ~tls_peer() { close(); }

  [[nodiscard]] bool secure() const { return secure_; }
  /// Why the handshake, or a read, failed: OpenSSL's own words.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// The server has said that it sends no more, before it closed.
  [[nodiscard]] bool heard_end() const {
    return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  [[nodiscard]] SSL* session() const { return ssl_.get(); }
  [[nodiscard]] std::string protocol() const {
    const unsigned char* text = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl_.get(), &text, &length);
    return {reinterpret_cast<const char*>(text), length};
  }
  /// The number of the server's certificate.
  [[nodiscard]] long serial() const {
    const X509* shown = SSL_get0_peer_certificate(ssl_.get());
    return shown == nullptr ? 0 : ASN1_INTEGER_get(X509_get0_serialNumber(shown));
  }

  bool send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  /// Closes without a word.
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  std::optional<std::string> read_until(std::string_view text) {
    for (;;) {
      if (const auto at = read_.find(text); at != std::string::npos) return take(at + text.size());
      if (!read_more()) return std::nullopt;
    }
  }
  std::optional<std::string> read_exactly(std::size_t bytes) {
    while (read_.size() < bytes) {
      if (!read_more()) return std::nullopt;
    }
    return take(bytes);
  }
  /// Everything up to the end, whichever it is.
  std::string read_to_end() {
    while (read_more()) {
    }
    return take(read_.size());
  }

 private:
  struct free_context {
    void operator()(SSL_CTX* what) const { SSL_CTX_free(what); }
  };
  struct free_session {
    void operator()(SSL* what) const { SSL_free(what); }
  };

  void connect(std::uint16_t port, int receive_buffer) {
    descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{40, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (receive_buffer > 0) {
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Where nobody listens the handshake fails, and says so.
    (void)::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  void note_fault() {
    const char* text = ERR_reason_error_string(ERR_peek_error());
    fault_ = text == nullptr ? "closed" : text;
  }
  std::string take(std::size_t bytes) {
    std::string taken = read_.substr(0, bytes);
    read_.erase(0, bytes);
    return taken;
  }
  bool read_more() {
    std::array<char, 16384> buffer{};
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0) {
      note_fault();
      return false;
    }
    read_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  std::unique_ptr<SSL_CTX, free_context> context_;
  std::unique_ptr<SSL, free_session> ssl_;
  int descriptor_ = -1;
  bool secure_ = false;
  std::string fault_;
  std::string read_;
};

}  // namespace leasehold::test
