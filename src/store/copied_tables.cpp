#include "src/store/copied_tables.hpp"

namespace leasehold::storage {
namespace {

using enum cell_kind;

constexpr std::array batch_columns{copied_column{"first_row", integer},
                                   copied_column{"last_row", integer},
                                   copied_column{"format", integer},
                                   copied_column{"boot_id", text},
                                   copied_column{"boottime_ms", integer},
                                   copied_column{"wall_ms", integer},
                                   copied_column{"coordinator_ms", integer},
                                   copied_column{"chain", bytes},
                                   copied_column{"body", bytes}};
constexpr std::array record_columns{
    copied_column{"tenant", key}, copied_column{"lease", key}, copied_column{"last_row", integer},
    copied_column{"check_value", integer}, copied_column{"image", bytes}};
constexpr std::array policy_columns{copied_column{"id", integer}, copied_column{"text", text}};
constexpr std::array dispatch_columns{copied_column{"tenant", key},
                                      copied_column{"lease", key},
                                      copied_column{"generation", integer},
                                      copied_column{"cancel_requested_ms", integer},
                                      copied_column{"cancel_deadline_ms", integer},
                                      copied_column{"host", text},
                                      copied_column{"stage", text},
                                      copied_column{"status", text},
                                      copied_column{"version", integer},
                                      copied_column{"dispatch_count", integer},
                                      copied_column{"next_attempt_ms", integer},
                                      copied_column{"lease_owner", text},
                                      copied_column{"lease_token", text},
                                      copied_column{"lease_expires_ms", integer},
                                      copied_column{"last_result", text},
                                      copied_column{"last_dispatched_ms", integer},
                                      copied_column{"created_ms", integer},
                                      copied_column{"updated_ms", integer}};
constexpr std::array event_columns{copied_column{"tenant", key},
                                   copied_column{"lease", key},
                                   copied_column{"version", integer},
                                   copied_column{"at_ms", integer},
                                   copied_column{"kind", text},
                                   copied_column{"generation", integer},
                                   copied_column{"dispatch_count", integer},
                                   copied_column{"result", text}};
constexpr std::array handle_columns{
    copied_column{"tenant", key},          copied_column{"lease", key},
    copied_column{"generation", integer},  copied_column{"platform", text},
    copied_column{"pid", integer},         copied_column{"boot_id", text},
    copied_column{"start_ticks", integer}, copied_column{"process_group", integer}};

constexpr std::array tables{copied_table{"batch", batch_columns},
                            copied_table{"record", record_columns},
                            copied_table{"policy", policy_columns},
                            copied_table{"cancel_dispatch", dispatch_columns},
                            copied_table{"dispatch_event", event_columns},
                            copied_table{"process_handle", handle_columns}};

}  // namespace

std::span<const copied_table> copied_tables() noexcept { return tables; }

std::size_t size_of(const copied_row& row) noexcept {
  std::size_t size = 0;
  for (const copied_cell& cell : row) {
    const auto* bytes = std::get_if<std::string>(&cell);
    size += bytes != nullptr ? bytes->size() + 8 : 8;
  }
  return size;
}

}  // namespace leasehold::storage
