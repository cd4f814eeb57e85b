// Jobs rebuilt from exported lines: the fold that recovery and verify use, fed from JSON.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/job.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "tools/forced_revokes.hpp"

namespace leasehold::tools {

class rebuilt_jobs {
 public:
  /// Takes the next line. Yields a sentence when it cannot be read, or when the rows before it were
  /// cut off.
  std::optional<std::string> take(const boost::json::object& line);

  /// Rows whose decision does not follow from the inputs, and rows that are missing at the end.
  [[nodiscard]] std::vector<protocol::fold::mismatch> wrong_rows() const;

  /// The jobs by id, in the form of GET /v1/jobs/ID without the payload.
  [[nodiscard]] std::map<std::string, boost::json::object> jobs() const;

 private:
  void remember_body(const protocol::stored_row& row, const boost::json::object& line);

  protocol::fold fold_;
  std::map<protocol::lease_key, forced_revokes> revokes_;
  std::map<protocol::lease_key, actors::job_spec> bodies_;
  std::vector<protocol::fold::mismatch> wrong_;
};

}  // namespace leasehold::tools
