// What an open socket stands on: the credential that it was opened with. It holds until the
// principals are read again and say otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/principals.hpp"

namespace leasehold::server {

class credential {
 public:
  /// `version`: of the principals that it was found among.
  credential(std::shared_ptr<const principal_registry> registry, actors::principal who,
             credential_proof by, std::int64_t version)
      : registry_(std::move(registry)),
        who_(std::move(who)),
        by_(std::move(by)),
        version_(version) {}

  [[nodiscard]] const actors::principal& who() const noexcept { return who_; }
  /// Whether the same principal still has what it was known by and the same rights. Cheap while the
  /// principals have not changed.
  [[nodiscard]] bool holds();

 private:
  std::shared_ptr<const principal_registry> registry_;
  actors::principal who_;
  credential_proof by_;
  std::int64_t version_;
};

/// Why a socket is closed with 4004.
inline constexpr std::string_view credential_ended = "The credential was revoked or changed.";

/// A socket that ends with its credential.
class credentialed {
 public:
  virtual ~credentialed() = default;
  /// Closes with 4004 when the credential holds no more; else changes nothing.
  virtual void check_credential() = 0;
  /// The coordinator is about to end: what only waits is answered.
  virtual void drain() {}
};

/// The open sockets of one thread; used on it alone.
class credentialed_sockets {
 public:
  void add(const std::shared_ptr<credentialed>& what) { open_.insert_or_assign(what.get(), what); }
  void remove(const credentialed* what) { open_.erase(what); }
  /// What ended elsewhere; nothing when another one stands where it stood.
  void forget(const credentialed* what) {
    const auto found = open_.find(what);
    if (found != open_.end() && found->second.expired()) open_.erase(found);
  }
  /// For when the principals were replaced.
  void check_all() const;
  void drain_all() const;

 private:
  /// A copy: one that is closed may be removed meanwhile.
  [[nodiscard]] std::vector<std::shared_ptr<credentialed>> all() const;

  std::unordered_map<const credentialed*, std::weak_ptr<credentialed>> open_;
};

}  // namespace leasehold::server
