// Evidence over HTTP: of one job, of a whole tenant for verify and export, and where the log ends.
#include <boost/json.hpp>

#include "src/dispatch_json.hpp"
#include "src/http_api_evidence.hpp"
#include "src/routes.hpp"
#include "src/routes_dispatches.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using actors::store_error;
using protocol::reason;
using protocol::row_number;

constexpr std::string_view json_lines = "application/x-ndjson";
constexpr std::size_t most_rows_of_a_page = 1000;

void refuse(const call_ptr& c, const store_error& fault) {
  c->api->shared.lines->write(log_level::error, "reading evidence failed",
                              {{"what", fault.sentence}});
  c->refuse(
      fault.what == store_error::kind::corrupt ? reason::internal_error : reason::store_unavailable,
      "The evidence cannot be read now.");
}

void answer_file(const call_ptr& c, std::string body, std::string_view type, std::string_view name,
                 row_number next = {}) {
  http_response out;
  out.headers = {{"Content-Type", std::string(type)},
                 {"Content-Disposition", "attachment; filename=\"" + std::string(name) + "\""},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Cache-Control", "no-store"}};
  if (next.value > 0) out.headers.emplace_back("Leasehold-Next-Row", std::to_string(next.value));
  out.body = std::move(body);
  c->reply(std::move(out));
}

bool wants_csv(const http_request& request) {
  return request.header("accept").find("text/csv") != std::string_view::npos;
}

/// Written on the reading thread already: the loop only hands the text on.
using text_or_error = actors::store_result<std::optional<std::string>>;

using events = std::vector<protocol::dispatch_event>;

/// Rows and events of dispatch by time; of one instant the rows come first, for what is dispatched
/// was decided before.
text_or_error write_history(evidence_reader& reader, const protocol::lease_key& key,
                            row_number newest, bool csv, const events& dispatched) {
  auto read = reader.of_lease(key, newest);
  if (auto* fault = std::get_if<store_error>(&read)) return *fault;
  const auto& history = std::get<lease_history>(read);
  if (!history.complete) return std::optional<std::string>{};
  std::string out = csv ? csv_head() : "";
  const auto append = [&out, csv](const auto& line) {
    csv ? append_csv_line(out, line) : append_json_line(out, line);
  };
  auto event = dispatched.begin();
  for (const shown_row& shown : history.rows) {
    for (; event != dispatched.end() && event->at < shown.row.at; ++event) append(*event);
    append(shown);
  }
  for (; event != dispatched.end(); ++event) append(*event);
  return std::optional(std::move(out));
}

struct evidence_page {
  std::string lines;
  row_number next;
};

/// Rows of other tenants fill no page: an empty one means that the log ends here.
actors::store_result<evidence_page> read_page(evidence_reader& reader,
                                              const protocol::tenant_id& tenant, row_number from,
                                              std::size_t limit) {
  auto cursor = reader.take_cursor(tenant, from);
  evidence_page out;
  row_number before;
  do {
    before = cursor->next();
    auto read = cursor->read(most_rows_of_a_page, limit);
    if (auto* fault = std::get_if<store_error>(&read)) return *fault;
    for (const shown_row& shown : std::get<std::vector<shown_row>>(read)) {
      append_json_line(out.lines, shown);
    }
    out.next = cursor->next();
  } while (out.lines.empty() && out.next > before);
  reader.keep_cursor(std::move(cursor));
  return out;
}

void answer_history(const call_ptr& c, const protocol::lease_key& key, row_number newest,
                    events dispatched) {
  const bool csv = wants_csv(c->request);
  with_read<text_or_error>(
      c,
      [reader = c->api->shared.evidence, key, newest, csv, dispatched = std::move(dispatched)] {
        return write_history(*reader, key, newest, csv, dispatched);
      },
      [c, csv](text_or_error read) {
        if (auto* fault = std::get_if<store_error>(&read)) return refuse(c, *fault);
        auto& text = std::get<std::optional<std::string>>(read);
        if (!text) {
          return c->refuse(reason::too_large,
                           "The history has more than 20000 rows; read them from "
                           "GET /v1/evidence.");
        }
        answer_file(c, std::move(*text), csv ? "text/csv; charset=utf-8" : json_lines,
                    csv ? "evidence.csv" : "evidence.jsonl");
      });
}

}  // namespace

void serve_job_evidence(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  with_audited_job(c, [c](const actors::lease_view& job) {
    with_dispatch_events(c, c->key(), [c, newest = job.row](const dispatch_events& found) {
      if (!found.complete) {
        return c->refuse(reason::too_large, "The job has more than 20000 events of dispatch.");
      }
      answer_history(c, c->key(), newest, found.all);
    });
  });
}

void serve_lock_evidence(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  with_audited_lock(c, [c](const protocol::lease_key& key, const actors::lease_view& lock) {
    answer_history(c, key, lock.row, {});
  });
}

void serve_evidence(const call_ptr& c) {
  const row_number from{c->query.number("from", 1, protocol::max_number).value_or(1)};
  const auto limit = c->query.number("limit", 1, most_rows_of_a_page).value_or(most_rows_of_a_page);
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  using page_or_error = actors::store_result<evidence_page>;
  with_read<page_or_error>(
      c,
      [reader = c->api->shared.evidence, tenant = c->who.tenant, from, limit] {
        return read_page(*reader, tenant, from, static_cast<std::size_t>(limit));
      },
      [c](page_or_error read) {
        if (auto* fault = std::get_if<store_error>(&read)) return refuse(c, *fault);
        auto& page = std::get<evidence_page>(read);
        answer_file(c, std::move(page.lines), json_lines, "evidence.jsonl", page.next);
      });
}

void serve_head(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  using head_or_error = actors::store_result<actors::log_head>;
  with_read<head_or_error>(
      c, [store = c->api->shared.store] { return store->head(); },
      [c](head_or_error read) {
        if (auto* fault = std::get_if<store_error>(&read)) return refuse(c, *fault);
        const auto& head = std::get<actors::log_head>(read);
        token_hash chain{};
        for (std::size_t i = 0; i < chain.size(); ++i) {
          chain[i] = std::to_integer<std::uint8_t>(head.chain[i]);
        }
        c->answer(200, json::object{{"row", head.last_row.value}, {"hash", to_hex(chain)}});
      });
}

}  // namespace leasehold::server
