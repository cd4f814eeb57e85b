#include "src/store/postgres_store.hpp"

#include <utility>

#include "src/store/log_store.hpp"
#include "src/store/postgres_dispatch.hpp"
#include "src/store/postgres_reader.hpp"
#include "src/store/postgres_schema.hpp"
#include "src/store/postgres_writer.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::store_error;
using protocol::row_number;

/// What outlives every connection of the store.
class store_guard {
 protected:
  explicit store_guard(std::shared_ptr<void> held) : held_(std::move(held)) {}

 private:
  std::shared_ptr<void> held_;
};

class postgres_store final : store_guard, public log_store {
 public:
  postgres_store(const postgres_options& how, postgres_connection db, store_facts facts,
                 log_head head)
      : store_guard(how.held),
        log_store(opens_readers_of(how.access), how.readers, facts, head, how.on_damage),
        writer_(how, std::move(db), std::move(facts), head),
        dispatches_(make_postgres_dispatches({how.access, how.now, how.now ? how.epoch : 0})) {}
  ~postgres_store() override {
    dispatches_.reset();
    end_reads();
  }

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    writer_.commit(std::move(what), std::move(done));
  }

  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    writer_.checkpoint(std::move(slice), std::move(done));
  }

  void cut(row_number upto, std::function<void(actors::store_result<row_number>)> done) override {
    writer_.cut(upto, std::move(done));
  }

  actors::store_result<log_head> head() override { return writer_.head(); }
  actors::dispatch_store& dispatches() override { return *dispatches_; }

 private:
  postgres_writer writer_;
  std::unique_ptr<actors::dispatch_store> dispatches_;
};

/// What is read afterwards is what the writer goes on from: nobody else writes in this epoch.
std::optional<store_error> check_ours(postgres_connection& db, std::int64_t epoch) {
  auto found = db.run("SELECT epoch FROM epoch");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  if (rows.count() == 1 && rows.integer(0, 0) == epoch) return std::nullopt;
  return store_error{store_error::kind::deposed,
                     db.place() + ": another coordinator has taken the store over, and epoch " +
                         std::to_string(epoch) + " has ended; nothing was written"};
}

std::optional<store_error> check_restored(const postgres_connection& db,
                                          const postgres_options& how, const store_facts& facts) {
  if (how.restored_backup || !facts.is_backup) return std::nullopt;
  return store_error{store_error::kind::foreign,
                     db.place() +
                         " holds a backup: what was granted after it is unknown. Start with "
                         "--restored-backup to serve it"};
}

std::optional<store_error> tell_unsafe(postgres_connection& db, const postgres_options& how) {
  if (!how.on_unsafe) return std::nullopt;
  auto said = find_unsafe_settings(db);
  if (auto* fault = std::get_if<store_error>(&said)) return *fault;
  if (const auto& sentence = std::get<std::string>(said); !sentence.empty()) {
    how.on_unsafe(sentence);
  }
  return std::nullopt;
}

}  // namespace

actors::store_result<std::unique_ptr<actors::store>> open_postgres_store(
    const postgres_options& how) {
  auto opened = postgres_connection::open(how.access);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  auto& db = std::get<postgres_connection>(opened);
  if (auto fault = prepare_schema(db, how.shards)) return *fault;
  if (auto fault = check_ours(db, how.epoch)) return *fault;
  if (auto fault = tell_unsafe(db, how)) return *fault;
  auto facts = read_facts(db);
  if (auto* fault = std::get_if<store_error>(&facts)) return *fault;
  if (auto fault = check_restored(db, how, std::get<store_facts>(facts))) return *fault;
  auto head = read_head(db, std::get<store_facts>(facts));
  if (auto* fault = std::get_if<store_error>(&head)) return *fault;
  return std::make_unique<postgres_store>(
      how, std::move(db), std::move(std::get<store_facts>(facts)), std::get<log_head>(head));
}

}  // namespace leasehold::storage
