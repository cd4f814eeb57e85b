// A server that answers each request on its connections with the next of the texts it was given.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::tests {

class canned_server {
 public:
  /// An answer that ends with "CLOSE" is sent without that word, and the connection is closed.
  explicit canned_server(std::vector<std::string> answers);
  ~canned_server();

  [[nodiscard]] std::string url() const;
  /// The heads and bodies that came in.
  [[nodiscard]] std::vector<std::string> requests();

 private:
  void serve();
  /// False when the other side closed.
  bool answer_one(boost::asio::ip::tcp::socket& socket);

  std::vector<std::string> answers_;
  std::size_t next_ = 0;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace leasehold::tests
