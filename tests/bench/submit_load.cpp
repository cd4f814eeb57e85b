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

job_submitter::job_submitter(submit_options how) : how_(std::move(how)) {
  for (std::size_t i = 0; i < how_.connections; ++i) idle_.push_back(i);
  sockets_.reserve(how_.connections);
  for (std::size_t i = 0; i < how_.connections; ++i) sockets_.emplace_back(how_.port);
}

bool job_submitter::turn(std::int64_t upto, int wait_ms) {
  while (!idle_.empty() && asked_ < upto) {
    ask(sockets_[idle_.back()]);
    idle_.pop_back();
  }
  if (!poll_all(
          sockets_, [](load_socket& s) -> load_socket& { return s; }, wait_ms))
    return false;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    while (const int status = take_answer(sockets_[i])) {
      ++answered_;
      taken_ += status == 201;
      if (asked_ < upto) {
        ask(sockets_[i]);
      } else {
        idle_.push_back(i);
      }
    }
  }
  return true;
}

void job_submitter::ask(load_socket& socket) {
  const std::string body = R"({"queue":")" + how_.queue + R"(","job_id":"job-)" +
                           std::to_string(++asked_) +
                           R"(","payload":"what is to be done","policy":)" + how_.policy + "}";
  socket.put("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + how_.token +
             "\r\nContent-Type: application/json\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body);
  socket.flush();
}

std::int64_t submit_jobs(const submit_options& how,
                         const std::function<void(std::int64_t)>& progress) {
  job_submitter all(how);
  while (all.answered() < how.jobs && all.turn(how.jobs)) progress(all.answered());
  return all.taken();
}

}  // namespace leasehold::bench
