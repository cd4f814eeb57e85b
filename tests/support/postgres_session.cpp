#include "support/postgres_session.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace leasehold::tests {

namespace {

constexpr std::uint32_t asks_for_tls = 80877103;
constexpr std::uint32_t asks_for_gss = 80877104;
constexpr std::size_t length_bytes = 4;

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    out = out << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return out;
}

/// The text up to the next zero, which is taken from the front.
std::string_view next_text(std::string_view& from) {
  const auto end = from.find('\0');
  const auto out = from.substr(0, end);
  from.remove_prefix(end == std::string_view::npos ? from.size() : end + 1);
  return out;
}

void close_if_open(int& socket) {
  if (socket >= 0) ::close(socket);
  socket = -1;
}

}  // namespace

int postgres_session::milliseconds_to(time at) {
  if (at == never()) return -1;
  const auto left = at - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

postgres_session::postgres_session(int client, int server, int number)
    : client_(client), server_(server), number_(number) {}

postgres_session::~postgres_session() {
  close_if_open(client_);
  close_if_open(server_);
}

void postgres_session::add_to(std::vector<pollfd>& polled) const {
  const auto add = [&polled](int socket, const way& from, const way& to) {
    if (socket < 0) return;
    short wanted = from.source_ended ? short{0} : POLLIN;
    if (!to.kept.empty() && to.kept.front().due <= std::chrono::steady_clock::now()) {
      wanted = static_cast<short>(wanted | POLLOUT);
    }
    // A socket that is asked for nothing would still tell of its end, again and again.
    if (wanted != 0) polled.push_back({socket, wanted, 0});
  };
  if (draining_) {
    polled.push_back({server_, POLLIN, 0});
  } else if (!ended_) {
    add(client_, to_server_, to_client_);
    add(server_, to_client_, to_server_);
  }
}

postgres_session::time postgres_session::next_due() const {
  auto out = never();
  const auto now = std::chrono::steady_clock::now();
  if (ended_) return out;
  for (const auto* each : {&to_server_, &to_client_}) {
    if (!each->kept.empty() && each->kept.front().due > now) {
      out = std::min(out, each->kept.front().due);
    }
  }
  return out;
}

void postgres_session::move(const judge& what_meets) {
  if (draining_) return drain_server();
  for (const auto to : {toward::server, toward::client}) {
    if (ended_) return;
    read(to);
    take_messages(to, what_meets);
    if (!ended_) write(to);
  }
  if (!ended_) pass_ends_on();
}

void postgres_session::read(toward to) {
  auto& into = of(to);
  std::array<char, 65536> room;
  while (!into.source_ended) {
    const auto size = ::recv(source(to), room.data(), room.size(), MSG_DONTWAIT);
    if (size > 0) {
      into.read.append(room.data(), static_cast<std::size_t>(size));
      continue;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    into.source_ended = true;
  }
}

void postgres_session::take_messages(toward to, const judge& what_meets) {
  auto& from = of(to).read;
  std::size_t at = 0;
  while (!ended_) {
    const auto rest = std::string_view(from).substr(at);
    const auto size = size_of_message(to, rest);
    if (size == 0) break;
    at += size;
    const auto message = rest.substr(0, size);
    if (to == toward::server && answers_encryption(message)) continue;
    const auto described = describe(to, message);
    const auto fault = what_meets(described);
    if (fault) {
      if (fault->first) {
        write_all(to);
        fault->first(described);
      }
      meet(to, std::string(message), *fault);
    } else {
      keep(to, std::string(message), {});
    }
  }
  from.erase(0, at);
}

std::size_t postgres_session::size_of_message(toward to, std::string_view from) const {
  // Only the client's first message has no type.
  const std::size_t head = to == toward::server && !started_ ? 0 : 1;
  if (from.size() < head + length_bytes) return 0;
  const auto size = head + number_at(from, head);
  return from.size() < size ? 0 : size;
}

bool postgres_session::answers_encryption(std::string_view message) {
  if (started_ || message.size() != 2 * length_bytes) return false;
  const auto code = number_at(message, length_bytes);
  if (code != asks_for_tls && code != asks_for_gss) return false;
  keep(toward::client, "N", {});
  return true;
}

passing_message postgres_session::describe(toward to, std::string_view message) {
  passing_message out;
  out.to = to;
  const bool has_type = to == toward::client || started_;
  if (has_type) out.type = message.front();
  out.body = message.substr((has_type ? 1 : 0) + length_bytes);
  out.session = number_;
  if (to == toward::server) {
    started_ = true;
    note_statement(out);
  } else if (out.type == 'K' && out.body.size() >= length_bytes) {
    backend_ = static_cast<pid_t>(number_at(out.body, 0));
  }
  out.backend = backend_;
  return out;
}

void postgres_session::note_statement(passing_message& what) {
  auto rest = what.body;
  switch (what.type) {
    case 'Q':
      what.statement = next_text(rest);
      break;
    case 'P': {
      const std::string name(next_text(rest));
      what.statement = statements_[name] = next_text(rest);
      break;
    }
    case 'B': {
      const std::string portal(next_text(rest));
      what.statement = portals_[portal] = statements_[std::string(next_text(rest))];
      break;
    }
    case 'E':
      what.statement = portals_[std::string(next_text(rest))];
      break;
    default:
      break;
  }
}

void postgres_session::meet(toward to, std::string message, const proxy_fault& fault) {
  if (!fault.ends) {
    if (fault.passes) keep(to, std::move(message), fault.delay);
    return;
  }
  // What was read before it has passed already.
  if (fault.passes) keep(to, std::move(message), {});
  write_all(to);
  end(fault.closes_client, fault.closes_server);
}

void postgres_session::keep(toward to, std::string bytes, std::chrono::milliseconds delay) {
  auto& kept = of(to).kept;
  auto due = std::chrono::steady_clock::now() + delay;
  if (!kept.empty()) due = std::max(due, kept.back().due);
  kept.push_back({due, std::move(bytes)});
}

void postgres_session::write(toward to) {
  auto& kept = of(to).kept;
  while (!kept.empty() && kept.front().due <= std::chrono::steady_clock::now()) {
    auto& bytes = kept.front().bytes;
    const auto size = ::send(target(to), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      kept.clear();  // nobody reads it any more
      return;
    }
    bytes.erase(0, static_cast<std::size_t>(size));
    if (bytes.empty()) kept.pop_front();
  }
}

void postgres_session::write_all(toward to) {
  auto& kept = of(to).kept;
  for (auto& each : kept) each.due = {};
  while (!kept.empty()) {
    pollfd room{target(to), POLLOUT, 0};
    if (::poll(&room, 1, 1'000) <= 0) return;
    write(to);
  }
}

void postgres_session::pass_ends_on() {
  if (to_client_.source_ended && to_client_.kept.empty()) return end(true, true);
  if (to_server_.source_ended && to_server_.kept.empty()) end(true, true);
}

void postgres_session::end(bool closes_client, bool closes_server) {
  ended_ = true;
  if (closes_client) close_if_open(client_);
  if (closes_server && server_ >= 0 && !draining_) {
    ::shutdown(server_, SHUT_WR);
    draining_ = true;
  }
}

void postgres_session::close_silent() {
  if (ended_) end(true, true);
}

void postgres_session::drain_server() {
  std::array<char, 65536> room;
  while (true) {
    const auto size = ::recv(server_, room.data(), room.size(), MSG_DONTWAIT);
    if (size > 0) continue;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    draining_ = false;
    close_if_open(server_);
    return;
  }
}

}  // namespace leasehold::tests
