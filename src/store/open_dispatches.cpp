#include "src/store/open_dispatches.hpp"

#include "src/store/open_store.hpp"
#include "src/store/postgres_dispatch.hpp"
#include "src/store/sqlite_dispatch.hpp"

namespace leasehold::storage {

actors::store_result<std::unique_ptr<actors::dispatch_store>> open_dispatches(
    const dispatches_options& how) {
  if (const auto* file = std::get_if<sqlite_place>(&how.place)) {
    return open_sqlite_dispatches({.directory = file->directory, .now = how.now});
  }
  postgres_dispatch_options database;
  database.access.url = std::get<postgres_place>(how.place).url;
  database.access.owner = new_owner();
  return open_postgres_dispatches(std::move(database));
}

}  // namespace leasehold::storage
