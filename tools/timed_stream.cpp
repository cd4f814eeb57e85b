#include "tools/timed_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace leasehold::tools {

error_code timed_socket::wait(short events) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock::now()).count();
  if (left <= 0) return asio::error::timed_out;
  std::array<pollfd, 2> both{{{socket_.native_handle(), events, 0}, {stop_descriptor_, POLLIN, 0}}};
  const int ready = ::poll(both.data(), both.size(),
                           static_cast<int>(std::min<std::int64_t>(left, 1'000'000'000)));
  if (ready < 0 && errno != EINTR) return {errno, boost::system::system_category()};
  if (ready > 0 && both[1].revents != 0) return asio::error::operation_aborted;
  return ready == 0 ? error_code(asio::error::timed_out) : error_code();
}

void teardown(boost::beast::role_type, any_stream& stream, error_code& error) {
  stream.plain().socket().shutdown(asio::ip::tcp::socket::shutdown_both, error);
}

error_code timed_connection::open(const client_options& options) {
  error_code error;
  if (options.where.tls && (error = prepare_tls(options))) return error;
  stream_ = std::make_unique<any_stream>(io_, tls_.get());
  const auto deadline = clock::now() + options.connect_timeout;
  stream_->plain().expires_at(deadline);
  stream_->plain().stop_at(options.stop_descriptor);
  if ((error = connect(options))) return error;
  if (auto* secure = stream_->secure()) {
    error_code no_address;
    asio::ip::make_address(options.where.host, no_address);
    if (no_address) {
      SSL_set_tlsext_host_name(secure->native_handle(), options.where.host.c_str());
    }
    secure->set_verify_callback(asio::ssl::host_name_verification(options.where.host), error);
    if (!error) secure->handshake(asio::ssl::stream_base::client, error);
  }
  return error;
}

error_code timed_connection::prepare_tls(const client_options& options) {
  error_code error;
  tls_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  tls_->set_verify_mode(asio::ssl::verify_peer, error);
  if (!error && options.ca_file.empty()) tls_->set_default_verify_paths(error);
  return error ? error : use_files(options);
}

error_code timed_connection::use_files(const client_options& options) {
  error_code error;
  const auto is_used = [&](std::string_view option, const std::string& file) {
    if (error) {
      file_fault_ = fmt::format("--{} \"{}\" cannot be used: {}", option, file, error.message());
    }
    return !error;
  };
  if (!options.ca_file.empty()) {
    tls_->load_verify_file(options.ca_file, error);
    if (!is_used("ca-file", options.ca_file)) return error;
  }
  if (options.cert_file.empty()) return error;
  // Nobody is there to be asked for a passphrase.
  tls_->set_password_callback([](std::size_t, auto) { return std::string(); }, error);
  tls_->use_certificate_chain_file(options.cert_file, error);
  if (!is_used("cert-file", options.cert_file)) return error;
  tls_->use_private_key_file(options.key_file, asio::ssl::context::pem, error);
  is_used("key-file", options.key_file);
  return error;
}

error_code timed_connection::cause_of(const error_code& error) {
  if (!stream_ || stream_->secure() == nullptr || !is_closed_by_peer(error)) return error;
  // A write that failed has not read what came before the connection was reset. Nothing is waited
  // for: the other side has closed.
  std::array<char, 1> unread{};
  error_code told;
  stream_->secure()->read_some(asio::buffer(unread), told);
  return told.category() == asio::error::get_ssl_category() ? told : error;
}

bool is_closed_by_peer(const error_code& error) {
  return error == asio::error::connection_reset || error == asio::error::broken_pipe ||
         error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

error_code timed_connection::connect(const client_options& options) {
  error_code error;
  asio::ip::tcp::resolver resolver(io_);
  const auto found = resolver.resolve(options.where.host, options.where.port, error);
  if (error) return error;
  error = asio::error::host_not_found;
  for (const auto& candidate : found) {
    auto& socket = stream_->plain().socket();
    error_code ignored;
    socket.close(ignored);
    socket.open(candidate.endpoint().protocol(), error);
    // Asio leaves it open for programs that are run.
    if (!error) ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    if (!error) socket.non_blocking(true, error);
    if (!error) error = connect_to(candidate.endpoint());
    if (!error) break;
  }
  if (!error) stream_->plain().socket().set_option(asio::ip::tcp::no_delay(true), error);
  return error;
}

error_code timed_connection::connect_to(const asio::ip::tcp::endpoint& where) {
  auto& socket = stream_->plain().socket();
  // Asio waits without end for a connect of its own, even on a socket that does not block.
  if (::connect(socket.native_handle(), where.data(), static_cast<socklen_t>(where.size())) == 0) {
    return {};
  }
  if (errno != EINPROGRESS) return {errno, boost::system::system_category()};
  if (auto error = stream_->plain().wait(POLLOUT)) return error;
  int failed = 0;
  socklen_t size = sizeof failed;
  ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &failed, &size);
  return {failed, boost::system::system_category()};
}

}  // namespace leasehold::tools
