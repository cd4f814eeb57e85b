// How `leasehold verify` and `leasehold head` are written out.
#pragma once

#include <span>
#include <string_view>

#include "src/store/verify.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {

/// Prints the verdict, every kept problem and what the verification cannot see, as text or as one
/// JSON object. ok when everything follows; differs when not.
exit_code print_verdict(const storage::verify_report& report,
                        std::span<const std::string_view> beyond, bool as_json);

/// Says what is broken about a store and yields the exit code that fits.
exit_code complain_about(const actors::store_error& fault);

}  // namespace leasehold::tools
