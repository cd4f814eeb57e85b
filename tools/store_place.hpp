// --data and --store of subcommands that read a store themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/store/store_url.hpp"
#include "tools/exit_codes.hpp"

namespace leasehold::tools {

/// What was typed. The URL may hold a password and is repeated nowhere.
struct store_place {
  std::string data;
  std::string store;

  [[nodiscard]] bool is_given() const noexcept { return !data.empty() || !store.empty(); }
  /// Where the store is; complains when the URL is none.
  exit_code find(storage::store_url& out) const;
};

struct store_place_options {
  CLI::Option* data;
  CLI::Option* store;
};

/// Adds both, of which one may be given. `place` must outlive the parsing.
store_place_options add_store_place(CLI::App& command, store_place& place,
                                    const std::string& what_data_is);

}  // namespace leasehold::tools
