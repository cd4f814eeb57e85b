// --data and --store of subcommands that read a store themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/store/store_url.hpp"
#include "tools/exit_codes.hpp"

namespace leasehold::tools {

/// What was typed. The URL may hold a password and is repeated nowhere.
struct chosen_store {
  std::string data;
  std::string store;

  [[nodiscard]] bool is_given() const noexcept { return !data.empty() || !store.empty(); }
  /// Where the store is; complains when the URL is none.
  exit_code find(storage::store_place& out) const;
};

struct chosen_store_options {
  CLI::Option* data;
  CLI::Option* store;
};

/// Adds both, of which one may be given. `place` must outlive the parsing.
chosen_store_options add_chosen_store(CLI::App& command, chosen_store& place,
                                      const std::string& what_data_is);

}  // namespace leasehold::tools
