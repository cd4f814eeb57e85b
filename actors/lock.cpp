#include "leasehold/actors/lock.hpp"

#include "leasehold/protocol/packed.hpp"

namespace leasehold::actors {

namespace {

constexpr std::uint8_t lock_format = 1;

}  // namespace

std::string encode_lock(const lock_spec& spec) {
  std::string bytes;
  protocol::put_byte(bytes, lock_format);
  protocol::put_text(bytes, spec.name.program);
  protocol::put_byte(bytes, static_cast<std::uint8_t>(spec.name.kind));
  protocol::put_text(bytes, spec.name.target);
  protocol::put_text(bytes, spec.name.workflow);
  protocol::put_text(bytes, spec.name.operation_class);
  protocol::put_text(bytes, spec.typed);
  protocol::put_text(bytes, spec.execution_id);
  protocol::put_text(bytes, spec.trace_id);
  protocol::put_unsigned(bytes, spec.metadata.size());
  for (const auto& [name, value] : spec.metadata) {
    protocol::put_text(bytes, name);
    protocol::put_text(bytes, value);
  }
  protocol::put_text(bytes, spec.tie.job.value);
  protocol::put_signed(bytes, spec.tie.gen.value);
  return bytes;
}

std::optional<lock_spec> decode_lock(std::string_view bytes) {
  protocol::packed_reader in(bytes);
  if (in.get_byte() != lock_format) return std::nullopt;
  lock_spec spec;
  spec.name.program = in.get_text();
  spec.name.kind = in.get_enum(protocol::target_kind::opaque);
  spec.name.target = in.get_text();
  spec.name.workflow = in.get_text();
  spec.name.operation_class = in.get_text();
  spec.typed = in.get_text();
  spec.execution_id = in.get_text();
  spec.trace_id = in.get_text();
  const std::uint64_t metadata = in.get_unsigned();
  for (std::uint64_t i = 0; i < metadata && !in.failed(); ++i) {
    const std::string_view name = in.get_text();
    spec.metadata[std::string(name)] = in.get_text();
  }
  spec.tie.job.value = in.get_text();
  spec.tie.gen.value = in.get_signed();
  if (!in.finished()) return std::nullopt;
  return spec;
}

}  // namespace leasehold::actors
