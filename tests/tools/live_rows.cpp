#include "tests/tools/live_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>

#include "leasehold/protocol/evidence.hpp"
#include "src/store/evidence_json.hpp"

namespace leasehold::tests {
namespace {

namespace json = boost::json;

constexpr auto tenant = "acme";

tools::scenario read(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto parsed = tools::read_scenario(text);
  if (const auto* fault = std::get_if<tools::malformed_scenario>(&parsed)) {
    ADD_FAILURE() << file << ": " << fault->sentence;
    return {};
  }
  return std::get<tools::scenario>(std::move(parsed));
}

/// Numbers rows as a store does and keeps what each lease's next row points back to.
class writer {
 public:
  writer(live_history& out, protocol::policy_id policy) : out_(out), policy_(policy) {}

  void take(const protocol::row& what, const protocol::record& after) {
    protocol::stored_row row;
    const auto lease = what.input != nullptr ? what.input->lease : after.lease;
    row.row.value = ++newest_;
    row.key = {protocol::tenant_id(tenant), lease};
    row.prev_row = after.known() ? last_rows_[lease] : protocol::row_number{};
    row.policy = policy_;
    row.at = what.at;
    if (what.input != nullptr) row.input = *what.input;
    row.input.kind = what.kind;
    row.has_input = what.input != nullptr;
    row.derived = what.derived;
    row.state_before = what.state_before;
    row.answer = what.answer;
    if (after.known()) last_rows_[lease] = row.row;
    auto& target = out_.leases[lease.value];
    std::string line;
    storage::append_evidence_line(line, row, after, deferred_row_of(what), nullptr);
    if (what.answer.decision == protocol::decision::deferred)
      waiting_.emplace_back(*what.input, newest_);
    target.lines.push_back(json::parse(line).as_object());
  }

 private:
  /// The row in which this frame was deferred; the scenario's run does not number rows.
  protocol::row_number deferred_row_of(const protocol::row& what) {
    if (!what.derived || what.input == nullptr) return {};
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const auto& each) { return each.first == *what.input; });
    if (found == waiting_.end()) return {};
    const protocol::row_number row{found->second};
    waiting_.erase(found);
    return row;
  }

  live_history& out_;
  protocol::policy_id policy_;
  std::int64_t newest_ = 0;
  std::map<protocol::lease_id, protocol::row_number> last_rows_;
  std::vector<std::pair<protocol::event, std::int64_t>> waiting_;
};

}  // namespace

live_history run_live(const std::filesystem::path& file) {
  const auto scenario = read(file);
  live_history out;
  out.policy = scenario.policy;
  const auto id = protocol::id_of(scenario.policy);
  writer rows(out, id);
  tools::scenario_run run(
      scenario.policy, [&](std::size_t, const protocol::row& what, const protocol::record& after) {
        rows.take(what, after);
      });
  for (const auto& step : scenario.steps) run.take(step);
  return out;
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> out;
  const std::filesystem::path root(LEASEHOLD_SOURCE_DIR "/tests/scenario");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  EXPECT_GT(out.size(), 60U);
  return out;
}

}  // namespace leasehold::tests
