// `leasehold store`: what is done to a store and not to a coordinator.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <memory>
#include <optional>

#include "src/store/batch_log.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/store_copy.hpp"
#include "src/store/verify.hpp"
#include "tools/api.hpp"
#include "tools/chosen_store.hpp"
#include "tools/json_fields.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"
#include "tools/terminal.hpp"
#include "tools/verify.hpp"

namespace leasehold::tools {
namespace {

struct backup_flags {
  chosen_store place;
  std::string to;
  std::int64_t wal_limit_mib = 1024;
};

constexpr std::string_view no_backup_of_postgres =
    "a store in PostgreSQL is backed up with the means of PostgreSQL: pg_dump copies the database "
    "while leaseholdd serves, pg_basebackup with an archive of the write-ahead log the whole "
    "server. Start leaseholdd --restored-backup once on what was restored: every fencing token "
    "then rises above all that were granted after the backup";

exit_code backup(const backup_flags& flags, bool as_json) {
  if (!flags.place.is_given()) {
    return complain(exit_code::malformed, "name the store with --data or --store");
  }
  storage::store_place where;
  if (const auto found = flags.place.find(where); found != exit_code::ok) return found;
  const auto* file = std::get_if<storage::sqlite_place>(&where);
  if (file == nullptr) {
    return complain(exit_code::malformed, no_backup_of_postgres);
  }
  storage::backup_options how;
  how.from = file->directory;
  how.to = flags.to;
  how.most_wal_bytes = flags.wal_limit_mib << 20;
  progress_bar bar("pages", 0);
  how.progress = [&bar](std::int64_t copied, std::int64_t all, std::int64_t wal_bytes) {
    bar.expect(all);
    bar.show(copied, fmt::format("write-ahead log {} MiB", wal_bytes >> 20));
  };
  std::optional<progress_bar> check;
  how.checking = [&bar, &check](std::int64_t done, std::int64_t all) {
    if (!check) {
      bar.finish();
      check.emplace("rows checked", all);
    }
    check->show(done);
  };
  const auto done = storage::backup_store(how);
  if (check) check->finish();
  bar.finish();
  if (const auto* fault = std::get_if<actors::store_error>(&done)) return complain_about(*fault);
  const auto& report = std::get<storage::backup_report>(done);
  if (as_json) {
    print_json({{"directory", flags.to},
                {"bytes", report.bytes},
                {"wal_bytes", report.wal_bytes},
                {"row", report.head.last_row.value},
                {"hash", storage::to_hex(report.head.chain)}});
  } else {
    print("{}: {} bytes, up to {}\n", printable(flags.to), report.bytes,
          storage::to_text(report.head));
  }
  return exit_code::ok;
}

struct copy_flags {
  std::string from;
  std::string to;
  bool restart = false;
};

/// Reads both URLs; complains when one is none.
exit_code read_places(const copy_flags& flags, storage::copy_options& how) {
  chosen_store from{{}, flags.from};
  chosen_store to{{}, flags.to};
  const auto found = from.find(how.from);
  return found == exit_code::ok ? to.find(how.to) : found;
}

void tell_copy(const storage::copy_report& report, const storage::store_place& to, bool as_json) {
  if (as_json) {
    return print_json({{"to", storage::shown(to)},
                       {"row", report.head.last_row.value},
                       {"hash", storage::to_hex(report.head.chain)},
                       {"rows", report.rows},
                       {"records", report.records},
                       {"policies", report.policies},
                       {"dispatches", report.dispatches},
                       {"restored_backup", report.is_backup}});
  }
  print("{}: {} rows, {} records, {} policies, {} dispatches, up to {}; every decision proven\n",
        printable(storage::shown(to)), report.rows, report.records, report.policies,
        report.dispatches, storage::to_text(report.head));
  if (report.is_backup) {
    print(
        "{} the source was served meanwhile, or is a backup: start leaseholdd "
        "--restored-backup once on the copy\n",
        toned("note:", tone::warning));
  }
}

exit_code copy(const copy_flags& flags, bool as_json) {
  storage::copy_options how;
  if (const auto read = read_places(flags, how); read != exit_code::ok) return read;
  how.restart = flags.restart;
  progress_bar bar("rows of tables", 0);
  how.progress = [&bar](std::int64_t done, std::int64_t all, std::string_view table) {
    bar.expect(all);
    bar.show(done, table);
  };
  std::optional<progress_bar> check;
  how.checking = [&bar, &check](std::int64_t done, std::int64_t all) {
    if (!check) {
      bar.finish();
      check.emplace("rows verified", all);
    }
    check->show(done);
  };
  const auto done = storage::copy_store(how);
  if (check) check->finish();
  bar.finish();
  if (const auto* fault = std::get_if<actors::store_error>(&done)) return complain_about(*fault);
  tell_copy(std::get<storage::copy_report>(done), how.to, as_json);
  return exit_code::ok;
}

void add_copy(CLI::App& command, command_line& line) {
  auto flags = std::make_shared<copy_flags>();
  auto* verb = command.add_subcommand("copy", "Copy a store into another database, verified");
  verb->add_option("from", flags->from, "sqlite:/PATH or postgres://USER@HOST/DATABASE")
      ->required();
  verb->add_option("to", flags->to, "The same, without a store or with an empty one")->required();
  verb->add_flag("--restart", flags->restart, "Empty an unfinished copy at TO, and begin again");
  verb->footer(
      "Stop the coordinator of FROM for good first, and start it on the copy: what a source grants "
      "later the copy does not know. One that is served while it is copied makes a copy that is "
      "served with --restored-backup only. Principals and tokens are in the data directory and are "
      "not copied. Until the copy is whole and proven nobody can serve or read it.\n"
      "Example:\n"
      "  leasehold store copy sqlite:/var/lib/leasehold "
      "postgres://leasehold@db.example/leasehold");
  verb->callback([flags, &line] { line.result = copy(*flags, line.json); });
}

}  // namespace

void add_store(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("store", "Back up or copy a store");
  command->require_subcommand(1);
  command->footer(
      "The copy holds payloads and evidence, and no token: keep principals.toml apart. To serve "
      "it, put it where the data directory was and start leaseholdd --restored-backup once: every "
      "fencing token then rises above all that were granted after the backup. The copy is checked; "
      "one of a damaged store is kept as leasehold.db.damaged, and the exit code is 6.\n"
      "Examples:\n"
      "  leasehold store backup --data /var/lib/leasehold --to /backup/2026-12-01\n"
      "  leasehold verify --data /backup/2026-12-01");
  auto flags = std::make_shared<backup_flags>();
  auto* copy = command->add_subcommand("backup",
                                       "Copy a data directory, also while leaseholdd writes to it");
  add_chosen_store(*copy, flags->place, "The data directory");
  copy->add_option("--to", flags->to, "A directory that is not there yet")->required();
  copy->add_option("--wal-limit", flags->wal_limit_mib,
                   "Give up when the write-ahead log grows past this many MiB meanwhile")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  copy->callback([flags, &line] { line.result = backup(*flags, line.json); });
  add_copy(*command, line);
}

}  // namespace leasehold::tools
