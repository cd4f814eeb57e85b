// `leasehold exec`: a command that runs only while a lock is held.
#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/exec/held_run.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {
namespace {

constexpr std::string_view footer = R"(
CMD runs in a process group of its own, with standard input and output as they are. It gets
  LEASEHOLD_TOKEN        the fencing token: give it to everything that CMD writes to
  LEASEHOLD_KEY          the canonical key of the lock; LEASEHOLD_LEASE_ID: its lease
  LEASEHOLD_DEADLINE     when the term ends that runs at the start, in ms of CLOCK_BOOTTIME (the
                         clock of /proc/uptime); renews move the end later
  LEASEHOLD_DEADLINE_MS  the same as ms from the start
and no other LEASEHOLD_ variable. Signals are passed on to the group. When CMD ends, what it left in
its group is ended (TERM, KILL after --grace) before the lock is released. When the lock is lost, or
cannot be renewed in time, the group gets TERM, and KILL before the term ends; a watchdog process does
it when this one cannot.

Exit code: that of CMD, 128+N when signal N ended it, or
  75 another holds the lock (--conflict-exit-code)    124 others held it for as long as --wait
  120 the lock was lost                               125 exec itself failed
  126 CMD cannot be run                               127 CMD was not found

After exec, --url is a target. The coordinator's address stands before exec or in LEASEHOLD_URL.

Examples:
  leasehold exec --program backup --host db1.example.com -- ./backup.sh
  leasehold exec --program deploy --opaque production --wait 5m --ttl 30s -- make deploy
  leasehold exec --program scan --url https://example.com/ --token-hook ./fence.sh -- ./scan
)";

void add_target_options(CLI::App& command, exec_settings& chosen) {
  command.add_option("--program", chosen.program, "The program that the lock belongs to")
      ->required();
  command.add_option("--host", chosen.host, "Lock a host name");
  command.add_option("--ip", chosen.ip, "Lock an IP address");
  command.add_option("--cidr", chosen.cidr, "Lock a network");
  command.add_option("--url", chosen.url, "Lock a URL");
  command.add_option("--opaque", chosen.opaque, "Lock any text");
  command.add_option("--workflow", chosen.workflow, "Part of the key");
  command.add_option("--operation-class", chosen.operation_class, "Part of the key");
}

void add_term_options(CLI::App& command, exec_settings& chosen) {
  command.add_option("--wait", chosen.wait, "Wait for the lock, at most that long")
      ->capture_default_str();
  command.add_option("--ttl", chosen.ttl, "The term; renewed at a third of it")
      ->capture_default_str();
  command.add_option("--max-lifetime", chosen.max_lifetime,
                     "Hold the lock no longer than that in all");
  command.add_option("--instance", chosen.instance,
                     "Tells holders of one principal apart (default HOST:PID)");
  command.add_option("--grace", chosen.grace,
                     "From TERM to KILL (default a fifth of the ttl, at most 5s)");
  command.add_option(
      "--token-hook", chosen.token_hook,
      "A program, or a line for a shell, that is run to its end before CMD with the "
      "same environment, to write the token where CMD's writes are checked; unless it "
      "ends with 0, CMD is not started");
  command
      .add_option("--conflict-exit-code", chosen.conflict_exit_code,
                  "The exit code when another holds the lock")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
}

exit_code run(const command_line& line, const exec_settings& chosen) {
  auto plan = make_exec_plan(chosen);
  if (!plan.fault.empty()) return complain(exit_code::exec_failed, plan.fault);
  client_options connection;
  std::string fault;
  if (fill_connection(line, connection, fault) != exit_code::ok) {
    return complain(exit_code::exec_failed, fault);
  }
  return run_held(connection, std::move(plan));
}

}  // namespace

void add_exec(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<exec_settings>();
  auto* command = app.add_subcommand("exec", "Run a command only while a lock is held");
  command->footer(std::string(footer));
  add_target_options(*command, *chosen);
  add_term_options(*command, *chosen);
  add_command_words(*command, line, chosen->command);
  command->callback([chosen, &line] { line.result = run(line, *chosen); });
}

}  // namespace leasehold::tools
