#include "leasehold/client/worker.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "worker_loop.hpp"

namespace leasehold::client {
namespace {

constexpr auto look_interval = std::chrono::milliseconds(20);
constexpr protocol::duration last_answers{5000};

std::string random_hex() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::random_device bits;
  std::string hex;
  for (int words = 0; words < 4; ++words) {
    auto word = bits();
    for (int digit = 0; digit < 8; ++digit, word >>= 4) hex += digits[word & 15];
  }
  return hex;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= protocol::field_limits{}.id &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._:-").find(c) != std::string_view::npos;
         });
}

std::optional<std::string> find_fault(const worker_options& options) {
  if (options.urls.empty()) return "no coordinator is named; give at least one URL";
  for (const auto& url : options.urls) {
    if (!parse_stream_address(url))
      return "'" + url + "' is not of the form ws://HOST:PORT/v1/stream";
  }
  const link_options files{options.ca_file, options.cert_file, options.key_file, {}};
  const bool has_tls = std::ranges::any_of(
      options.urls, [](const auto& url) { return parse_stream_address(url)->tls; });
  if (auto fault = has_tls ? find_link_fault(files) : std::nullopt) return fault;
  if (options.queues.empty()) return "no queue is named; give at least one";
  if (!options.on_job) return "nothing is there to run jobs; set on_job";
  std::int64_t slots = 0;
  for (const auto& queue : options.queues) {
    if (!is_name(queue.queue)) {
      return "queue '" + queue.queue + "': a name has 1 to 128 characters of A-Za-z0-9._:-";
    }
    for (const auto& [key, value] : queue.labels) {
      if (!is_name(key))
        return "label '" + key + "': a key has 1 to 128 characters of A-Za-z0-9._:-";
    }
    if (queue.slots < 1) return "queue " + queue.queue + ": at least one slot is needed";
    slots += queue.slots;
  }
  if (slots > most_slots) {
    return "a worker holds at most " + std::to_string(most_slots) +
           " leases; start more workers instead";
  }
  return std::nullopt;
}

}  // namespace

const std::string& process_incarnation() {
  static const std::string bits = random_hex();
  return bits;
}

worker::worker(worker_options options) : fault_(find_fault(options)) {
  if (fault_) return;
  std::vector<stream_address> addresses;
  for (const auto& url : options.urls) addresses.push_back(*parse_stream_address(url));
  loop_ = std::make_unique<loop>(std::move(options), std::move(addresses));
}

worker::~worker() { stop({0}, {0}); }

std::optional<std::string> worker::start() {
  if (!fault_) loop_->start();
  return fault_;
}

void worker::drain() {
  if (loop_) loop_->drain();
}

bool worker::stop(protocol::duration drain_timeout, protocol::duration stop_grace) {
  if (!loop_) return true;
  drain();
  const auto wait = [&](protocol::duration most, auto done) {
    const auto end = local_now() + most;
    while (!done() && local_now() < end) std::this_thread::sleep_for(look_interval);
    return done();
  };
  const auto idle = [&] { return running() == 0; };
  if (!wait(drain_timeout, idle)) {
    loop_->ask_to_stop();
    wait(stop_grace, idle);
  }
  const auto answered = [&] { return open() == 0 || ended(); };
  const bool patient = drain_timeout.ms > 0 || stop_grace.ms > 0;
  const bool clean = wait(patient ? last_answers : protocol::duration{0}, answered);
  loop_->leave();
  return clean;
}

std::size_t worker::running() const { return loop_ ? loop_->running() : 0; }
std::size_t worker::open() const { return loop_ ? loop_->open() : 0; }
bool worker::connected() const { return loop_ && loop_->connected(); }
bool worker::ended() const { return !loop_ || loop_->ended(); }

}  // namespace leasehold::client
