#include "operations.hpp"

#include <gtest/gtest.h>

#include "dispatch_operations.hpp"
#include "src/store/sqlite_backup.hpp"

namespace leasehold::tests {

namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

constexpr std::int64_t hour = 3'600'000;

ending ended(reason said, reason wanted) {
  if (said == reason::store_unavailable) return ending::refused;
  EXPECT_EQ(said, wanted) << word(said);
  return ending::done;
}

ending happened(bool so) { return so ? ending::done : ending::refused; }

template <class T>
ending read(const actors::store_result<T>& said) {
  return happened(std::holds_alternative<T>(said));
}

lease_state state_of(scene& s, const std::string& id) {
  const auto found = job(*s.rig, id);
  return found ? found->state->state : lease_state::none;
}

operation asks(std::string name, event_kind kind, reason wanted) {
  return {std::move(name),
          {},
          [](scene& s) { s.hold("j"); },
          [kind, wanted](scene& s) {
            protocol::event what;
            what.kind = kind;
            return ended(operate(*s.rig, "j", what).reason, wanted);
          }};
}

operation says(std::string name, event_kind kind, std::int64_t seq, reason wanted) {
  return {std::move(name),
          {},
          [](scene& s) {
            s.hold("j");
            s.worker().credit(0);
          },
          [kind, seq, wanted](scene& s) {
            auto f = s.worker().frame(kind, "j", 1, seq);
            if (kind == event_kind::progress) f.what.value = "half";
            if (kind == event_kind::result) f.what.ending = protocol::outcome::success;
            return ended(s.worker().tell(std::move(f)).reason, wanted);
          }};
}

operation submits() {
  return {"submit",
          {},
          [](scene&) {},
          [](scene& s) { return ended(submit(*s.rig, "new").reason, reason::submitted); }};
}

operation redrives() {
  return {"redrive",
          {},
          [](scene& s) {
            s.hold("j");
            s.worker().result("j", 1);
            s.worker().credit(0);
          },
          [](scene& s) {
            actors::job_spec again;
            again.redrive_of = protocol::job_id{"j"};
            return ended(submit(*s.rig, "again", again).reason, reason::submitted);
          }};
}

/// Nobody asks for these: they come when their time has come, and again when that failed.
operation offers() {
  return {"offer",
          {},
          [](scene& s) {
            s.worker().credit(1);
            actors::job_spec later;
            later.not_before = s.rig->clock->now() + protocol::duration{500};
            submit(*s.rig, "j", later);
          },
          [](scene& s) {
            s.rig->advance(1'000);
            return happened(state_of(s, "j") == lease_state::offered);
          }};
}

operation acks() {
  return {"ack",
          {},
          [](scene& s) {
            s.worker().credit(1);
            submit(*s.rig, "j");
          },
          [](scene& s) { return ended(s.worker().ack("j", 1).reason, reason::ack_accepted); }};
}

operation expires() {
  return {"expiry",
          {},
          [](scene& s) {
            s.hold("j");
            s.worker().credit(0);
            s.rig->advance(29'500);
          },
          [](scene& s) {
            s.rig->advance(1'000);
            return happened(state_of(s, "j") == lease_state::expired);
          }};
}

/// Two holders of one generation: the stored grant is read first.
operation conflicts() {
  return {"conflict",
          {},
          [](scene& s) {
            s.hold("j");
            s.worker("b");
          },
          [](scene& s) {
            auto& stranger = s.worker("b");
            return ended(stranger.renew("j", 1, 1).reason, reason::ownership_conflict);
          }};
}

operation checkpoints() {
  return {"checkpoint",
          {},
          [](scene& s) {
            s.hold("j");
            submit(*s.rig, "other");
          },
          [](scene& s) {
            s.rig->checkpoint();
            return happened(s.rig->counters->checkpoint_row.value() ==
                            s.rig->counters->last_row.value());
          }};
}

operation cuts() {
  operation what{"base rows and cut",
                 {},
                 [](scene& s) {
                   s.hold("j");
                   submit(*s.rig, "other");
                   s.rig->checkpoint();
                   s.rig->advance(20'000);
                   s.worker().renew("j", 1, 1);
                 },
                 [](scene& s) {
                   s.rig->cut_log();
                   return happened(s.rig->counters->first_row.value() > 1);
                 }};
  what.options.actors.retention = {10'000};
  what.options.actors.retention_check = {hour};
  what.in_parts = true;
  return what;
}

operation forgets() {
  operation what{"forget",
                 {},
                 [](scene& s) {
                   s.hold("j");
                   s.worker().result("j", 1);
                   s.rig->checkpoint();
                   s.rig->advance(hour - 500);
                 },
                 [](scene& s) {
                   s.rig->advance(2'000);
                   return happened(state_of(s, "j") == lease_state::none);
                 }};
  what.options.actors.forget_after = {hour};
  what.options.actors.retention_check = {1'000};
  return what;
}

/// Each kind of read that the API makes; a commit before it has emptied the readers' pages.
operation reads_evidence() {
  return {"evidence",
          {},
          [](scene& s) { s.hold("j"); },
          [](scene& s) {
            const auto newest = job(*s.rig, "j")->row;
            for (const auto said :
                 {read(s.store().rows_of_lease({protocol::tenant_id{"t"}, protocol::lease_id{"j"}},
                                               newest, 10)),
                  read(s.store().rows_from({1}, 10)), read(s.store().batches_from({1}, 10)),
                  read(s.store().find_policy(protocol::id_of(protocol::policy{}))),
                  read(s.store().head())}) {
              if (said == ending::refused) return said;
            }
            return ending::done;
          },
          true};
}

operation backs_up() {
  return {"backup",
          {},
          [](scene& s) { s.hold("j"); },
          [](scene& s) {
            const auto to = s.backup();
            std::filesystem::remove_all(to);
            const auto said = storage::backup_store({.from = s.directory(), .to = to});
            if (std::holds_alternative<actors::store_error>(said)) {
              EXPECT_TRUE(!std::filesystem::exists(to) || std::filesystem::is_empty(to))
                  << std::get<actors::store_error>(said).sentence;
              return ending::refused;
            }
            return ending::done;
          },
          true,
          false,
          true};
}

/// Every commit is followed by the copying of the write-ahead log into the database.
operation copies_its_log() {
  operation what{"copying the write-ahead log",
                 {},
                 [](scene& s) { submit(*s.rig, "first"); },
                 [](scene& s) {
                   for (const char* id : {"a", "b", "c"}) {
                     if (state_of(s, id) != lease_state::none) continue;
                     const auto said = submit(*s.rig, id).reason;
                     if (said == reason::store_unavailable) return ending::refused;
                   }
                   return ending::done;
                 }};
  what.options.wal_bytes = 0;
  what.in_parts = true;
  what.of_directories = true;
  return what;
}

}  // namespace

const std::vector<operation>& all_operations() {
  static const std::vector<operation> all{
      submits(),
      redrives(),
      offers(),
      acks(),
      says("release", event_kind::release, 0, reason::released),
      says("renew", event_kind::renew, 1, reason::renewed),
      says("progress", event_kind::progress, 1, reason::progress_recorded),
      says("result", event_kind::result, 0, reason::completed),
      asks("cancel", event_kind::cancel, reason::cancel_requested),
      claims_a_dispatch(),
      reports_a_dispatch(),
      asks("revoke", event_kind::revoke, reason::revoked),
      expires(),
      conflicts(),
      checkpoints(),
      cuts(),
      forgets(),
      reads_evidence(),
      backs_up(),
      copies_its_log(),
  };
  return all;
}

}  // namespace leasehold::tests
