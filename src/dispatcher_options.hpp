// What can be chosen about `leaseholdd dispatcher`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "leasehold/actors/dispatch.hpp"
#include "leasehold/protocol/dispatch.hpp"
#include "leasehold/protocol/units.hpp"
#include "src/options.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::server {

struct dispatcher_options {
  storage::store_place store;
  std::string profile_name = "standalone";
  actors::dispatch_profile profile;
  std::string host;   ///< boot id whose processes are acted on; empty: of this start of the machine
  std::string owner;  ///< names this process in its claims; empty: made of its pid and chance
  protocol::duration term_grace{10'000};
  protocol::duration kill_wait{5'000};
  protocol::dispatch_pace pace;
  bool once = false;
  std::string log_level = "info";
  std::string log_format = "auto";
};

/// `arguments` behind the word dispatcher. The store may stand in LEASEHOLD_STORE, where other
/// users of the machine do not see it.
std::variant<dispatcher_options, say_and_exit> load_dispatcher_options(
    std::vector<std::string> arguments, const environment& variables);

}  // namespace leasehold::server
