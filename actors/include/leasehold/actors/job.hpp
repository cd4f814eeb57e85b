// A job beside its lease: what its submitter gave, and how it is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/lock.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/frame.hpp"

namespace leasehold::actors {

/// What a submitter gives. Kept as the attachment of the submit row; never judged by the rules.
struct job_spec {
  std::string queue;
  std::string payload;  ///< at most 64 KiB; shown to the job's client and its worker only
  protocol::labels labels;
  std::int64_t priority = 0;     ///< higher first; -1000 to 1000
  protocol::instant not_before;  ///< 0: at once
  protocol::instant not_after;   ///< 0: no end; past it the job is cancelled instead of offered
  protocol::policy policy;
  protocol::request_id request;
  std::string trace_id;  ///< W3C traceparent, or empty
  protocol::job_id redrive_of;
  std::string submitted_by;  ///< the principal's name
  protocol::instant submitted_at;
  friend bool operator==(const job_spec&, const job_spec&) = default;
};

/// Bytes of a job_spec as attached to its submit row (without the policy, which is a row of its
/// own), and back. Nothing when they cannot be read.
std::string encode_job(const job_spec& spec);
std::optional<job_spec> decode_job(std::string_view bytes);

/// A job or a lock as a reader sees it: one consistent state, durable.
struct lease_view {
  protocol::tenant_id tenant;
  std::shared_ptr<const protocol::record> state;
  std::shared_ptr<const job_spec> spec;   ///< null: it is no job
  std::shared_ptr<const lock_spec> lock;  ///< null: it is no lock
  protocol::policy_id policy;
  protocol::row_number row;  ///< the lease's newest row
};

}  // namespace leasehold::actors
