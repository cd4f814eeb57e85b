#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/actors/dispatch.hpp"

namespace leasehold::actors {

namespace {

using protocol::dispatch_result;
using protocol::reason;

constexpr std::size_t most_pages = 64;
constexpr std::size_t longest_cursor_bytes = 512;
constexpr std::size_t longest_owner_bytes = 128;
constexpr std::size_t token_digits = 32;

store_error broken(std::string sentence) {
  return {store_error::kind::corrupt, std::move(sentence)};
}

bool is_token(const std::string& text) {
  return text.size() == token_digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// Whether the store says that this very claim was made.
bool is_claim_of(const dispatch_claimed& got, const protocol::dispatch_claim& asked) {
  const auto& r = got.record;
  return got.why == reason::none && r.status == protocol::dispatch_status::leased &&
         r.key == asked.key && r.gen == asked.gen && r.stage == asked.stage &&
         r.lease_owner == asked.owner && r.lease_token == asked.token;
}

/// Why a page cannot be trusted; nothing when it can.
std::optional<store_error> find_fault(const dispatch_page& page, std::size_t limit,
                                      const std::set<std::string>& seen) {
  if (page.records.size() > limit) {
    return broken("A page of dispatches holds " + std::to_string(page.records.size()) +
                  " records where " + std::to_string(limit) +
                  " were asked for; nobody was called.");
  }
  if (!page.next) return std::nullopt;
  if (page.next->after.empty() || page.next->after.size() > longest_cursor_bytes) {
    return broken(
        "A page of dispatches has another behind it and no cursor to it; nobody was called.");
  }
  if (seen.contains(page.next->after)) {
    return broken("The cursor behind a page of dispatches does not move; nobody was called.");
  }
  return std::nullopt;
}

/// Tells once what a controller answered, or, when it was destroyed unasked, that it did not.
class answer_once {
 public:
  using told = std::function<void(std::optional<dispatch_result>)>;
  explicit answer_once(told then) : then_(std::move(then)) {}
  ~answer_once() { tell(std::nullopt); }
  answer_once(const answer_once&) = delete;
  answer_once& operator=(const answer_once&) = delete;
  void tell(std::optional<dispatch_result> what) {
    if (!is_told_.test_and_set()) then_(what);
  }

 private:
  told then_;
  std::atomic_flag is_told_;
};

}  // namespace

struct dispatch_supervisor::parts : std::enable_shared_from_this<parts> {
  /// One claim that a controller acts on.
  struct turn {
    enum class state : std::uint8_t { acting, answered, over };
    state at = state::acting;
    protocol::dispatch_record record;
    dispatch_result said = dispatch_result::none;
  };

  explicit parts(dispatch_supervisor_options options) : how(std::move(options)) {
    how.page = std::clamp<std::size_t>(how.page, 1, most_dispatches);
    how.cycle_pages = std::clamp<std::size_t>(how.cycle_pages, 1, most_pages);
    if (how.owner.size() > longest_owner_bytes) how.owner.resize(longest_owner_bytes);
  }

  /// What the store calls from a thread of its own: goes on on the strand.
  template <class T>
  dispatch_store::then<T> then(void (parts::*next)(T)) {
    return [self = shared_from_this(), next](store_result<T> got) {
      self->how.strand([self, next, got = std::move(got)]() mutable {
        if (auto* failed = std::get_if<store_error>(&got)) return self->fail(std::move(*failed));
        ((*self).*next)(std::move(std::get<T>(got)));
      });
    };
  }

  void begin(std::function<void(dispatch_cycle)> done) {
    if (running) return;  // not to be called; the cycle that runs is not disturbed
    running = true;
    ends_early = false;
    then_done = std::move(done);
    cycle = {};
    pages = 0;
    seen_cursors.clear();
    may_wrap = !place.after.empty();
    how.strand([self = shared_from_this()] { self->next_page(); });
  }

  void next_page() {
    if (is_gone || ends_early || pages == how.cycle_pages) {
      cycle.more = !place.after.empty();
      return end();
    }
    ++pages;
    if (!place.after.empty()) seen_cursors.insert(place.after);
    dispatch_query query;
    query.stage = how.stage;
    if (how.stage == protocol::dispatch_stage::process) query.host = how.host;
    query.claimable = true;
    query.from = place;
    query.limit = how.page;
    how.store->page(std::move(query), then(&parts::take_page));
  }

  void take_page(dispatch_page page) {
    if (auto fault = find_fault(page, how.page, seen_cursors)) return fail(std::move(*fault));
    cycle.seen += static_cast<std::int64_t>(page.records.size());
    is_last_page = !page.next;
    place = page.next.value_or(dispatch_cursor{});
    asked.clear();
    for (const auto& record : page.records) {
      protocol::dispatch_claim claim{record.key,      record.gen, record.cancel_requested_at,
                                     how.stage,       {},         how.owner,
                                     how.make_token()};
      if (how.stage == protocol::dispatch_stage::process) claim.host = how.host;
      if (!is_token(claim.token)) {
        return fail({store_error::kind::io, "No unpredictable token could be made for a claim."});
      }
      asked.push_back(std::move(claim));
    }
    if (asked.empty()) return end_page();
    how.store->claim(asked, how.pace, then(&parts::take_claims));
  }

  void take_claims(std::vector<dispatch_claimed> claims) {
    if (claims.size() != asked.size()) {
      return fail(broken("The store answered " + std::to_string(claims.size()) + " claims where " +
                         std::to_string(asked.size()) + " were asked for; nobody was called."));
    }
    turns.clear();
    ++wave;
    std::vector<dispatch_claimed> ours;
    const auto now = how.store->now();
    if (const auto* failed = std::get_if<store_error>(&now)) return fail(*failed);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (!is_claim_of(claims[i], asked[i])) continue;
      ++cycle.claimed;
      // One that was over before anybody could act is left to whoever claims it next.
      if (std::get<protocol::instant>(now) >= claims[i].record.lease_expires_at) continue;
      turns.push_back({turn::state::acting, claims[i].record});
      ours.push_back(std::move(claims[i]));
    }
    for (std::size_t i = 0; i < ours.size(); ++i) act(ours[i], i);
    go_on();
  }

  void act(const dispatch_claimed& claim, std::size_t index) {
    const auto told = std::make_shared<answer_once>(
        [self = shared_from_this(), index, of = wave](std::optional<dispatch_result> said) {
          self->how.strand([self, index, of, said] { self->take_answer(index, of, said); });
        });
    const auto found = how.controllers.find(how.stage);
    if (found == how.controllers.end() || !found->second) {
      return told->tell(dispatch_result::controller_missing);
    }
    try {
      found->second->act(claim, [told](dispatch_result said) { told->tell(said); });
    } catch (const std::exception&) {
      told->tell(dispatch_result::dispatch_error);
    }
  }

  void take_answer(std::size_t index, std::int64_t of, std::optional<dispatch_result> said) {
    if (!running || of != wave || turns[index].at != turn::state::acting) return;
    turns[index].at = said ? turn::state::answered : turn::state::over;
    turns[index].said = said.value_or(dispatch_result::none);
    go_on();
  }

  [[nodiscard]] bool has(turn::state what) const {
    return std::ranges::any_of(turns, [what](const turn& each) { return each.at == what; });
  }

  /// Reports once everybody has answered, and before that when it is to be early.
  void go_on() {
    if (reports_under_way) return;
    const bool waits = has(turn::state::acting);
    if (has(turn::state::answered) && (!waits || ends_early || is_hasty)) return report();
    if (!waits) end_page();
  }

  void report() {
    is_hasty = false;
    std::vector<protocol::dispatch_report> said;
    for (auto& each : turns) {
      if (each.at != turn::state::answered) continue;
      each.at = turn::state::over;
      const auto& r = each.record;
      said.push_back({r.key, r.gen, r.lease_owner, r.lease_token, r.version, each.said});
      ++cycle.results[each.said];
    }
    reports_under_way = true;
    how.store->report(std::move(said), how.pace, then(&parts::take_reports));
  }

  void take_reports(std::vector<dispatch_reported> reports) {
    reports_under_way = false;
    cycle.reported += std::ranges::count(reports, reason::none, &dispatch_reported::why);
    go_on();
  }

  void end_page() {
    turns.clear();
    if (!is_last_page) return next_page();
    // A cycle that began in the middle goes on with those before it, once.
    if (!std::exchange(may_wrap, false)) return end();
    seen_cursors.clear();
    next_page();
  }

  void look_after() {
    if (!running || turns.empty()) return;
    const auto now = how.store->now();
    if (const auto* at = std::get_if<protocol::instant>(&now)) {
      for (auto& each : turns) {
        const bool is_over = each.record.lease_expires_at <= *at;
        if (is_over && each.at == turn::state::acting) each.at = turn::state::over;
      }
    }
    is_hasty = has(turn::state::answered);
    go_on();
  }

  void fail(store_error why) {
    if (!running) return;
    // Wherever it broke, the next cycle begins at the first.
    place = {};
    cycle.error = std::move(why);
    end();
  }

  void end() {
    running = false;
    reports_under_way = false;
    is_hasty = false;
    turns.clear();
    ++wave;
    const auto done = std::exchange(then_done, nullptr);
    if (done) done(std::exchange(cycle, {}));
  }

  dispatch_supervisor_options how;
  std::atomic<bool> is_gone = false;

  // Of the strand alone.
  dispatch_cursor place;  ///< where the next page begins, kept between cycles
  bool running = false;
  bool ends_early = false;
  bool is_hasty = false;  ///< what is answered is reported although others still act
  bool reports_under_way = false;
  bool is_last_page = false;
  bool may_wrap = false;
  std::size_t pages = 0;
  std::set<std::string> seen_cursors;
  std::vector<protocol::dispatch_claim> asked;
  std::vector<turn> turns;
  std::int64_t wave = 0;  ///< tells late answers from those of the page at hand
  dispatch_cycle cycle;
  std::function<void(dispatch_cycle)> then_done;
};

dispatch_supervisor::dispatch_supervisor(dispatch_supervisor_options options)
    : parts_(std::make_shared<parts>(std::move(options))) {}

dispatch_supervisor::~dispatch_supervisor() { parts_->is_gone = true; }

void dispatch_supervisor::run_cycle(std::function<void(dispatch_cycle)> done) {
  parts_->begin(std::move(done));
}

void dispatch_supervisor::look_after() { parts_->look_after(); }

void dispatch_supervisor::end_early() {
  parts_->ends_early = true;
  if (parts_->running && !parts_->turns.empty()) parts_->go_on();
}

}  // namespace leasehold::actors
