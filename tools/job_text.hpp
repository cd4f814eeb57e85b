// A job of the API as people read it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/api.hpp"

namespace leasehold::tools {

/// The job inside an answer: its member "job", else the answer itself.
const boost::json::object& job_in(const boost::json::object& answer);

bool is_settled_word(std::string_view state);

/// Several lines for `job show`.
std::string describe(const boost::json::object& job);

/// Asks until the job is settled or `limit` (a length of time; empty: 1 h) is over, then prints it.
/// ok: it completed. differs: it ended otherwise, or not yet.
exit_code wait_until_settled(api& coordinator, const std::string& job, const std::string& limit);

/// "+10m" from now, or ms of coordinator time.
std::optional<std::int64_t> read_instant_ms(std::string_view text);

}  // namespace leasehold::tools
