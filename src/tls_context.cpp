#include "src/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <system_error>

#include "src/file_access.hpp"

namespace leasehold::server {
namespace {

namespace fs = std::filesystem;

constexpr int security_bits = 2;     // of OpenSSL's levels: 112 bits and more
constexpr int longest_chain = 8;     // certificates between a client's and its root
constexpr long chain_bytes = 65536;  // of a client
/// Of TLS 1.2; those of 1.3 are all good. Each has forward secrecy and authenticates what it
/// encrypts.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::array<unsigned char, 9> http{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// The newest reason of OpenSSL. It names no content of a file.
std::string newest_reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return text == nullptr ? "it cannot be read" : text;
}

std::string named(const char* what, const fs::path& file) {
  return std::string("The ") + what + " file " + file.string();
}

std::optional<std::string> find_reading_fault(const char* what, const fs::path& file,
                                              struct stat& found) {
  if (::stat(file.c_str(), &found) != 0 || ::access(file.c_str(), R_OK) != 0) {
    return named(what, file) + " cannot be read: " + std::generic_category().message(errno) + ".";
  }
  if (!S_ISREG(found.st_mode)) return named(what, file) + " is not a regular file.";
  return std::nullopt;
}

/// A key of root may be shared with a group: that is how keys are kept for those who serve with
/// them.
std::optional<std::string> find_key_access_fault(const fs::path& file, const struct stat& found) {
  if (found.st_uid == 0 && (found.st_mode & 0037U) == 0) return std::nullopt;
  return find_access_fault("private key", file, found, privacy::reached_by_nobody_else,
                           ::geteuid());
}

/// A server has nobody to ask for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length,
                    const unsigned char* offered, unsigned int offered_length, void*) {
  unsigned char* found = nullptr;
  const int how =
      SSL_select_next_proto(&found, length, http.data(), http.size(), offered, offered_length);
  *chosen = found;
  return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// A session is never resumed: each connection proves itself anew, to the files as they are now.
bool set_up(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // One record at a time: who sends records that carry nothing waits for its turn behind others.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_security_level(context, security_bits);
  SSL_CTX_set_max_cert_list(context, chain_bytes);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, ciphers) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1;
}

std::optional<std::string> load_certificate(SSL_CTX* into, const fs::path& file) {
  struct stat found {};
  if (auto fault = find_reading_fault("certificate", file, found)) return fault;
  if (SSL_CTX_use_certificate_chain_file(into, file.c_str()) == 1) return std::nullopt;
  return named("certificate", file) +
         " holds no certificate (PEM) that can be used: " + newest_reason() + ".";
}

std::optional<std::string> load_key(SSL_CTX* into, const tls_files& from) {
  struct stat found {};
  if (auto fault = find_reading_fault("private key", from.private_key, found)) return fault;
  if (auto fault = find_key_access_fault(from.private_key, found)) return fault;
  if (SSL_CTX_use_PrivateKey_file(into, from.private_key.c_str(), SSL_FILETYPE_PEM) == 1) {
    return std::nullopt;
  }
  const unsigned long code = ERR_peek_last_error();
  if (ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH) {
    ERR_clear_error();
    return named("private key", from.private_key) + " does not belong to the certificate in " +
           from.certificate.string() + ".";
  }
  return named("private key", from.private_key) +
         " holds no key (PEM, without a passphrase) that can be used: " + newest_reason() + ".";
}

std::optional<std::string> load_client_ca(SSL_CTX* into, const tls_files& from) {
  if (from.clients == client_certificates::none) return std::nullopt;
  struct stat found {};
  if (auto fault = find_reading_fault("client CA", from.client_ca, found)) return fault;
  auto* names = SSL_load_client_CA_file(from.client_ca.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(into, from.client_ca.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return named("client CA", from.client_ca) +
           " holds no certificate (PEM) that can be used: " + newest_reason() + ".";
  }
  SSL_CTX_set_client_CA_list(into, names);
  SSL_CTX_set_verify_depth(into, longest_chain);
  const bool required = from.clients == client_certificates::required;
  SSL_CTX_set_verify(into, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return std::nullopt;
}

std::int64_t end_of(const X509* certificate) {
  std::tm at{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &at) != 1) {
    return 0;
  }
  return ::timegm(&at);
}

}  // namespace

std::variant<std::shared_ptr<const tls_context>, tls_fault> tls_context::read(
    const tls_files& from) {
  ERR_clear_error();
  context_ptr made{SSL_CTX_new(TLS_server_method())};
  if (made == nullptr || !set_up(made.get())) {
    return tls_fault{"OpenSSL cannot be set up for TLS 1.2 and 1.3: " + newest_reason() + "."};
  }
  auto fault = load_certificate(made.get(), from.certificate);
  if (!fault) fault = load_key(made.get(), from);
  if (!fault) fault = load_client_ca(made.get(), from);
  if (fault) return tls_fault{std::move(*fault)};
  const std::int64_t expires_s = end_of(SSL_CTX_get0_certificate(made.get()));
  return std::shared_ptr<const tls_context>(new tls_context(std::move(made), expires_s));
}

bool tls_context::has_expired() const {
  return X509_cmp_current_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get()))) < 0;
}

std::unique_ptr<tls_channel> tls_context::open() const {
  return std::make_unique<tls_channel>(ssl_ptr{SSL_new(context_.get())});
}

}  // namespace leasehold::server
