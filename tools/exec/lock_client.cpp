#include "tools/exec/lock_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "tools/api.hpp"
#include "tools/json_fields.hpp"
#include "tools/lock_text.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr std::size_t largest_answer = std::size_t{256} * 1024;
constexpr std::string_view not_understood = "the answer is not that of a coordinator";

client_options prepared(client_options options) {
  options.answer_timeout = milliseconds(0);
  options.body_limit = largest_answer;
  return options;
}

milliseconds retry_after_of(const http_answer& answer) {
  std::int64_t seconds = 0;
  const auto& text = answer.retry_after;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr std::int64_t longest_s = 3600;
  return milliseconds(1000 * std::clamp<std::int64_t>(seconds, 0, longest_s));
}

lock_refusal refusal_of(const http_answer& answer) {
  boost::system::error_code error;
  const auto body = json::parse(answer.body, error);
  const auto problem = !error && body.is_object() ? body.get_object() : json::object();
  return {answer.status, text_in(problem, "reason"), problem_sentence(answer, problem),
          retry_after_of(answer)};
}

/// Hands the object inside a good answer to `read`; what `read` cannot use is no coordinator's.
template <class Answer, class Read>
lock_answer<Answer> read_with(lock_answer<json::object> answer, Read read) {
  if (auto* refused = std::get_if<lock_refusal>(&answer)) return std::move(*refused);
  if (auto* failed = std::get_if<transport_failure>(&answer)) return std::move(*failed);
  if (auto found = read(std::get<json::object>(answer))) return std::move(*found);
  return transport_failure{std::string(not_understood)};
}

std::optional<lock_grant> grant_in(const json::object& answer) {
  const auto& lock = lock_in(answer);
  lock_grant out{text_in(lock, "lease_id"),
                 text_in(lock, "key"),
                 text_in(lock, "holder"),
                 number_in(lock, "generation"),
                 {number_in(lock, "acquired_at"), number_in(lock, "expires_at")}};
  const bool whole = !out.lease_id.empty() && !out.holder.empty() && out.generation > 0;
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<lock_decision> decision_in(const json::object& answer) {
  const auto& lock = lock_in(answer);
  lock_decision out{text_in(answer, "decision"),
                    text_in(answer, "reason"),
                    {number_in(lock, "renewed_at"), number_in(lock, "expires_at")},
                    number_in(lock, "renew_sequence")};
  return out.decision.empty() ? std::nullopt : std::optional(std::move(out));
}

lock_refusal ended_grant(const json::object& answer, std::string_view state) {
  return {200, text_in(answer, "reason"),
          fmt::format("the grant of this request has ended: it is {}", state), milliseconds(0)};
}

json::object frame_of(const lock_grant& grant) {
  return {{"lease_id", grant.lease_id}, {"holder", grant.holder}, {"generation", grant.generation}};
}

}  // namespace

bool tells_loss(const lock_refusal& refusal) {
  if (refusal.reason == "max_lifetime_reached" || refusal.reason.empty()) return false;
  return refusal.status == 404 || refusal.status == 410 || refusal.status == 412;
}

json::object to_json(const protocol::lock_name& name) {
  json::object out{{"program", name.program},
                   {"target", json::object{{protocol::word(name.kind), name.target}}}};
  if (!name.workflow.empty()) out["workflow"] = name.workflow;
  if (!name.operation_class.empty()) out["operation_class"] = name.operation_class;
  return out;
}

lock_client::lock_client(client_options options) : client_(prepared(std::move(options))) {}

lock_answer<json::object> lock_client::call(const http_call& what, patience longest) {
  auto outcome = client_.call(what, longest);
  if (auto* failed = std::get_if<transport_failure>(&outcome)) return std::move(*failed);
  const auto& answer = std::get<http_answer>(outcome);
  constexpr int pending = 202;
  if (answer.status >= 300 || answer.status == pending) return refusal_of(answer);
  boost::system::error_code error;
  auto body = json::parse(answer.body, error);
  if (error || !body.is_object()) return transport_failure{std::string(not_understood)};
  return std::move(body.get_object());
}

lock_answer<json::object> lock_client::post(const char* target, const json::object& body,
                                            patience longest) {
  http_call what;
  what.method = "POST";
  what.target = target;
  what.body = json::serialize(body);
  what.may_repeat = true;  // each has a request_id, or a sequence
  return call(what, longest);
}

lock_answer<lock_grant> lock_client::acquire(const acquire_request& request, milliseconds wait,
                                             patience longer) {
  auto body = to_json(request.name);
  body["instance"] = request.instance;
  body["request_id"] = request.request_id;
  body["ttl_ms"] = request.term.count();
  if (request.max_lifetime.count() > 0) body["max_lifetime_ms"] = request.max_lifetime.count();
  if (wait.count() > 0) body["wait_ms"] = wait.count();
  auto answer = post("/v1/locks:acquire", body, wait + longer);
  if (const auto* told = std::get_if<json::object>(&answer)) {
    // A repeated request is told its grant also when that has ended since.
    const auto state = text_in(lock_in(*told), "state");
    if (!state.empty() && state != "active") return ended_grant(*told, state);
  }
  return read_with<lock_grant>(std::move(answer), grant_in);
}

lock_answer<lock_decision> lock_client::renew(const lock_grant& grant, std::int64_t sequence,
                                              patience longest) {
  auto body = frame_of(grant);
  body["sequence"] = sequence;
  return read_with<lock_decision>(post("/v1/locks:renew", body, longest), decision_in);
}

lock_answer<lock_decision> lock_client::release(const lock_grant& grant,
                                                const std::string& request_id, patience longest) {
  auto body = frame_of(grant);
  body["request_id"] = request_id;
  return read_with<lock_decision>(post("/v1/locks:release", body, longest), decision_in);
}

lock_answer<lock_sight> lock_client::wait_for_change(const lock_grant& grant, milliseconds wait,
                                                     patience longer) {
  query target("/v1/locks/" + url_encoded(grant.lease_id));
  target.add("wait_for", "change")
      .add("wait_ms", std::to_string(wait.count()))
      .add("generation", std::to_string(grant.generation));
  http_call what;
  what.target = target.target();
  return read_with<lock_sight>(
      call(what, wait + longer), [&](const json::object& answer) -> std::optional<lock_sight> {
        const auto& lock = lock_in(answer);
        auto state = text_in(lock, "state");
        if (state.empty()) return std::nullopt;
        const bool is_held = state == "active" && number_in(lock, "generation") == grant.generation;
        return lock_sight{is_held, std::move(state)};
      });
}

}  // namespace leasehold::tools
