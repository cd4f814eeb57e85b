#include "src/dispatch_census.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using labels = std::vector<std::pair<std::string, std::string>>;

constexpr std::chrono::seconds kept_for{1};
constexpr double milliseconds_a_second = 1e3;

MetricFamily make_gauge(std::string name, std::string help) {
  MetricFamily out;
  out.name = std::move(name);
  out.help = std::move(help);
  out.type = prometheus::MetricType::Gauge;
  return out;
}

void add(MetricFamily& to, double value, const labels& named) {
  ClientMetric& metric = to.metric.emplace_back();
  for (const auto& [name, text] : named) metric.label.push_back({name, text});
  metric.gauge.value = value;
}

}  // namespace

std::optional<actors::dispatch_counts> dispatch_census::known() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void dispatch_census::ask(sink then) {
  {
    std::unique_lock lock(mutex_);
    if (counts_ && std::chrono::steady_clock::now() - counted_at_ < kept_for) {
      const auto fresh = counts_;
      lock.unlock();
      return then(fresh);
    }
  }
  auto count = [self = shared_from_this(), then] {
    self->store_->count([self, then](actors::store_result<actors::dispatch_counts> counted) {
      self->answer(std::move(counted), then);
    });
  };
  if (!reads_->submit(std::move(count))) then(known());
}

void dispatch_census::answer(actors::store_result<actors::dispatch_counts> counted,
                             const sink& then) {
  if (auto* counts = std::get_if<actors::dispatch_counts>(&counted)) {
    const std::lock_guard lock(mutex_);
    counts_ = std::move(*counts);
    counted_at_ = std::chrono::steady_clock::now();
  }
  then(known());
}

std::string dispatch_metrics(const actors::dispatch_counts& counts, protocol::instant now) {
  auto all = make_gauge("leasehold_dispatches",
                        "Cancellation dispatches by status, newest result and stage");
  auto age = make_gauge("leasehold_dispatch_oldest_seconds",
                        "Age of the oldest cancellation dispatch by status and stage");
  std::map<std::pair<protocol::dispatch_status, protocol::dispatch_stage>, protocol::instant>
      oldest;
  for (const auto& cell : counts.cells) {
    const auto result = protocol::word(cell.last_result);
    add(all, static_cast<double>(cell.records),
        {{"status", std::string(protocol::word(cell.status))},
         {"result", result.empty() ? "none" : std::string(result)},
         {"stage", std::string(protocol::word(cell.stage))}});
    if (cell.records == 0) continue;
    const auto [at, is_new] = oldest.try_emplace({cell.status, cell.stage}, cell.oldest);
    if (!is_new) at->second = std::min(at->second, cell.oldest);
  }
  for (const auto& [which, created] : oldest) {
    const auto ms = std::max<std::int64_t>(0, now.ms - created.ms);
    add(age, static_cast<double>(ms) / milliseconds_a_second,
        {{"status", std::string(protocol::word(which.first))},
         {"stage", std::string(protocol::word(which.second))}});
  }
  return prometheus::TextSerializer().Serialize({all, age});
}

}  // namespace leasehold::server
