#include "src/request_reader.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

namespace http = boost::beast::http;

std::string lower_case(std::string_view text) {
  std::string lower{text};
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

/// A field that goes on in the next line: the parser joins them, others do not.
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos ||
         head.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

request_reader::request_reader(const net_limits& limits, std::string peer)
    : limits_(limits), peer_(std::move(peer)) {
  begin();
}

void request_reader::begin() {
  head_bytes_ = 0;
  in_body_ = false;
  request_ = {};
  request_.peer = peer_;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser_->body_limit(limits_.body_bytes);
}

request_reader::found request_reader::take(boost::beast::flat_buffer& from) {
  boost::system::error_code failed;
  const std::size_t used = parser_->put(from.data(), failed);
  const bool folded =
      !in_body_ && has_folded_line({static_cast<const char*>(from.data().data()), used});
  from.consume(used);
  if (!in_body_) head_bytes_ += used;
  if (failed == http::error::need_more) {
    // Of a chunked body the parser keeps the line of a chunk, and the fields behind the last one,
    // until they are whole; it knows no limit of them.
    const bool is_tail_too_long = in_body_ && from.size() > limits_.head_bytes;
    return is_tail_too_long ? refuse_unreadable(failed) : found::too_little;
  }
  if (failed || folded) return refuse_unreadable(failed);
  if (!in_body_) return parser_->is_header_done() ? take_head() : found::too_little;
  return parser_->is_done() ? found::whole : found::too_little;
}

http_request request_reader::release() {
  request_.body = std::move(parser_->get().body());
  return std::move(request_);
}

bool request_reader::waits_to_continue() const {
  return has_token(request_.header("expect"), "100-continue");
}

/// The head is complete: trailers that may follow a chunked body never become part of it.
void request_reader::copy_head() {
  const auto& message = parser_->get();
  minor_version_ = static_cast<int>(message.version() % 10);
  request_.method = std::string{message.method_string()};
  request_.target = std::string{message.target()};
  for (const auto& field : message) {
    request_.headers.emplace_back(lower_case(field.name_string()), std::string{field.value()});
  }
}

request_reader::found request_reader::take_head() {
  copy_head();
  keep_alive_ = parser_->keep_alive();
  if (head_bytes_ > limits_.head_bytes) return refuse_unreadable(http::error::header_limit);
  if (auto refused = check_head(request_, minor_version_, limits_)) {
    return refuse(std::move(*refused));
  }
  in_body_ = true;
  parser_->eager(true);
  return parser_->is_done() ? found::whole : found::head;
}

request_reader::found request_reader::refuse(head_refused why) {
  fault_ = std::move(why);
  return found::fault;
}

request_reader::found request_reader::refuse_unreadable(const boost::system::error_code& why) {
  if (why == http::error::need_more) {
    return refuse({431, "The line of a chunk, or the fields behind the body, are larger than " +
                            std::to_string(limits_.head_bytes) + " bytes."});
  }
  if (why == http::error::header_limit) {
    return refuse(
        {431, "The request head is larger than " + std::to_string(limits_.head_bytes) + " bytes."});
  }
  if (why == http::error::body_limit) {
    // The parser has read the whole head before it judges the length that this tells.
    if (!in_body_) copy_head();
    return refuse(
        {413, "The request body is larger than " + std::to_string(limits_.body_bytes) + " bytes."});
  }
  return refuse({400, "The request is not HTTP/1.1."});
}

}  // namespace leasehold::server
