// The frames about locks that are not yet about a lease: Acquire and StopWaiting.
#include "codec_wire.hpp"

namespace leasehold::protocol::wire {
namespace {

/// As typed: the normaliser judges it, and it needs some room for what it will take away.
constexpr std::size_t most_target_bytes = 4096;
constexpr std::size_t most_metadata_bytes = 4096;

void read_target(v1::LockTarget& from, bounds& found, lock_name& to) {
  switch (from.value_case()) {
    case v1::LockTarget::kHost:
      to.kind = target_kind::host;
      to.target = std::move(*from.mutable_host());
      break;
    case v1::LockTarget::kIp:
      to.kind = target_kind::ip;
      to.target = std::move(*from.mutable_ip());
      break;
    case v1::LockTarget::kCidr:
      to.kind = target_kind::cidr;
      to.target = std::move(*from.mutable_cidr());
      break;
    case v1::LockTarget::kUrl:
      to.kind = target_kind::url;
      to.target = std::move(*from.mutable_url());
      break;
    case v1::LockTarget::kOpaque:
      to.kind = target_kind::opaque;
      to.target = std::move(*from.mutable_opaque());
      break;
    case v1::LockTarget::VALUE_NOT_SET:
      found.missing("lock.target");
      break;
  }
  found.length("lock.target", to.target, most_target_bytes);
}

void write_target(const lock_name& from, v1::LockTarget& to) {
  switch (from.kind) {
    case target_kind::host:
      return to.set_host(from.target);
    case target_kind::ip:
      return to.set_ip(from.target);
    case target_kind::cidr:
      return to.set_cidr(from.target);
    case target_kind::url:
      return to.set_url(from.target);
    case target_kind::opaque:
      return to.set_opaque(from.target);
  }
}

void read_name(v1::LockName& from, bounds& found, lock_name& to) {
  to.program = std::move(*from.mutable_program());
  to.workflow = std::move(*from.mutable_workflow());
  to.operation_class = std::move(*from.mutable_operation_class());
  found.length("lock.program", to.program, largest_lock_part);
  found.length("lock.workflow", to.workflow, largest_lock_part);
  found.length("lock.operation_class", to.operation_class, largest_lock_part);
  read_target(*from.mutable_target(), found, to);
}

void write_name(const lock_name& from, v1::LockName& to) {
  to.set_program(from.program);
  to.set_workflow(from.workflow);
  to.set_operation_class(from.operation_class);
  write_target(from, *to.mutable_target());
}

duration read_duration(std::string_view name, std::int64_t ms, bounds& found) {
  found.number(name, ms);
  if (ms < 0) found.negative(name);
  return {ms};
}

}  // namespace

void read(v1::Acquire& from, bounds& found, acquire& to) {
  auto& what = to.what;
  what.kind = event_kind::acquire;
  found.holder(from.holder());
  what.from.value = std::move(*from.mutable_holder());
  what.sent_at.ms = from.sent_at();
  found.number("sent_at", what.sent_at.ms);
  found.request(from.request_id());
  if (from.request_id().empty()) found.missing("request_id");
  what.request.value = std::move(*from.mutable_request_id());
  read_name(*from.mutable_lock(), found, to.name);
  to.ttl = read_duration("ttl_ms", from.ttl_ms(), found);
  to.max_lifetime = read_duration("max_lifetime_ms", from.max_lifetime_ms(), found);
  to.lock_delay = read_duration("lock_delay_ms", from.lock_delay_ms(), found);
  to.wait = read_duration("wait_ms", from.wait_ms(), found);
  found.length("execution_id", from.execution_id(), most_name_bytes);
  to.execution_id = std::move(*from.mutable_execution_id());
  std::size_t metadata = 0;
  for (auto& [name, value] : *from.mutable_metadata()) {
    metadata += name.size() + value.size();
    to.metadata.emplace(name, std::move(value));
  }
  if (metadata > most_metadata_bytes) found.too_long("metadata", most_metadata_bytes);
  if (!from.has_tie()) return;
  found.id("tie.job", from.tie().job());
  found.number("tie.generation", from.tie().generation());
  to.tie_job.value = std::move(*from.mutable_tie()->mutable_job());
  to.tie_generation.value = from.tie().generation();
}

void write(const acquire& from, v1::Acquire& to) {
  to.set_holder(from.what.from.value);
  to.set_sent_at(from.what.sent_at.ms);
  to.set_request_id(from.what.request.value);
  write_name(from.name, *to.mutable_lock());
  to.set_ttl_ms(from.ttl.ms);
  to.set_max_lifetime_ms(from.max_lifetime.ms);
  to.set_lock_delay_ms(from.lock_delay.ms);
  to.set_wait_ms(from.wait.ms);
  to.set_execution_id(from.execution_id);
  to.mutable_metadata()->insert(from.metadata.begin(), from.metadata.end());
  if (from.tie_job.empty()) return;
  to.mutable_tie()->set_job(from.tie_job.value);
  to.mutable_tie()->set_generation(from.tie_generation.value);
}

void read(v1::StopWaiting& from, bounds& found, stop_waiting& to) {
  read_name(*from.mutable_lock(), found, to.name);
  found.frame_id(from.acquire());
  to.acquire = static_cast<std::int64_t>(from.acquire());
}

void write(const stop_waiting& from, v1::StopWaiting& to) {
  write_name(from.name, *to.mutable_lock());
  to.set_acquire(static_cast<std::uint64_t>(from.acquire));
}

}  // namespace leasehold::protocol::wire
