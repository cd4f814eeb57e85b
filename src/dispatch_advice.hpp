// What a cancellation dispatch says to an operator: why it stands where it does, and what to check.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/protocol/dispatch.hpp"

namespace leasehold::server {

struct dispatch_advice {
  std::string why;
  std::string_view check;
};

/// Of every status, stage and newest result.
dispatch_advice advice_on(protocol::dispatch_status status, protocol::dispatch_stage stage,
                          protocol::dispatch_result last);

}  // namespace leasehold::server
