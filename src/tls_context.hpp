// What TLS connections begin with: the server's certificate and key, whom it believes, and what of
// TLS it speaks. Read whole and checked; a reload replaces it for the connections that come then.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "src/tls_channel.hpp"

namespace leasehold::server {

enum class client_certificates : std::uint8_t { none, optional, required };

/// PEM files.
struct tls_files {
  std::filesystem::path certificate;  ///< the server's, with those between it and its root
  std::filesystem::path private_key;  ///< without a passphrase
  std::filesystem::path client_ca;    ///< who signs clients' certificates; unless `none`
  client_certificates clients = client_certificates::none;
};

/// What is wrong with them: one sentence with the file and the way out, and nothing of a key.
struct tls_fault {
  std::string sentence;
};

class tls_context {
 public:
  static std::variant<std::shared_ptr<const tls_context>, tls_fault> read(const tls_files& from);

  /// For one connection.
  [[nodiscard]] std::unique_ptr<tls_channel> open() const;
  /// When the server's certificate ends, in seconds since 1970.
  [[nodiscard]] std::int64_t expires_s() const noexcept { return expires_s_; }
  [[nodiscard]] bool has_expired() const;

 private:
  struct context_free {
    void operator()(SSL_CTX* what) const noexcept { SSL_CTX_free(what); }
  };
  using context_ptr = std::unique_ptr<SSL_CTX, context_free>;

  tls_context(context_ptr context, std::int64_t expires_s)
      : context_(std::move(context)), expires_s_(expires_s) {}

  context_ptr context_;
  std::int64_t expires_s_;
};

/// The context as of the last good reload; any thread.
class live_tls {
 public:
  explicit live_tls(std::shared_ptr<const tls_context> initial) : current_(std::move(initial)) {}
  [[nodiscard]] std::shared_ptr<const tls_context> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void replace(std::shared_ptr<const tls_context> with) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(with);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const tls_context> current_;
};

}  // namespace leasehold::server
