#include "src/tls_channel.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "src/certificate_names.hpp"

namespace leasehold::server {
namespace {

int int_of(std::size_t bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max()));
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

bool passes_by_itself() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

// Not OpenSSL's own socket: that one raises SIGPIPE when the peer has gone.
BIO_METHOD* tls_channel::socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

tls_channel::tls_channel(ssl_ptr made) : ssl_(std::move(made)) {
  if (ssl_ == nullptr) return;
  BIO* socket = BIO_new(socket_method());
  if (socket == nullptr) {
    ssl_.reset();
    return;
  }
  BIO_set_data(socket, this);
  BIO_set_init(socket, 1);
  SSL_set_bio(ssl_.get(), socket, socket);
  SSL_set_accept_state(ssl_.get());
}

int tls_channel::read_socket(BIO* bio, char* into, int room) {
  auto* self = static_cast<tls_channel*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto got = ::recv(self->descriptor_, into, static_cast<std::size_t>(room), 0);
  if (got < 0 && passes_by_itself()) BIO_set_retry_read(bio);
  if (got > 0) self->heard_ = true;
  return static_cast<int>(got);
}

int tls_channel::write_socket(BIO* bio, const char* bytes, int count) {
  auto* self = static_cast<tls_channel*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(self->descriptor_, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
  if (sent < 0 && passes_by_itself()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

tls_channel::step tls_channel::step_after(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return step::done;
    case SSL_ERROR_WANT_READ:
      return step::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return step::wants_write;
    case SSL_ERROR_ZERO_RETURN:
      return step::ended;
    default:
      return step::failed;
  }
}

tls_channel::step tls_channel::shake_hands() {
  fault_ = "no memory for a connection";
  if (ssl_ == nullptr) return step::failed;
  ERR_clear_error();
  const step how = step_after(SSL_do_handshake(ssl_.get()));
  if (how == step::failed || how == step::ended) note_fault();
  return how;
}

void tls_channel::note_fault() {
  const unsigned long first = ERR_peek_error();
  const int reason = ERR_GET_REASON(first);
  const bool of_tls = ERR_GET_LIB(first) == ERR_LIB_SSL;
  plain_http_ = of_tls && reason == SSL_R_HTTP_REQUEST;
  const char* text = first == 0 ? nullptr : ERR_reason_error_string(first);
  if (of_tls && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    text = X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()));
  }
  fault_ = text == nullptr ? "the peer closed the connection" : text;
  ERR_clear_error();
}

tls_channel::moved tls_channel::read(void* into, std::size_t room) {
  ERR_clear_error();
  const int got = SSL_read(ssl_.get(), into, int_of(room));
  if (got > 0) return {step::done, static_cast<std::size_t>(got)};
  return {step_after(got), 0};
}

tls_channel::moved tls_channel::write(std::string_view bytes) {
  ERR_clear_error();
  const int sent = SSL_write(ssl_.get(), bytes.data(), int_of(bytes.size()));
  if (sent > 0) return {step::done, static_cast<std::size_t>(sent)};
  return {step_after(sent), 0};
}

tls_channel::step tls_channel::say_end() {
  if (ssl_ == nullptr || SSL_is_init_finished(ssl_.get()) == 0) return step::failed;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  return result >= 0 ? step::done : step_after(result);
}

std::vector<std::string> tls_channel::peer_names() const {
  const X509* shown = SSL_get0_peer_certificate(ssl_.get());
  if (shown == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return {};
  return names_of(*shown);
}

}  // namespace leasehold::server
