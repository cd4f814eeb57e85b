#include "src/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>

namespace leasehold::server {
namespace {

using actors::counters;
using actors::latency_tally;
using actors::tally;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using sources = std::vector<std::shared_ptr<const counters>>;
using labels = std::vector<std::pair<std::string, std::string>>;

constexpr double microseconds_a_second = 1e6;

std::int64_t sum(const sources& from, auto&& read) {
  std::int64_t total = 0;
  for (const auto& source : from) total += read(*source);
  return total;
}

MetricFamily make_family(std::string name, std::string help, MetricType type) {
  MetricFamily out;
  out.name = std::move(name);
  out.help = std::move(help);
  out.type = type;
  return out;
}

void add(MetricFamily& to, std::int64_t value, const labels& named = {}) {
  ClientMetric& metric = to.metric.emplace_back();
  for (const auto& [name, word] : named) metric.label.push_back({name, word});
  if (to.type == MetricType::Gauge) {
    metric.gauge.value = static_cast<double>(value);
  } else {
    metric.counter.value = static_cast<double>(value);
  }
}

/// One number by one name.
struct plain_metric {
  const char* name;
  const char* help;
  MetricType type;
  tally counters::*from;
};

constexpr plain_metric plain_metrics[] = {
    {"leasehold_store_commits_total", "Durable commits", MetricType::Counter, &counters::commits},
    {"leasehold_store_commit_failures_total", "Commits that failed", MetricType::Counter,
     &counters::commit_failures},
    {"leasehold_store_failing", "1 while the store fails", MetricType::Gauge,
     &counters::store_failing},
    {"leasehold_store_rows_total", "Evidence rows made durable", MetricType::Counter,
     &counters::rows},
    {"leasehold_store_row_bytes_total", "Bytes of evidence rows", MetricType::Counter,
     &counters::row_bytes},
    {"leasehold_store_checkpoint_row", "Records are checkpointed as of this row", MetricType::Gauge,
     &counters::checkpoint_row},
    {"leasehold_store_damaged", "Alarm: 1 once the log was found damaged", MetricType::Gauge,
     &counters::store_damaged},
    {"leasehold_store_first_row", "Where the log begins; rows before it were cut",
     MetricType::Gauge, &counters::first_row},
    {"leasehold_store_last_row", "Newest durable row", MetricType::Gauge, &counters::last_row},
    {"leasehold_deadlines_armed", "Entries of the deadline indexes", MetricType::Gauge,
     &counters::deadlines_armed},
    {"leasehold_jobs_ready", "Jobs that may be offered", MetricType::Gauge, &counters::jobs_ready},
    {"leasehold_jobs_waiting", "Jobs that wait for not_before or a backoff", MetricType::Gauge,
     &counters::jobs_waiting},
    {"leasehold_locks_held", "Locks that somebody holds", MetricType::Gauge, &counters::locks_held},
    {"leasehold_lock_waiters", "Requests in line for a lock", MetricType::Gauge,
     &counters::lock_waiters},
    {"leasehold_leases_forgotten_total", "Settled jobs and idle locks that were forgotten",
     MetricType::Counter, &counters::leases_forgotten},
    {"leasehold_payload_bytes", "Payloads in memory", MetricType::Gauge, &counters::payload_bytes},
    {"leasehold_sessions", "Live worker sessions", MetricType::Gauge, &counters::sessions},
    {"leasehold_sessions_opened_total", "Worker sessions opened", MetricType::Counter,
     &counters::sessions_opened},
    {"leasehold_sessions_superseded_total", "Sessions replaced by a newer one of their holder",
     MetricType::Counter, &counters::sessions_superseded},
    {"leasehold_bad_frames_total", "Frames that could not be read", MetricType::Counter,
     &counters::bad_frames},
    {"leasehold_frames_received_total", "Frames read from workers", MetricType::Counter,
     &counters::frames_in},
    {"leasehold_frames_sent_total", "Frames sent to workers", MetricType::Counter,
     &counters::frames_out},
    {"leasehold_messages_received_total", "Messages read from workers", MetricType::Counter,
     &counters::messages_in},
    {"leasehold_messages_sent_total", "Messages sent to workers", MetricType::Counter,
     &counters::messages_out},
    {"leasehold_frames_in_flight", "Frames read and not yet answered", MetricType::Gauge,
     &counters::frames_in_flight},
    {"leasehold_offers_withdrawn_total", "Offers whose session was gone", MetricType::Counter,
     &counters::offers_withdrawn},
    {"leasehold_watchers", "Live readers of events", MetricType::Gauge, &counters::watchers},
    {"leasehold_unknown_generations_total",
     "Alarm: frames with a generation that was never granted", MetricType::Counter,
     &counters::unknown_generations},
    {"leasehold_ownership_conflicts_total", "Alarm: leases frozen because two holders claimed them",
     MetricType::Counter, &counters::ownership_conflicts},
    {"leasehold_grants_contradicted_total",
     "Alarm: the stored grant named another holder than the lease's actor", MetricType::Counter,
     &counters::grants_contradicted},
};

MetricFamily judged(const sources& from) {
  auto out = make_family("leasehold_events_total", "Judged events by kind and decision",
                         MetricType::Counter);
  for (std::size_t kind = 0; kind < counters::kinds; ++kind) {
    for (std::size_t d = 0; d < counters::decisions; ++d) {
      const auto count = sum(from, [&](const counters& c) { return c.judged[kind][d].value(); });
      if (count == 0) continue;
      add(out, count,
          {{"event", std::string(protocol::word(static_cast<protocol::event_kind>(kind)))},
           {"decision", std::string(protocol::word(static_cast<protocol::decision>(d)))}});
    }
  }
  return out;
}

MetricFamily answered(const sources& from) {
  auto out = make_family("leasehold_decisions_total", "Decisions by reason", MetricType::Counter);
  for (const auto& entry : protocol::all_reasons()) {
    for (std::size_t d = 0; d < counters::decisions; ++d) {
      const auto count =
          sum(from, [&](const counters& c) { return c.answered[d][entry.number].value(); });
      if (count == 0) continue;
      add(out, count,
          {{"decision", std::string(protocol::word(static_cast<protocol::decision>(d)))},
           {"reason", std::string(entry.word)}});
    }
  }
  return out;
}

MetricFamily refused(const sources& from) {
  auto out = make_family("leasehold_refusals_total", "Refused before a lease was touched",
                         MetricType::Counter);
  for (const auto& entry : protocol::all_reasons()) {
    const auto count =
        sum(from, [&](const counters& c) { return c.refused[entry.number].value(); });
    if (count != 0) add(out, count, {{"reason", std::string(entry.word)}});
  }
  return out;
}

MetricFamily leases(const sources& from) {
  auto out = make_family("leasehold_leases", "Leases by state", MetricType::Gauge);
  for (std::size_t s = 1; s < counters::states; ++s) {
    add(out, sum(from, [&](const counters& c) { return c.leases[s].value(); }),
        {{"state", std::string(protocol::word(static_cast<protocol::lease_state>(s)))}});
  }
  return out;
}

MetricFamily latency(const sources& from, std::string name, std::string help,
                     latency_tally counters::*what) {
  auto out = make_family(std::move(name), std::move(help), MetricType::Histogram);
  auto& histogram = out.metric.emplace_back().histogram;
  std::int64_t below = 0;
  const std::size_t bounds = latency_tally::bounds_us.size();
  for (std::size_t i = 0; i <= bounds; ++i) {
    below += sum(from, [&](const counters& c) { return (c.*what).bucket(i); });
    const double bound =
        i == bounds ? std::numeric_limits<double>::infinity()
                    : static_cast<double>(latency_tally::bounds_us[i]) / microseconds_a_second;
    histogram.bucket.push_back({static_cast<std::uint64_t>(below), bound});
  }
  histogram.sample_count = static_cast<std::uint64_t>(below);
  histogram.sample_sum =
      static_cast<double>(sum(from, [&](const counters& c) { return (c.*what).sum_us(); })) /
      microseconds_a_second;
  return out;
}

struct net_metric {
  const char* name;
  const char* help;
  MetricType type;
  net_counters::count net_counters::*from;
};

constexpr net_metric net_metrics[] = {
    {"leasehold_slow_readers_total", "Sockets closed because their peer did not read",
     MetricType::Counter, &net_counters::slow_readers},
    {"leasehold_connections_accepted_total", "Connections accepted", MetricType::Counter,
     &net_counters::connections_accepted},
    {"leasehold_connections_refused_total", "Connections over a limit", MetricType::Counter,
     &net_counters::connections_refused},
    {"leasehold_connections", "Open connections", MetricType::Gauge,
     &net_counters::connections_open},
    {"leasehold_tls_handshakes_total", "TLS handshakes that worked", MetricType::Counter,
     &net_counters::tls_handshakes},
    {"leasehold_tls_handshake_failures_total", "TLS handshakes that failed", MetricType::Counter,
     &net_counters::tls_failures},
    {"leasehold_http_requests_total", "Requests read", MetricType::Counter,
     &net_counters::requests},
    {"leasehold_http_requests_refused_total", "Requests refused before their route was known",
     MetricType::Counter, &net_counters::requests_refused},
    {"leasehold_write_calls_total", "System calls that write to a peer", MetricType::Counter,
     &net_counters::write_calls},
    {"leasehold_received_bytes_total", "Bytes read from peers", MetricType::Counter,
     &net_counters::bytes_read},
    {"leasehold_sent_bytes_total", "Bytes sent to peers", MetricType::Counter,
     &net_counters::bytes_sent},
};

void add_net(std::vector<MetricFamily>& to, const net_counters& from) {
  for (const net_metric& metric : net_metrics) {
    to.push_back(make_family(metric.name, metric.help, metric.type));
    add(to.back(), (from.*metric.from).load(std::memory_order_relaxed));
  }
}

void add_role(std::vector<MetricFamily>& to, const active_role& role) {
  const auto is = [&](const char* name, const char* help, MetricType type, std::int64_t value) {
    to.push_back(make_family(name, help, type));
    add(to.back(), value);
  };
  is("leasehold_role", "1 while this is the active coordinator of its store, 0 on a standby",
     MetricType::Gauge, role.may_answer() ? 1 : 0);
  is("leasehold_epoch", "Epoch of the store, as far as it is known here; 0: it has none",
     MetricType::Gauge, role.epoch());
  is("leasehold_takeovers_total", "Times this process took the store over from one that was silent",
     MetricType::Counter, role.takeovers());
}

}  // namespace

std::string metrics_page(const sources& from, const log* lines, const net_counters* net,
                         std::int64_t certificate_expires_s, const active_role* role) {
  std::vector<MetricFamily> all{judged(from), answered(from), refused(from), leases(from)};
  all.push_back(latency(from, "leasehold_store_commit_seconds",
                        "From the hand-over of a batch to its durable answer",
                        &counters::commit_time));
  all.push_back(latency(from, "leasehold_expiry_lateness_seconds", "From a deadline to its firing",
                        &counters::expiry_lateness));
  for (const plain_metric& metric : plain_metrics) {
    all.push_back(make_family(metric.name, metric.help, metric.type));
    add(all.back(), sum(from, [&](const counters& c) { return (c.*metric.from).value(); }));
  }
  if (lines != nullptr) {
    all.push_back(make_family("leasehold_log_lines_dropped_total",
                              "Log lines dropped because the writer fell behind",
                              MetricType::Counter));
    add(all.back(), lines->dropped());
  }
  if (net != nullptr) add_net(all, *net);
  if (role != nullptr) add_role(all, *role);
  if (certificate_expires_s != 0) {
    all.push_back(make_family("leasehold_tls_certificate_expiry_seconds",
                              "When the server's certificate ends, in seconds since 1970",
                              MetricType::Gauge));
    add(all.back(), certificate_expires_s);
  }
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace leasehold::server
