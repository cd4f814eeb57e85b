#include "support/fake_lock_server.hpp"

#include <sys/socket.h>
#include <time.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <utility>

namespace leasehold::tests {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace json = boost::json;
using asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

/// The fake's clock is not that of its callers, so that mixing the two shows.
constexpr std::int64_t clock_offset_ms = 1'700'000'000'000;

std::int64_t boot_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

std::int64_t now_ms() { return boot_ms() + clock_offset_ms; }

std::int64_t number(const json::object& from, const char* key) {
  const auto* found = from.if_contains(key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

std::string text(const json::object& from, const char* key) {
  const auto* found = from.if_contains(key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

json::object problem(const std::string& reason) {
  return {{"reason", reason}, {"detail", "because"}};
}

constexpr auto lease = "k:0000000000000000000000000000000000000000000000000000000000000000";

}  // namespace

fake_lock_server::fake_lock_server()
    : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
  accepting_ = std::thread([this] {
    for (;;) {
      boost::system::error_code error;
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      const std::lock_guard hold(mutex_);
      if (stops_ || error) return;
      auto& kept = sockets_.emplace_back(std::move(socket));
      threads_.emplace_back([this, &kept] { serve(kept); });
    }
  });
}

fake_lock_server::~fake_lock_server() {
  boost::system::error_code ignored;
  {
    const std::lock_guard hold(mutex_);
    stops_ = true;
    for (auto& socket : sockets_) ::shutdown(socket.native_handle(), SHUT_RDWR);
  }
  changed_.notify_all();
  tcp::socket last(io_);
  last.connect(acceptor_.local_endpoint(), ignored);
  accepting_.join();
  for (auto& each : threads_) each.join();
}

std::string fake_lock_server::url() const {
  return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

void fake_lock_server::hold() {
  const std::lock_guard hold(mutex_);
  is_held_elsewhere_ = true;
}

void fake_lock_server::free() {
  {
    const std::lock_guard hold(mutex_);
    is_held_elsewhere_ = false;
  }
  changed_.notify_all();
}

void fake_lock_server::hold_for(milliseconds time) {
  const std::lock_guard hold(mutex_);
  held_until_ms_ = now_ms() + time.count();
}

void fake_lock_server::end_generation(const std::string& reason) {
  {
    const std::lock_guard hold(mutex_);
    state_ = "revoked";
    refusal_status_ = 410;
    refusal_ = reason;
  }
  changed_.notify_all();
}

void fake_lock_server::refuse_renews(int status, const std::string& reason) {
  const std::lock_guard hold(mutex_);
  refusal_status_ = status;
  refusal_ = reason;
}

void fake_lock_server::fall_silent() {
  const std::lock_guard hold(mutex_);
  is_silent_ = true;
}

void fake_lock_server::lose_answers(int count) {
  const std::lock_guard hold(mutex_);
  lost_answers_ = count;
}

void fake_lock_server::refuse_everybody() {
  const std::lock_guard hold(mutex_);
  refuses_everybody_ = true;
}

fake_lock_server::seen fake_lock_server::so_far() const {
  const std::lock_guard hold(mutex_);
  return seen_;
}

std::int64_t fake_lock_server::expires_boot_ms() const {
  const std::lock_guard hold(mutex_);
  return expires_at_ - clock_offset_ms;
}

void fake_lock_server::serve(tcp::socket& socket) {
  boost::beast::flat_buffer buffer;
  for (;;) {
    boost::system::error_code error;
    http::request<http::string_body> request;
    http::read(socket, buffer, request, error);
    if (error) break;
    auto given = answer_to(std::string(request.method_string()), std::string(request.target()),
                           request.body());
    if (given.status == 0) break;
    http::response<http::string_body> response;
    response.version(11);
    response.result(static_cast<unsigned>(given.status));
    response.set(http::field::content_type, "application/json");
    if (given.status == 409) response.set(http::field::retry_after, "1");
    response.body() = json::serialize(given.body);
    response.prepare_payload();
    http::write(socket, response, error);
    if (error) break;
  }
  ::shutdown(socket.native_handle(), SHUT_RDWR);
}

fake_lock_server::answer fake_lock_server::answer_to(const std::string& method,
                                                     const std::string& target,
                                                     const std::string& body) {
  std::unique_lock hold(mutex_);
  if (is_silent_) {
    changed_.wait(hold, [this] { return stops_; });
    return {};
  }
  if (refuses_everybody_) return {401, problem("unauthenticated")};
  if (method == "GET") return watch(target, hold);
  const auto parsed = json::parse(body).as_object();
  answer out;
  if (target == "/v1/locks:acquire") out = acquire(parsed, hold);
  if (target == "/v1/locks:renew") out = renew(parsed);
  if (target == "/v1/locks:release") out = release(parsed);
  const bool is_good = out.status == 200 || out.status == 201;
  if (is_good && lost_answers_ > 0) {
    --lost_answers_;
    return {};
  }
  return out;
}

fake_lock_server::answer fake_lock_server::acquire(const json::object& body,
                                                   std::unique_lock<std::mutex>& hold) {
  const auto request = text(body, "request_id");
  seen_.request_ids.insert(request);
  seen_.acquires.push_back(body);
  if (request == granted_request_) return with_lock(200, "ignored", "duplicate_request");
  const auto wait_ms = number(body, "wait_ms");
  const auto end = now_ms() + wait_ms;
  while (is_held_elsewhere_ || now_ms() < held_until_ms_) {
    if (wait_ms == 0) return {409, problem("already_held")};
    if (stops_ || now_ms() >= end) return {409, problem("wait_deadline_passed")};
    changed_.wait_for(hold, milliseconds(5));
  }
  ++seen_.grants;
  ++generation_;
  granted_request_ = request;
  state_ = "active";
  target_ = body.at("target").as_object();
  program_ = text(body, "program");
  holder_ = "tester/" + text(body, "instance");
  ttl_ms_ = number(body, "ttl_ms");
  sequence_ = renewed_at_ = 0;
  acquired_at_ = now_ms();
  expires_at_ = acquired_at_ + ttl_ms_;
  return with_lock(201, "accepted", "acquired");
}

fake_lock_server::answer fake_lock_server::renew(const json::object& body) {
  if (refusal_status_ != 0) return {refusal_status_, problem(refusal_)};
  if (number(body, "generation") != generation_) return {412, problem("stale_generation")};
  if (now_ms() >= expires_at_) return {410, problem("lease_expired")};
  const auto sequence = number(body, "sequence");
  if (sequence == sequence_) return with_lock(200, "ignored", "duplicate_renew");
  if (sequence < sequence_) return with_lock(200, "ignored", "stale_sequence");
  ++seen_.renews;
  sequence_ = sequence;
  renewed_at_ = now_ms();
  expires_at_ = renewed_at_ + ttl_ms_;
  return with_lock(200, "accepted", "renewed");
}

fake_lock_server::answer fake_lock_server::release(const json::object& body) {
  if (refusal_status_ != 0) return {refusal_status_, problem(refusal_)};
  if (number(body, "generation") != generation_) return {412, problem("stale_generation")};
  if (now_ms() >= expires_at_) return {410, problem("lease_expired")};
  ++seen_.releases;
  state_ = "released";
  changed_.notify_all();
  return with_lock(200, "accepted", "released");
}

fake_lock_server::answer fake_lock_server::watch(const std::string& target,
                                                 std::unique_lock<std::mutex>& hold) {
  if (target.find("wait_for=change") != target.npos) {
    changed_.wait(hold, [this] { return stops_ || state_ != "active"; });
  }
  return {200, lock()};
}

fake_lock_server::answer fake_lock_server::with_lock(int status, const char* decision,
                                                     const char* reason) {
  return {status, {{"decision", decision}, {"reason", reason}, {"lock", lock()}}};
}

json::object fake_lock_server::lock() const {
  return {{"key", "acme/" + program_ + "/opaque:x//"},
          {"lease_id", lease},
          {"tenant", "acme"},
          {"program", program_},
          {"target", target_},
          {"holder", holder_},
          {"fencing_token", generation_},
          {"generation", generation_},
          {"state", state_},
          {"issued_at", acquired_at_},
          {"acquired_at", acquired_at_},
          {"renewed_at", renewed_at_},
          {"expires_at", expires_at_},
          {"ttl_ms", ttl_ms_},
          {"renew_sequence", sequence_}};
}

}  // namespace leasehold::tests
