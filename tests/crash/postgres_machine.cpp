#include "postgres_machine.hpp"

#include <string>
#include <utility>

#include "support/database_place.hpp"

namespace leasehold::tests {

namespace {

using namespace std::chrono_literals;

class machine_place final : public log_place {
 public:
  machine_place(const postgres_server& server, const std::filesystem::path& through,
                const std::string& database)
      : place_(server.url(database, through), server.url(database)) {
    // It ends soon after the server has.
    place_.options.retry_for = 200ms;
    place_.options.settle_for = 200ms;
  }
  actors::store_result<std::unique_ptr<actors::store>> open(const opening& how) override {
    return place_.open(how);
  }
  [[nodiscard]] stored_log read() const override { return place_.read(); }
  [[nodiscard]] actors::store_result<storage::verify_report> verify() const override {
    return place_.verify();
  }

 private:
  database_place place_;
};

}  // namespace

std::unique_ptr<log_place> postgres_machine::new_place() {
  const auto database = "life" + std::to_string(++databases_);
  server_.make_database(database);
  return std::make_unique<machine_place>(server_, proxy_.directory(), database);
}

void postgres_machine::crash_at(std::int64_t n) {
  if (n == 0) return proxy_.heal();
  // A commit is about as many messages as calls of a disk.
  auto last = cut_before(toward::server, static_cast<int>(n));
  last.first = [this](const passing_message&) { crash(); };
  proxy_.set(std::move(last));
}

void postgres_machine::crash() {
  const std::lock_guard lock(mutex_);
  if (crashed_) return;
  // From here on nobody hears an answer.
  crashed_ = true;
  by_kill_ ? server_.kill() : server_.stop_immediately();
  changed_.notify_all();
}

bool postgres_machine::crashed() const {
  const std::lock_guard lock(mutex_);
  return crashed_;
}

bool postgres_machine::wait_for_crash(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [this] { return crashed_; });
}

void postgres_machine::restart(std::uint64_t seed) {
  // Without the lock: a message that was met late asks for the crash.
  proxy_.heal();
  const std::lock_guard lock(mutex_);
  by_kill_ = seed % 2 == 0;
  if (crashed_) server_.start();
  crashed_ = false;
}

}  // namespace leasehold::tests
