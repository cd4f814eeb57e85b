// The page docs/REASONS.md.
#include "tools/reasons.hpp"

#include <fmt/format.h>

#include <iterator>

#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::tools {

using namespace protocol;

namespace {

constexpr auto introduction = R"(# Reasons

Made by `leasehold reasons --markdown` from `reason.def` and `rules.def`; a test compares this
file with what the program prints. Words and numbers are part of the wire and of the evidence: a
number is never used again.

Every answer has a **decision** and a **reason**. Class and HTTP status below are those of a
*refusal* (decision `rejected`, or an answer of the API or session). Accepted, applied and ignored
answers are class `ok` and status 200 whatever their reason says; deferred ones are class `pending`
and status 202.

| class | what a caller should do |
|---|---|
| ok | Go on. |
| permanent | Do not send this again: the answer will not change. |
| retryable | Send the same again later, after `Retry-After` where there is one. |
| pending | Wait: the final answer follows. |
| unknown_outcome | Ask again with the same `request_id`; the answer will be that of the first. |

| number | reason | class | HTTP | what it means |
|---:|---|---|---:|---|
)";

constexpr auto rules_introduction = R"(
## Rules

Evidence names, next to the reason, the rule that decided: the numbers of the frame ladder in
docs/PROTOCOL.md, and `kind.case` for what is decided by kind.

| number | rule |
|---:|---|
)";

}  // namespace

std::string reasons_page() {
  std::string page = introduction;
  for (const auto& entry : all_reasons()) {
    fmt::format_to(std::back_inserter(page), "| {} | `{}` | {} | {} | {} |\n", entry.number,
                   entry.word, word(entry.refusal_class), entry.http_status, entry.text);
  }
  page += rules_introduction;
  for (const auto rule : all_rules()) {
    fmt::format_to(std::back_inserter(page), "| {} | `{}` |\n", static_cast<int>(rule), word(rule));
  }
  return page;
}

}  // namespace leasehold::tools
