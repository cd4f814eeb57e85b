#include "submit_load.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "load_poll.hpp"
#include "load_socket.hpp"

namespace leasehold::bench {

namespace {

/// The status of the answer that has come whole, which is taken; 0 while it has not.
int take_answer(load_socket& socket) {
  const auto bytes = socket.unread();
  const auto head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  const auto number = [&](std::size_t at) {
    std::size_t value = 0;
    std::from_chars(bytes.data() + at, bytes.data() + head, value);
    return value;
  };
  constexpr std::string_view length = "content-length: ";
  const auto at = bytes.find(length);
  const std::size_t whole = head + 4 + (at < head ? number(at + length.size()) : 0);
  if (bytes.size() < whole) return 0;
  socket.take(whole);
  return static_cast<int>(number(9));
}

}  // namespace

std::int64_t submit_jobs(const submit_options& how,
                         const std::function<void(std::int64_t)>& progress) {
  std::int64_t asked = 0;
  std::int64_t taken = 0;
  const auto ask = [&](load_socket& socket) {
    if (asked == how.jobs) return;
    const std::string body = R"({"queue":")" + how.queue + R"(","job_id":"job-)" +
                             std::to_string(++asked) +
                             R"(","payload":"what is to be done","policy":)" + how.policy + "}";
    socket.put("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + how.token +
               "\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
    socket.flush();
  };
  std::vector<load_socket> sockets;
  for (std::size_t i = 0; i < how.connections; ++i) ask(sockets.emplace_back(how.port));
  std::int64_t answered = 0;
  while (answered < how.jobs) {
    const bool any = poll_all(sockets, [](load_socket& s) -> load_socket& { return s; });
    if (!any) break;
    for (auto& each : sockets) {
      while (const int status = take_answer(each)) {
        ++answered;
        taken += status == 201;
        ask(each);
      }
    }
    progress(answered);
  }
  return taken;
}

}  // namespace leasehold::bench
