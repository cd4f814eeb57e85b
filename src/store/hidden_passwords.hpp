// Texts that may repeat the URL of a store, without its password.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::storage {

/// The text with the password of every PostgreSQL URL in it left out, however it was written; the
/// rest of each URL stays as it was.
std::string hide_passwords(std::string_view text);

}  // namespace leasehold::storage
