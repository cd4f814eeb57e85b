#include "support/guarded_service.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <sstream>
#include <utility>

namespace leasehold::tests {
namespace {

namespace asio = boost::asio;
using local = asio::local::stream_protocol;
using boost::system::error_code;

constexpr std::size_t longest_line = 4096;

write_end end_of(client::fence_verdict said) {
  using enum client::fence_verdict;
  if (said == accepted) return write_end::written;
  return said == stale ? write_end::stale : write_end::failed;
}

/// Nothing: the other side is gone.
std::string read_line(local::socket& from) {
  std::string line;
  error_code gone;
  asio::read_until(from, asio::dynamic_buffer(line, longest_line), '\n', gone);
  if (gone) return {};
  line.pop_back();
  return line;
}

class guarded_caller final : public fenced_target {
 public:
  explicit guarded_caller(std::filesystem::path socket) : socket_(std::move(socket)) {}

  write_end write(const std::string& key, std::int64_t token, const std::string& text) override {
    return ask(key + ' ' + std::to_string(token) + ' ' + text);
  }
  write_end raise(const std::string& key, std::int64_t token) override {
    return ask(key + ' ' + std::to_string(token));
  }
  std::vector<written_row> rows(const std::string&) override { return {}; }

 private:
  write_end ask(const std::string& line) {
    asio::io_context io;
    local::socket service(io);
    error_code failed;
    service.connect(local::endpoint(socket_.string()), failed);
    if (!failed) asio::write(service, asio::buffer(line + '\n'), failed);
    if (failed) return write_end::failed;
    const auto said = read_line(service);
    for (const auto end : {write_end::written, write_end::stale}) {
      if (said == word(end)) return end;
    }
    return write_end::failed;
  }

  std::filesystem::path socket_;
};

}  // namespace

guarded_service::guarded_service(const std::filesystem::path& socket)
    : acceptor_(io_, protocol::endpoint(socket.string())) {
  accept();
  thread_ = std::jthread([this] { io_.run(); });
}

guarded_service::~guarded_service() { io_.stop(); }

void guarded_service::accept() {
  acceptor_.async_accept([this](error_code failed, protocol::socket caller) {
    if (failed) return;
    serve(caller);
    accept();
  });
}

void guarded_service::serve(protocol::socket& caller) {
  const auto said = std::string(word(admit(read_line(caller)))) + '\n';
  error_code gone;
  asio::write(caller, asio::buffer(said), gone);
}

write_end guarded_service::admit(const std::string& line) {
  std::istringstream words(line);
  std::string key;
  written_row row;
  words >> key >> row.token;
  if (!(words >> row.text)) return end_of(guard_.raise(key, row.token));
  return end_of(guard_.write(key, row.token, [&] {
    const std::lock_guard changing(rows_mutex_);
    rows_[key].push_back(row);
  }));
}

std::vector<written_row> guarded_service::rows(const std::string& key) const {
  const std::lock_guard reading(rows_mutex_);
  const auto at = rows_.find(key);
  return at == rows_.end() ? std::vector<written_row>{} : at->second;
}

std::unique_ptr<fenced_target> open_guarded(const std::filesystem::path& socket) {
  return std::make_unique<guarded_caller>(socket);
}

}  // namespace leasehold::tests
