#include "support/fenced_target.hpp"

#include <fstream>
#include <iterator>

#include "support/fenced_postgresql.hpp"
#include "support/fenced_sqlite.hpp"
#include "support/guarded_service.hpp"

namespace leasehold::tests {

std::string_view word(write_end end) {
  switch (end) {
    case write_end::written:
      return "written";
    case write_end::stale:
      return "stale";
    case write_end::failed:
      return "failed";
  }
  return "";
}

std::string shipped_sql(std::string_view file) {
  const auto path = std::filesystem::path(LEASEHOLD_SOURCE_DIR) / "tools/sql" / file;
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::unique_ptr<fenced_target> open_target(const std::string& address) {
  const auto colon = address.find(':');
  const auto kind = address.substr(0, colon);
  const auto place = address.substr(colon + 1);
  if (kind == "sqlite") return fenced_sqlite::open(place);
  if (kind == "postgresql") return fenced_postgresql::open(place);
  if (kind == "guard") return open_guarded(place);
  return nullptr;
}

}  // namespace leasehold::tests
