#include "src/store/store_source.hpp"

#include <utility>

#include "src/store/postgres_reader.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {
namespace {

using actors::store_error;

/// What this program is called among the sessions of a database.
constexpr std::string_view session_name = "reader";

class log_source final : public store_source {
 public:
  log_source(std::string name, std::unique_ptr<log_reader> reader, std::optional<kept_head> kept)
      : name_(std::move(name)), reader_(std::move(reader)), kept_(std::move(kept)) {}

  std::string name() const override { return name_; }

  actors::store_result<store_facts> facts() override { return reader_->facts(); }

  actors::store_result<actors::log_head> head() override {
    const log_reader::view whole(*reader_);
    if (whole.fault()) return *whole.fault();
    auto known = facts();
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    return reader_->head(std::get<store_facts>(known));
  }

  fault checkpoint(const std::function<void(const store_facts&, const actors::log_head&)>& on_begin,
                   const record_sink& on_record) override {
    const log_reader::view whole(*reader_);
    if (whole.fault()) return whole.fault();
    auto known = facts();
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    auto end = reader_->head(std::get<store_facts>(known));
    if (auto* failed = std::get_if<store_error>(&end)) return *failed;
    on_begin(std::get<store_facts>(known), std::get<actors::log_head>(end));
    return reader_->each_record(on_record);
  }

  fault each_record(const record_sink& out) override { return reader_->each_record(out); }
  fault each_policy(const policy_sink& out) override { return reader_->each_policy(out); }

  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit) override {
    return reader_->batches_from(from, limit);
  }

  const kept_head* kept() const override { return kept_ ? &*kept_ : nullptr; }

 private:
  std::string name_;
  std::unique_ptr<log_reader> reader_;
  std::optional<kept_head> kept_;
};

actors::store_result<std::unique_ptr<store_source>> open_in(const sqlite_place& place) {
  const auto& directory = place.directory;
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
  auto reader = std::make_unique<sqlite_reader>(std::move(std::get<connection>(opened)));
  return make_source(directory.string(), std::move(reader), std::move(kept));
}

actors::store_result<std::unique_ptr<store_source>> open_in(const postgres_place& place) {
  auto opened = postgres_connection::open({place.url, std::string(session_name), {}});
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  auto& db = std::get<postgres_connection>(opened);
  if (auto failed = prepare_schema(db, std::nullopt)) return *failed;
  return make_source(shown_postgres(place.url), std::make_unique<postgres_reader>(std::move(db)),
                     std::nullopt);
}

}  // namespace

std::unique_ptr<store_source> make_source(std::string name, std::unique_ptr<log_reader> reader,
                                          std::optional<kept_head> kept) {
  return std::make_unique<log_source>(std::move(name), std::move(reader), std::move(kept));
}

actors::store_result<std::unique_ptr<store_source>> open_source(const store_place& place) {
  return std::visit([](const auto& where) { return open_in(where); }, place);
}

}  // namespace leasehold::storage
