// What the options of `leasehold exec` ask for.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "leasehold/protocol/lock_key.hpp"
#include "tools/exec/acquisition.hpp"
#include "tools/exec/authority.hpp"

namespace leasehold::tools {

/// As typed; empty: not given.
struct exec_settings {
  std::string program;
  std::string host, ip, cidr, url, opaque;
  std::string workflow;
  std::string operation_class;
  std::string wait = "0s";
  std::string ttl = "15s";
  std::string max_lifetime;
  std::string instance;
  std::string grace;
  std::string token_hook;
  int conflict_exit_code = static_cast<int>(exit_code::not_acquired);
  std::vector<std::string> command;
};

struct exec_plan {
  acquire_plan acquire;
  term_plan term;
  std::vector<std::string> hook;  ///< empty: there is none
  std::vector<std::string> command;
  int conflict_exit_code = 0;
  std::string fault;  ///< why it cannot be meant; empty: it can
};

exec_plan make_exec_plan(const exec_settings& chosen);

/// Tells this run from others: the machine's name and the process number, as an instance may be
/// spelled.
std::string own_instance();

}  // namespace leasehold::tools
