// Requests out of the bytes of a connection, one after the other: read strictly, each part within
// its bound. Knows no socket and no time.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/http_head.hpp"
#include "src/net_limits.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

class request_reader {
 public:
  /// What a look at more bytes brought: not enough of them, the head with a body to come, the whole
  /// request, or that it is none.
  enum class found : std::uint8_t { too_little, head, whole, fault };

  /// `limits` outlives it. `peer`: the address that each request names.
  request_reader(const net_limits& limits, std::string peer);

  /// Begins with the next request.
  void begin();
  /// Takes what belongs to the request out of `from`. After a fault or a whole request only begin()
  /// leads on.
  [[nodiscard]] found take(boost::beast::flat_buffer& from);

  /// Why it is refused, after a fault.
  [[nodiscard]] const head_refused& fault() const { return fault_; }
  /// The request so far, without its body.
  [[nodiscard]] const http_request& request() const { return request_; }
  /// The peer waits to be asked for the body.
  [[nodiscard]] bool waits_to_continue() const;
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] int minor_version() const { return minor_version_; }
  /// Gives the whole request away.
  [[nodiscard]] http_request release();

 private:
  using parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void copy_head();
  [[nodiscard]] found take_head();
  found refuse(head_refused why);
  found refuse_unreadable(const boost::system::error_code& why);

  const net_limits& limits_;
  std::string peer_;
  std::optional<parser> parser_;
  http_request request_;
  head_refused fault_;
  std::size_t head_bytes_ = 0;
  bool in_body_ = false;
  bool keep_alive_ = true;
  int minor_version_ = 1;
};

}  // namespace leasehold::server
