#include "src/store/postgres_dispatch_changes.hpp"

#include <string>

namespace leasehold::storage {

namespace {

using protocol::dispatch_change;

postgres_values key_of(const dispatch_change& what) {
  postgres_values values;
  values.bytes(what.key.tenant.value).bytes(what.key.lease.value);
  return values;
}

/// One that is there stays as it is.
void open(postgres_pipeline& into, const dispatch_change& what) {
  const auto made = protocol::open_dispatch(what, "");
  into.add(
      "INSERT INTO cancel_dispatch (tenant, lease, generation, cancel_requested_ms, "
      "cancel_deadline_ms, host, stage, status, version, dispatch_count, next_attempt_ms, "
      "lease_owner, lease_token, lease_expires_ms, last_result, last_dispatched_ms, created_ms, "
      "updated_ms) SELECT $1, $2, $3, $4, $5, coalesce((SELECT boot_id FROM process_handle WHERE "
      "tenant = $1 AND lease = $2 AND generation = $3), ''), $6, $7, 0, 0, 0, '', '', 0, '', 0, "
      "$8, $8 ON CONFLICT (tenant, lease) DO NOTHING",
      key_of(what)
          .integer(made.gen.value)
          .integer(made.cancel_requested_at.ms)
          .integer(made.cancel_deadline.ms)
          .text(protocol::word(made.stage))
          .text(protocol::word(made.status))
          .integer(made.created_at.ms));
}

void drop_handles(postgres_pipeline& into, const dispatch_change& what) {
  into.add(
      "DELETE FROM process_handle WHERE tenant = $1 AND lease = $2 AND "
      "($3::bigint = 0 OR generation = $3)",
      key_of(what).integer(what.gen.value));
}

void close(postgres_pipeline& into, const dispatch_change& what) {
  into.add(
      "UPDATE cancel_dispatch SET status = 'closed', version = version + 1, lease_owner = '', "
      "lease_token = '', lease_expires_ms = 0, next_attempt_ms = 0, updated_ms = $4 "
      "WHERE tenant = $1 AND lease = $2 AND status <> 'closed' AND "
      "($3::bigint = 0 OR generation = $3)",
      key_of(what).integer(what.gen.value).integer(what.at.ms));
  // The attempt is never dispatched again.
  drop_handles(into, what);
}

void forget(postgres_pipeline& into, const dispatch_change& what) {
  into.add("DELETE FROM cancel_dispatch WHERE tenant = $1 AND lease = $2", key_of(what));
  into.add("DELETE FROM dispatch_event WHERE tenant = $1 AND lease = $2", key_of(what));
  auto all = what;
  all.gen = {};
  drop_handles(into, all);
}

constexpr const char* stream_is_over =
    "(stage = 'stream' AND status = 'dispatched' AND last_result = 'termination_requested')";

/// The second statement is `register_process` of the protocol: a stream that was asked opens the
/// process stage.
void put_handle(postgres_pipeline& into, const dispatch_change& what) {
  const auto& handle = what.process;
  into.add(
      "INSERT INTO process_handle (tenant, lease, generation, platform, pid, boot_id, start_ticks, "
      "process_group) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
      "ON CONFLICT (tenant, lease, generation) DO UPDATE SET platform = excluded.platform, "
      "pid = excluded.pid, boot_id = excluded.boot_id, start_ticks = excluded.start_ticks, "
      "process_group = excluded.process_group",
      key_of(what)
          .integer(what.gen.value)
          .text(handle.platform)
          .integer(handle.pid)
          .text(handle.boot_id)
          .integer(handle.start_ticks)
          .integer(handle.process_group));
  into.add(std::string("UPDATE cancel_dispatch SET host = $4, version = version + 1, "
                       "updated_ms = $5, stage = CASE WHEN ") +
               stream_is_over + " THEN 'process' ELSE stage END, status = CASE WHEN " +
               stream_is_over + " THEN 'pending' ELSE status END, next_attempt_ms = CASE WHEN " +
               stream_is_over +
               " THEN cancel_deadline_ms ELSE next_attempt_ms END WHERE tenant = $1 AND "
               "lease = $2 AND generation = $3 AND status <> 'closed'",
           key_of(what).integer(what.gen.value).text(handle.boot_id).integer(what.at.ms));
}

}  // namespace

void write_dispatch_changes(postgres_pipeline& into,
                            const std::vector<protocol::dispatch_change>& changes) {
  for (const auto& each : changes) {
    switch (each.what) {
      case dispatch_change::kind::open:
        open(into, each);
        break;
      case dispatch_change::kind::close:
        close(into, each);
        break;
      case dispatch_change::kind::forget:
        forget(into, each);
        break;
      case dispatch_change::kind::handle:
        put_handle(into, each);
        break;
    }
  }
}

}  // namespace leasehold::storage
