// The page about reasons, generated from reason.def.
#pragma once

#include <string>

namespace leasehold::tools {

/// The content of docs/REASONS.md.
std::string reasons_page();

}  // namespace leasehold::tools
