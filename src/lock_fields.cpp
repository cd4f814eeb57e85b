#include "src/lock_fields.hpp"

#include <array>
#include <utility>

#include "src/keys/normalise.hpp"

namespace leasehold::server {
namespace {

using protocol::lock_name;
using protocol::reason;
using protocol::target_kind;

constexpr std::array kinds{target_kind::host, target_kind::ip, target_kind::cidr, target_kind::url,
                           target_kind::opaque};

void read_target(field_reader& fields, lock_name& out) {
  const boost::json::object* target = fields.object("target");
  if (target == nullptr) {
    return fields.refuse("target must be given, such as {\"host\": \"example.com\"}.");
  }
  field_reader inner(*target);
  int given = 0;
  for (const target_kind kind : kinds) {
    if (auto text = inner.text(protocol::word(kind), keys::largest_typed)) {
      out.kind = kind;
      out.target = std::move(*text);
      ++given;
    }
  }
  if (auto fault = inner.fault()) return fields.refuse("In target: " + fault->sentence);
  if (given != 1) fields.refuse("target must hold exactly one of host, ip, cidr, url and opaque.");
}

}  // namespace

lock_name read_lock_name(field_reader& fields) {
  lock_name out;
  auto program = fields.text("program", keys::largest_typed);
  if (!program) fields.refuse("program must be given: a text of 1 to 128 bytes.");
  out.program = std::move(program).value_or("");
  read_target(fields, out);
  out.workflow = fields.text("workflow", keys::largest_typed).value_or("");
  out.operation_class = fields.text("operation_class", keys::largest_typed).value_or("");
  return out;
}

std::optional<lock_name> normalise_for(const call_ptr& c, const lock_name& typed) {
  auto made = keys::normalise(typed);
  if (auto* why = std::get_if<keys::refusal>(&made)) {
    c->refuse(reason::invalid_target, std::move(why->sentence));
    return std::nullopt;
  }
  auto& name = std::get<lock_name>(made);
  if (!c->who.may_use_program(name.program)) {
    c->refuse(reason::forbidden, "This program is not granted to the credential.");
    return std::nullopt;
  }
  return std::move(name);
}

}  // namespace leasehold::server
