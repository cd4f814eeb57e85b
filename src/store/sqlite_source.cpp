#include <utility>

#include "src/store/store_source.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {
namespace {

using actors::store_error;

class sqlite_source final : public store_source {
 public:
  sqlite_source(std::filesystem::path directory, kept_head kept, connection db)
      : directory_(std::move(directory)), kept_(std::move(kept)), reader_(std::move(db)) {}

  std::string name() const override { return directory_.string(); }

  actors::store_result<store_facts> facts() override { return read_facts(reader_.database()); }

  actors::store_result<actors::log_head> head() override {
    transaction view(reader_.database());
    if (auto failed = view.begin_reading()) return *failed;
    auto known = facts();
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    return read_head(reader_.database(), std::get<store_facts>(known));
  }

  fault checkpoint(const std::function<void(const store_facts&, const actors::log_head&)>& on_begin,
                   const record_sink& on_record) override {
    transaction view(reader_.database());
    if (auto failed = view.begin_reading()) return failed;
    auto known = facts();
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    auto end = read_head(reader_.database(), std::get<store_facts>(known));
    if (auto* failed = std::get_if<store_error>(&end)) return *failed;
    on_begin(std::get<store_facts>(known), std::get<actors::log_head>(end));
    return reader_.each_record(on_record);
  }

  fault each_record(const record_sink& out) override { return reader_.each_record(out); }
  fault each_policy(const policy_sink& out) override { return reader_.each_policy(out); }

  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit) override {
    return reader_.batches_from(from, limit);
  }

  const kept_head* kept() const override { return &kept_; }

 private:
  std::filesystem::path directory_;
  kept_head kept_;
  sqlite_reader reader_;
};

}  // namespace

actors::store_result<std::unique_ptr<store_source>> open_sqlite_source(
    const std::filesystem::path& directory) {
  // Before the log: it may grow meanwhile, and the kept head with it.
  auto kept = read_kept_head(directory);
  const auto file = directory / database_name;
  if (auto failed = find_lost_database(file)) return *failed;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return store_error{store_error::kind::foreign,
                       directory.string() + " holds no store: there is no " + file.string()};
  }
  if (auto failed = find_lost_log(file)) return *failed;
  auto opened = open_database(file, connection::access::read_only, std::nullopt);
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  return make_sqlite_source(directory, std::move(kept), std::move(std::get<connection>(opened)));
}

std::unique_ptr<store_source> make_sqlite_source(const std::filesystem::path& directory,
                                                 kept_head kept, connection db) {
  return std::make_unique<sqlite_source>(directory, std::move(kept), std::move(db));
}

actors::store_result<std::unique_ptr<store_source>> open_source(const store_place& place) {
  if (const auto* file = std::get_if<sqlite_place>(&place)) {
    return open_sqlite_source(file->directory);
  }
  return store_error{store_error::kind::foreign,
                     shown(place) + ": this build reads stores of SQLite only"};
}

}  // namespace leasehold::storage
