#include "tools/exec/exec_plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/api.hpp"
#include "tools/arguments.hpp"

namespace leasehold::tools {
namespace {

using protocol::target_kind;
using std::chrono::milliseconds;

constexpr std::size_t longest_instance = 128;

bool may_stand_in_instance(char c) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  return letters.find(c) != letters.npos;
}

milliseconds length(const std::string& text, std::string_view option, std::string& fault) {
  const auto ms = read_length_ms(text);
  if (!ms) {
    fault =
        fmt::format("--{} \"{}\" is not a length of time, such as 500ms, 30s or 5m", option, text);
  }
  return milliseconds(ms.value_or(0));
}

void name_lock(const exec_settings& chosen, exec_plan& plan) {
  auto& name = plan.acquire.request.name;
  name.program = chosen.program;
  name.workflow = chosen.workflow;
  name.operation_class = chosen.operation_class;
  int targets = 0;
  for (const auto& [kind, value] : {std::pair(target_kind::host, chosen.host),
                                    {target_kind::ip, chosen.ip},
                                    {target_kind::cidr, chosen.cidr},
                                    {target_kind::url, chosen.url},
                                    {target_kind::opaque, chosen.opaque}}) {
    if (value.empty()) continue;
    ++targets;
    name.kind = kind;
    name.target = value;
  }
  if (chosen.program.empty()) plan.fault = "a lock belongs to a program: name it with --program";
  if (targets == 1) return;
  plan.fault =
      "a lock has one target: give one of --host, --ip, --cidr, --url and --opaque (after exec, "
      "--url is a target; the coordinator's address stands before exec or in LEASEHOLD_URL)";
}

void plan_times(const exec_settings& chosen, exec_plan& plan) {
  auto& request = plan.acquire.request;
  plan.acquire.wait = length(chosen.wait, "wait", plan.fault);
  plan.term.term = request.term = length(chosen.ttl, "ttl", plan.fault);
  if (!chosen.max_lifetime.empty()) {
    request.max_lifetime = length(chosen.max_lifetime, "max-lifetime", plan.fault);
  }
  plan.term.grace = chosen.grace.empty() ? default_grace(request.term)
                                         : length(chosen.grace, "grace", plan.fault);
  if (!plan.fault.empty()) return;
  if (request.term < shortest_term) {
    plan.fault = fmt::format("--ttl {} is too short to renew in: give at least {} ms", chosen.ttl,
                             shortest_term.count());
  } else if (plan.term.grace > longest_grace(request.term)) {
    plan.fault = fmt::format("--grace {} leaves too little of a ttl of {}: give at most {} ms",
                             chosen.grace, chosen.ttl, longest_grace(request.term).count());
  }
}

/// A file that can be run is run; anything else, also a directory, is a line for a shell.
std::vector<std::string> hook_command(const std::string& hook) {
  if (hook.empty()) return {};
  std::error_code ignored;
  const bool is_program = hook.find('/') != hook.npos &&
                          std::filesystem::is_regular_file(hook, ignored) &&
                          access(hook.c_str(), X_OK) == 0;
  if (is_program) return {hook};
  return {"/bin/sh", "-c", hook};
}

}  // namespace

std::string own_instance() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  auto out = fmt::format("{}:{}", host.data(), getpid());
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !may_stand_in_instance(c); }, '-');
  if (out.size() > longest_instance) out.erase(0, out.size() - longest_instance);
  return out;
}

exec_plan make_exec_plan(const exec_settings& chosen) {
  exec_plan plan;
  name_lock(chosen, plan);
  if (plan.fault.empty()) plan_times(chosen, plan);
  auto& request = plan.acquire.request;
  request.instance = chosen.instance.empty() ? own_instance() : chosen.instance;
  request.request_id = fresh_request_id();
  plan.hook = hook_command(chosen.token_hook);
  plan.command = chosen.command;
  plan.conflict_exit_code = chosen.conflict_exit_code;
  if (plan.fault.empty() && plan.command.empty()) {
    plan.fault = "there is no command to run; put it after --";
  }
  return plan;
}

}  // namespace leasehold::tools
