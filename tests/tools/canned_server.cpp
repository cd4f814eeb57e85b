#include "tests/tools/canned_server.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

namespace leasehold::tests {

namespace asio = boost::asio;
using asio::ip::tcp;

canned_server::canned_server(std::vector<std::string> answers)
    : answers_(std::move(answers)),
      acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      thread_([this] { serve(); }) {}

canned_server::~canned_server() {
  boost::system::error_code ignored;
  // Wakes a waiting accept; the thread then finds that no answer is left to give.
  tcp::socket last(io_);
  {
    const std::lock_guard lock(mutex_);
    next_ = answers_.size();
  }
  last.connect(acceptor_.local_endpoint(), ignored);
  last.close(ignored);
  thread_.join();
}

std::string canned_server::url() const {
  return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

std::vector<std::string> canned_server::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void canned_server::serve() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (next_ == answers_.size()) return;
    }
    boost::system::error_code error;
    tcp::socket socket(io_);
    acceptor_.accept(socket, error);
    if (error) return;
    while (answer_one(socket)) {
    }
  }
}

bool canned_server::answer_one(tcp::socket& socket) {
  boost::system::error_code error;
  std::string request;
  const auto head = asio::read_until(socket, asio::dynamic_buffer(request), "\r\n\r\n", error);
  if (error) return false;
  std::size_t length = 0;
  if (const auto at = request.find("Content-Length: "); at < head) {
    std::from_chars(request.data() + at + 16, request.data() + head, length);
  }
  if (request.size() < head + length) {
    asio::read(socket, asio::dynamic_buffer(request),
               asio::transfer_exactly(head + length - request.size()), error);
  }
  std::string answer;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (next_ == answers_.size()) return false;
    answer = answers_[next_++];
  }
  const bool closes = answer.ends_with("CLOSE");
  if (closes) answer.resize(answer.size() - 5);
  asio::write(socket, asio::buffer(answer), error);
  return !closes && !error;
}

}  // namespace leasehold::tests
