#include "tools/chosen_store.hpp"

#include "tools/api.hpp"

namespace leasehold::tools {

exit_code chosen_store::find(storage::store_place& out) const {
  if (storage::is_database_url(data)) {
    return complain(exit_code::malformed, "--data takes a directory; name a database with --store");
  }
  if (store.empty()) {
    out = storage::sqlite_place{data};
    return exit_code::ok;
  }
  auto read = storage::parse_store_url(store);
  if (const auto* bad = std::get_if<storage::bad_store_url>(&read)) {
    return complain(exit_code::malformed, bad->sentence);
  }
  out = std::move(std::get<storage::store_place>(read));
  return exit_code::ok;
}

chosen_store_options add_chosen_store(CLI::App& command, chosen_store& place,
                                      const std::string& what_data_is) {
  chosen_store_options out{};
  out.data = command.add_option("--data", place.data, what_data_is);
  out.store = command.add_option("--store", place.store,
                                 "The same for a store at sqlite:/PATH or "
                                 "postgres://USER@HOST/DATABASE");
  out.store->excludes(out.data);
  return out;
}

}  // namespace leasehold::tools
