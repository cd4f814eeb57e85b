// The fields of a body that name a lock, and whether its caller may use it.
#pragma once

#include <optional>

#include "leasehold/protocol/lock_key.hpp"
#include "src/http_api_body.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

/// Takes program, target, workflow and operation_class, as typed; a target is an object with one
/// field, whose name is the kind. What is missing or of a wrong shape is the reader's fault
/// (invalid_frame); call this before fault() and go on only without one.
protocol::lock_name read_lock_name(field_reader& fields);

/// The lock made canonical. Nothing: the call was refused, as invalid_target, or as forbidden
/// because the caller's principal does not name the program.
std::optional<protocol::lock_name> normalise_for(const call_ptr& c,
                                                 const protocol::lock_name& typed);

}  // namespace leasehold::server
