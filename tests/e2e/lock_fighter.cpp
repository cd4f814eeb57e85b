// One of several processes that fight over locks: takes one, writes under it, renews, gives it
// back, and does so until it is killed. It looks at no deadline before it writes, so that a fighter
// that was stopped past its term writes as a stale holder does. Calls without an answer are not
// repeated: the grant that may have been made ends with its term.
//
// lock_fighter URL TOKEN_FILE INSTANCE SQLITE_FILE LOG SEED KEYS TTL_MS: what it writes to LOG is
// read by tests/e2e/fight_record.hpp.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/fenced_target.hpp"
#include "tools/http_client.hpp"

namespace leasehold::e2e {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using tests::write_end;

/// What is known of a lock that is held.
struct held_lock {
  std::string lease_id;
  std::string holder;
  std::int64_t token = 0;
  std::int64_t sequence = 0;
};

class fighter {
 public:
  explicit fighter(const std::vector<std::string>& words)
      : client_(options(words[0], words[1])),
        instance_(words[2]),
        target_(tests::open_target("sqlite:" + words[3])),
        log_(::open(words[4].c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
        dice_(static_cast<unsigned>(std::stoul(words[5]))),
        next_key_(5 * std::stoi(words[5])),
        keys_(std::stoi(words[6])),
        term_ms_(std::stoi(words[7])) {}

  int fight() {
    if (!target_ || log_ < 0) return 1;
    for (;;) {
      if (!take()) {
        std::this_thread::sleep_for(milliseconds{20});  // before it asks for another key
        continue;
      }
      if (work()) give_back();
    }
  }

 private:
  static tools::client_options options(const std::string& url, const std::string& token_file) {
    tools::client_options out;
    out.where = tools::parse_endpoint(url).value_or(tools::endpoint{});
    std::ifstream in(token_file, std::ios::binary);
    out.token = {std::istreambuf_iterator<char>(in), {}};
    return out;
  }

  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(dice_); }
  /// Most go for the first few keys, so that there is somebody to lose against; the rest in turn.
  std::string any_key() {
    const int hot = std::max(1, keys_ / 10);
    return fmt::format("key-{}", below(3) == 0 ? next_key_++ % keys_ : below(hot));
  }

  /// One write, so that a kill leaves no half of a line.
  void note(const std::string& line) {
    if (::write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(1);
  }

  /// The body of an answer that is no refusal; null: it is one, or there is none.
  json::value call(const char* target, const json::object& body) {
    const auto said = client_.call({.method = "POST", .target = target, .body = serialize(body)});
    const auto* answer = std::get_if<tools::http_answer>(&said);
    if (answer == nullptr || answer->status >= 300) return nullptr;
    json::error_code no_json;
    return json::parse(answer->body, no_json);
  }

  bool take() {
    const auto said =
        call("/v1/locks:acquire", {{"program", "fight"},
                                   {"target", {{"opaque", any_key()}}},
                                   {"instance", instance_},
                                   {"request_id", fmt::format("{}-{}", instance_, ++requests_)},
                                   {"ttl_ms", term_ms_},
                                   {"wait_ms", below(2) * (1 + below(400))}});
    if (!said.is_object()) return false;
    const auto& lock = said.at("lock").as_object();
    lock_ = {lock.at("lease_id").as_string().c_str(), lock.at("holder").as_string().c_str(),
             lock.at("generation").to_number<std::int64_t>(), 0};
    note(fmt::format("granted {} {} {} {}\n", lock_.lease_id, lock_.token,
                     lock.at("row").to_number<std::int64_t>(), lock_.holder));
    return true;
  }

  /// A renew that was taken is the newest row at which the lock was certainly held.
  bool renew() {
    const auto said = call("/v1/locks:renew", {{"lease_id", lock_.lease_id},
                                               {"holder", lock_.holder},
                                               {"generation", lock_.token},
                                               {"sequence", ++lock_.sequence}});
    if (!said.is_object()) return false;
    note(fmt::format("kept {} {} {}\n", lock_.lease_id, lock_.token,
                     said.at("lock").at("row").to_number<std::int64_t>()));
    return true;
  }

  /// A refusal is not believed at once: it is tried again twice, as a careless writer would.
  bool write() {
    constexpr int tries = 3;
    for (int i = 0; i < tries; ++i) {
      const auto end = target_->write(lock_.lease_id, lock_.token, instance_);
      note(fmt::format("{} {} {}\n", word(end), lock_.lease_id, lock_.token));
      if (end == write_end::written) return true;
    }
    return false;
  }

  /// False: the lock is lost.
  bool work() {
    const int writes = 5 + below(20);
    for (int done = 0; done < writes; ++done) {
      if (!write()) return false;
      std::this_thread::sleep_for(milliseconds{5 + below(20)});  // its work, as long as a term
      if (done % 4 == 3 && !renew()) return false;
    }
    return true;
  }

  void give_back() {
    if (below(4) == 0) return;  // as one that is gone
    call("/v1/locks:release",
         {{"lease_id", lock_.lease_id}, {"holder", lock_.holder}, {"generation", lock_.token}});
  }

  tools::http_client client_;
  std::string instance_;
  std::unique_ptr<tests::fenced_target> target_;
  int log_;
  std::minstd_rand dice_;
  int next_key_;
  int keys_;
  int term_ms_;
  int requests_ = 0;
  held_lock lock_;
};

}  // namespace
}  // namespace leasehold::e2e

int main(int count, char** words) {
  constexpr int wanted = 9;
  if (count != wanted) return 2;
  return leasehold::e2e::fighter(std::vector<std::string>(words + 1, words + count)).fight();
}
