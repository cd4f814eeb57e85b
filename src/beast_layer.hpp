// The stream that Beast's WebSocket writes to and reads from, in place of a socket. Included by the
// one translation unit that instantiates it.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/role.hpp>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "src/peer_stream.hpp"
#include "src/websocket_frame.hpp"

namespace leasehold::server {

/// What Beast sees of a peer_stream: a write is done once its bytes are queued.
class beast_layer {
 public:
  using executor_type = peer_stream::executor_type;

  explicit beast_layer(std::shared_ptr<peer_stream> stream) : stream_(std::move(stream)) {}

  executor_type get_executor() noexcept { return stream_->get_executor(); }
  peer_stream& stream() noexcept { return *stream_; }
  /// Beast has written a close frame: nothing of ours may follow it.
  [[nodiscard]] bool close_sent() const noexcept { return close_sent_; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& into, Token&& token) {
    return stream_->async_read_some(into, std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& from, Token&& token) {
    std::size_t bytes = 0;
    for (const boost::asio::const_buffer part : boost::beast::buffers_range_ref(from)) {
      const std::string_view text{static_cast<const char*>(part.data()), part.size()};
      if (bytes == 0 && !text.empty() && text.front() == close_frame_byte) close_sent_ = true;
      stream_->write(text);
      bytes += text.size();
    }
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this, bytes](auto&& then) {
          boost::asio::post(get_executor(),
                            boost::beast::bind_front_handler(std::forward<decltype(then)>(then),
                                                             boost::system::error_code{}, bytes));
        },
        token);
  }

 private:
  std::shared_ptr<peer_stream> stream_;
  bool close_sent_ = false;
};

// Beast ends the connection through these; the socket does it itself, after the last bytes are
// sent.
template <class Then>
void async_teardown(boost::beast::role_type, beast_layer& layer, Then&& then) {
  boost::asio::post(
      layer.get_executor(),
      boost::beast::bind_front_handler(std::forward<Then>(then), boost::system::error_code{}));
}
void beast_close_socket(beast_layer& layer) { layer.stream().close(); }

}  // namespace leasehold::server
