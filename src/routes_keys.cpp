// What a lock's name comes down to, so that people can see what they would lock.
#include "src/lock_fields.hpp"
#include "src/lock_json.hpp"

namespace leasehold::server {

void serve_key(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<boost::json::object>(body));
  const protocol::lock_name typed = read_lock_name(fields);
  if (auto fault = fields.fault()) return c->refuse(*fault);
  const auto name = normalise_for(c, typed);
  if (name) c->answer(200, to_key_json(c->who.tenant, typed.target, *name));
}

}  // namespace leasehold::server
