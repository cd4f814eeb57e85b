#include "src/keys/normalise.hpp"

#include <utility>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

using protocol::lock_name;
using protocol::target_kind;

normalised normalise_target(target_kind kind, std::string_view typed) {
  if (typed.empty()) return refusal{"The target is empty."};
  switch (kind) {
    case target_kind::host:
      return normalise_host(typed);
    case target_kind::ip:
      return normalise_ip(typed);
    case target_kind::cidr:
      return normalise_cidr(typed);
    case target_kind::url:
      return normalise_url(typed);
    case target_kind::opaque:
      return normalise_opaque(typed);
  }
  return refusal{"The kind of the target must be host, ip, cidr, url or opaque."};
}

}  // namespace

std::variant<lock_name, refusal> normalise(const lock_name& typed) noexcept {
  for (const auto* part :
       {&typed.program, &typed.workflow, &typed.operation_class, &typed.target}) {
    if (part->size() > largest_typed) {
      return refusal{"No part of a lock's name may have more than " +
                     std::to_string(largest_typed) + " bytes."};
    }
  }
  constexpr std::size_t most = protocol::largest_lock_part;
  normalised parts[] = {normalise_text(typed.program, "The program", 1, most),
                        normalise_target(typed.kind, typed.target),
                        normalise_text(typed.workflow, "The workflow", 0, most),
                        normalise_text(typed.operation_class, "The operation class", 0, most)};
  for (normalised& part : parts) {
    if (auto* why = std::get_if<refusal>(&part)) return std::move(*why);
  }
  const auto take = [](normalised& part) { return std::move(std::get<std::string>(part)); };
  return lock_name{take(parts[0]), typed.kind, take(parts[1]), take(parts[2]), take(parts[3])};
}

}  // namespace leasehold::keys
