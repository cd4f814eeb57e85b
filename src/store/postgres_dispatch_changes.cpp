#include "src/store/postgres_dispatch_changes.hpp"

namespace leasehold::storage {

void write_dispatch_changes(postgres_pipeline& into,
                            const std::vector<protocol::dispatch_change>& changes) {
  if (changes.empty()) return;
  (void)into;
}

}  // namespace leasehold::storage
