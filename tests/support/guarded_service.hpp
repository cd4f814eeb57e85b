// A service with a fencing_guard in front of what it keeps, asked over a Unix socket: a line
// "KEY TOKEN TEXT" is a write, "KEY TOKEN" the token alone. It answers with a line.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "leasehold/client/fencing_guard.hpp"
#include "support/fenced_target.hpp"

namespace leasehold::tests {

class guarded_service {
 public:
  explicit guarded_service(const std::filesystem::path& socket);
  ~guarded_service();
  guarded_service(const guarded_service&) = delete;
  guarded_service& operator=(const guarded_service&) = delete;

  std::vector<written_row> rows(const std::string& key) const;

 private:
  using protocol = boost::asio::local::stream_protocol;
  void accept();
  void serve(protocol::socket& caller);
  write_end admit(const std::string& line);

  client::fencing_guard guard_;
  mutable std::mutex rows_mutex_;
  std::map<std::string, std::vector<written_row>> rows_;
  boost::asio::io_context io_;
  protocol::acceptor acceptor_;
  std::jthread thread_;
};

/// The same, as its callers see it.
std::unique_ptr<fenced_target> open_guarded(const std::filesystem::path& socket);

}  // namespace leasehold::tests
