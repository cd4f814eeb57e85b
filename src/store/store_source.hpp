// A store as verify, head and copy read it, whichever database it is in. Reads only, and may run
// while a coordinator writes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/log_reader.hpp"
#include "src/store/store_facts.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::storage {

/// One thread at a time.
class store_source {
 public:
  using fault = std::optional<actors::store_error>;
  using record_sink = std::function<void(const stored_record&)>;
  using policy_sink = std::function<void(protocol::policy_id, std::optional<protocol::policy>)>;

  virtual ~store_source() = default;

  /// For people: the directory, or the URL without a password.
  [[nodiscard]] virtual std::string name() const = 0;

  virtual actors::store_result<store_facts> facts() = 0;
  virtual actors::store_result<actors::log_head> head() = 0;
  /// Facts, the log's end and every record in the order of its key, all as of one instant:
  /// `on_begin` once, then `on_record` for each.
  virtual fault checkpoint(
      const std::function<void(const store_facts&, const actors::log_head&)>& on_begin,
      const record_sink& on_record) = 0;
  /// Every record as it is now.
  virtual fault each_record(const record_sink& out) = 0;
  /// Every policy; nothing for one whose text cannot be read.
  virtual fault each_policy(const policy_sink& out) = 0;
  /// The batches from the one that holds `from` on, in order, at most `limit`. Begins with the
  /// oldest when `from` was cut.
  virtual actors::store_result<std::vector<actors::stored_batch>> batches_from(
      protocol::row_number from, std::size_t limit) = 0;

  /// Where the log once ended, as something beside the database says; nothing where nobody keeps
  /// it. As of when the source was opened.
  [[nodiscard]] virtual const kept_head* kept() const = 0;
};

/// Opens a store that is there; foreign: there is none.
actors::store_result<std::unique_ptr<store_source>> open_source(const store_place& place);
/// Of a reader that was opened otherwise. `kept`: what stands beside its database.
std::unique_ptr<store_source> make_source(std::string name, std::unique_ptr<log_reader> reader,
                                          std::optional<kept_head> kept);

}  // namespace leasehold::storage
