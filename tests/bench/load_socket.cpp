#include "load_socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace leasehold::bench {

namespace {
constexpr std::size_t read_bytes = std::size_t{256} * 1024;
}

load_socket::load_socket(std::uint16_t port, int receive_buffer)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  gone_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0;
  ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
}

load_socket::~load_socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

load_socket::load_socket(load_socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      gone_(other.gone_),
      out_(std::move(other.out_)),
      sent_(other.sent_),
      in_(std::move(other.in_)),
      taken_(other.taken_) {}

void load_socket::flush() {
  while (!gone_ && waits_to_write()) {
    const auto sent = ::send(descriptor_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0) {
      gone_ = errno != EAGAIN;
      return;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
}

void load_socket::fill() {
  in_.erase(0, std::exchange(taken_, 0));
  for (;;) {
    const auto had = in_.size();
    in_.resize(had + read_bytes);
    const auto got = ::recv(descriptor_, in_.data() + had, read_bytes, 0);
    in_.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0 || (got < 0 && errno != EAGAIN)) gone_ = true;
    if (std::cmp_less(got, read_bytes)) return;
  }
}

}  // namespace leasehold::bench
