// A program of somebody else: uses the installed headers and libraries, and no file of the sources.
#include <cstdio>
#include <string>

#include "leasehold/actors/coordinator.hpp"
#include "leasehold/client/fencing_guard.hpp"
#include "leasehold/client/worker.hpp"
#include "leasehold/protocol/codec.hpp"
#include "leasehold/protocol/rules.hpp"

namespace lp = leasehold::protocol;

namespace {
struct last_reason final : lp::row_sink {
  void on_row(const lp::row& what, const lp::record&) override { said = what.answer.reason; }
  lp::reason said = lp::reason::none;
};
}  // namespace

int main() {
  lp::record lease;
  last_reason rows;
  lp::event submit;
  submit.kind = lp::event_kind::submit;
  submit.lease = lp::lease_id{"j"};
  submit.job = lp::job_id{"j"};
  lp::step(lease, {}, submit, {1000}, rows);
  if (rows.said != lp::reason::submitted) return 1;

  lp::codec codec(lp::encoding::json);
  const lp::worker_frame beat{1, lp::worker_heartbeat{7}};
  std::string bytes;
  codec.encode({&beat, 1}, bytes);
  const auto back = codec.decode_worker(std::as_bytes(std::span(bytes)));
  if (back.frames.size() != 1 || back.frames.front() != beat) return 2;

  leasehold::client::fencing_guard guard;
  guard.raise("k", 2);
  if (guard.raise("k", 1) != leasehold::client::fence_verdict::stale) return 4;

  // Linked, not run: the coordinator needs a store and the worker a server.
  const bool linked = &leasehold::actors::coordinator::start != nullptr &&
                      lp::shard_of({lp::tenant_id{"t"}, lp::lease_id{"j"}}) < 64;
  std::puts(linked ? "consumer: ok" : "consumer: broken");
  return linked ? 0 : 3;
}
