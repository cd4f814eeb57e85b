#include "tools/store_place.hpp"

#include "tools/api.hpp"

namespace leasehold::tools {

exit_code store_place::find(storage::store_url& out) const {
  if (store.empty()) {
    out = storage::store_url::of_directory(data);
    return exit_code::ok;
  }
  auto read = storage::read_store_url(store);
  if (const auto* fault = std::get_if<storage::store_url_fault>(&read)) {
    return complain(exit_code::malformed, fault->sentence);
  }
  out = std::move(std::get<storage::store_url>(read));
  return exit_code::ok;
}

store_place_options add_store_place(CLI::App& command, store_place& place,
                                    const std::string& what_data_is) {
  store_place_options out{};
  out.data = command.add_option("--data", place.data, what_data_is);
  out.store = command.add_option("--store", place.store,
                                 "The same for a store at sqlite:/PATH or "
                                 "postgres://USER@HOST/DATABASE");
  out.store->excludes(out.data);
  return out;
}

}  // namespace leasehold::tools
