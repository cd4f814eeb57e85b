// The epoch of a store on PostgreSQL, as the keeper asks for it.
#pragma once

#include <optional>
#include <string>

#include "src/epoch_store.hpp"
#include "src/store/postgres_epoch.hpp"

namespace leasehold::server {

/// The name of a holder carries the term that others must wait: the row has no other place for it.
std::string holder_name(std::string_view process, protocol::duration term);
/// Nothing when the name was not made by holder_name.
std::optional<protocol::duration> term_in(std::string_view holder);

/// Connects with the first call, and again after a failure.
class postgres_epoch_store final : public epoch_store {
 public:
  /// The calls' limits follow from `term`.
  postgres_epoch_store(std::string url, const epoch_claim& mine);

  actors::store_result<std::optional<epoch_row>> read() override;
  actors::store_result<std::optional<epoch_row>> take(const std::optional<epoch_row>& seen,
                                                      const epoch_claim& by) override;
  actors::store_result<std::optional<epoch_row>> renew(const epoch_row& mine) override;
  actors::store_result<bool> release(const epoch_row& mine) override;

 private:
  std::optional<actors::store_error> connect();

  storage::postgres_access access_;
  protocol::duration term_;
  std::optional<storage::postgres_epoch> db_;
};

}  // namespace leasehold::server
