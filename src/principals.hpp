// Who may speak to the coordinator: the principals file, read whole and checked, and the living set
// that a reload replaces. Linked by `leasehold token` too.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/actors/gateway.hpp"
#include "src/auth.hpp"

namespace leasehold::server {

/// One entry of the file.
struct principal_entry {
  actors::principal who;
  std::vector<token_hash> tokens;  ///< several, so that one can replace another without a gap
  std::string certificate;         ///< name in its client certificate; empty: it has none
};

/// By what somebody has shown who it is: a token, a client certificate, or both for one principal.
struct credential_proof {
  std::optional<token_hash> token;
  std::string certificate;  ///< the name that the principal is known by; empty: not by one
};

struct principal_set {
  std::vector<principal_entry> entries;

  /// Whose token this is. Compares with every token there is, in constant time each, so that the
  /// time says nothing about which of them is near.
  [[nodiscard]] const principal_entry* find_by_token(std::string_view token) const;
  /// Whose certificate has these names; nobody's where they name two.
  [[nodiscard]] const principal_entry* find_by_certificate(
      const std::vector<std::string>& names) const;
  [[nodiscard]] const principal_entry* find(std::string_view name) const;
  /// Whether an authentication of before still holds: the same principal with the same rights and
  /// all of this proof.
  [[nodiscard]] bool still_holds(const actors::principal& who, const credential_proof& by) const;
};

/// What is wrong with a principals file, in one sentence with the file and the line.
struct principals_fault {
  std::string sentence;
};

/// What names of principals, tenants, queues and programs are made of, as people are told it.
inline constexpr std::string_view name_rule = "1 to 128 of A-Z a-z 0-9 . _ : -";
bool is_principal_name(std::string_view text) noexcept;

std::string_view word(actors::role what) noexcept;
std::optional<actors::role> role_from_word(std::string_view text) noexcept;

std::variant<principal_set, principals_fault> parse_principals(std::string_view content,
                                                               const std::string& name);
/// Also refuses a file of another user, or one that others than its owner may read or write.
std::variant<principal_set, principals_fault> read_principals(const std::filesystem::path& file);

/// The principals as of the last good reload; any thread.
class principal_registry {
 public:
  explicit principal_registry(principal_set initial);

  [[nodiscard]] std::shared_ptr<const principal_set> current() const;
  /// Rises with each replacement: who remembers an authentication asks again when it has risen.
  [[nodiscard]] std::int64_t version() const noexcept { return version_.load(); }
  void replace(principal_set with);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const principal_set> current_;
  std::atomic<std::int64_t> version_{1};
};

}  // namespace leasehold::server
