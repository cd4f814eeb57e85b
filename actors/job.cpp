#include "leasehold/actors/job.hpp"

#include "leasehold/protocol/packed.hpp"

namespace leasehold::actors {

namespace {

constexpr std::uint8_t job_format = 1;

}  // namespace

std::string encode_job(const job_spec& spec) {
  std::string bytes;
  bytes.reserve(64 + spec.payload.size());
  protocol::put_byte(bytes, job_format);
  protocol::put_text(bytes, spec.queue);
  protocol::put_text(bytes, spec.payload);
  protocol::put_unsigned(bytes, spec.labels.size());
  for (const auto& [name, value] : spec.labels) {
    protocol::put_text(bytes, name);
    protocol::put_text(bytes, value);
  }
  protocol::put_signed(bytes, spec.priority);
  protocol::put_signed(bytes, spec.not_before.ms);
  protocol::put_signed(bytes, spec.not_after.ms);
  protocol::put_text(bytes, spec.request.value);
  protocol::put_text(bytes, spec.trace_id);
  protocol::put_text(bytes, spec.redrive_of.value);
  protocol::put_text(bytes, spec.submitted_by);
  protocol::put_signed(bytes, spec.submitted_at.ms);
  return bytes;
}

std::optional<job_spec> decode_job(std::string_view bytes) {
  protocol::packed_reader in(bytes);
  if (in.get_byte() != job_format) return std::nullopt;
  job_spec spec;
  spec.queue = in.get_text();
  spec.payload = in.get_text();
  const std::uint64_t labels = in.get_unsigned();
  for (std::uint64_t i = 0; i < labels && !in.failed(); ++i) {
    const std::string_view name = in.get_text();
    spec.labels[std::string(name)] = in.get_text();
  }
  spec.priority = in.get_signed();
  spec.not_before.ms = in.get_signed();
  spec.not_after.ms = in.get_signed();
  spec.request.value = in.get_text();
  spec.trace_id = in.get_text();
  spec.redrive_of.value = in.get_text();
  spec.submitted_by = in.get_text();
  spec.submitted_at.ms = in.get_signed();
  if (!in.finished()) return std::nullopt;
  return spec;
}

}  // namespace leasehold::actors
