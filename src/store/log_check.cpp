#include "src/store/log_check.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "src/store/batch_log.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::store_error;
using actors::stored_batch;

constexpr std::size_t batches_at_once = 16;
/// Between two reads, so that the check takes little from the disk and the processor.
constexpr std::chrono::milliseconds rest{2};

/// Tries of a database that is away, a second apart.
constexpr int most_tries = 60;
constexpr std::chrono::milliseconds nap{10};

std::string named(protocol::row_number row, std::string_view what) {
  return "the log is damaged at row " + std::to_string(row.value) + ": " + std::string(what) +
         "; 'leasehold verify' names everything, and only a backup mends it";
}

}  // namespace

log_check::log_check(open_reader opens, protocol::row_number upto,
                     std::function<void(std::string)> on_damage)
    : opens_(std::move(opens)), upto_(upto), on_damage_(std::move(on_damage)) {
  thread_ = std::thread([this] { run(); });
}

log_check::~log_check() {
  stopping_ = true;
  thread_.join();
}

void log_check::run() {
  auto damage = find_damage();
  if (!damage.empty() && !stopping_) on_damage_(std::move(damage));
}

std::string log_check::find_damage() {
  log_head at;
  std::string trouble;
  // A database that cannot be reached is not a damaged one: the check goes on when it is back.
  for (int tries = 0; tries < most_tries && !stopping_; ++tries) {
    auto opened = opens_();
    if (auto* fault = std::get_if<store_error>(&opened)) {
      trouble = std::move(fault->sentence);
    } else {
      log_reader& from = *std::get<std::unique_ptr<log_reader>>(opened);
      trouble = check_from(from, at);
      if (from.usable()) return trouble;
    }
    for (int i = 0; i < 100 && !stopping_; ++i) std::this_thread::sleep_for(nap);
  }
  return trouble;
}

std::string log_check::check_from(log_reader& from, log_head& at) {
  bool begun = at.last_row.value > 0;
  while (!stopping_ && (!begun || at.last_row < upto_)) {
    // The front may be cut meanwhile: then the check goes on behind the new anchor.
    auto facts = from.facts();
    if (auto* fault = std::get_if<store_error>(&facts)) return fault->sentence;
    const log_head& anchor = std::get<store_facts>(facts).anchor;
    if (!begun || anchor.last_row > at.last_row) at = anchor;
    begun = true;
    auto read = from.batches_from({at.last_row.value + 1}, batches_at_once);
    if (auto* fault = std::get_if<store_error>(&read)) return fault->sentence;
    const auto& batches = std::get<std::vector<stored_batch>>(read);
    if (batches.empty()) break;
    if (batches.front().first_row.value != at.last_row.value + 1) {
      const auto again = from.facts();
      const auto* now = std::get_if<store_facts>(&again);
      if (now != nullptr && now->anchor.last_row > at.last_row) continue;
    }
    for (const stored_batch& each : batches) {
      if (const auto broken = find_broken(at, each)) return named(broken->row, broken->sentence);
      at = {each.last_row, each.chain};
    }
    std::this_thread::sleep_for(rest);
  }
  return {};
}

}  // namespace leasehold::storage
