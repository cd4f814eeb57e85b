// SQLSTATEs as store errors: the one table.
#include <array>

#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

namespace {

using kind = actors::store_error::kind;

struct meaning {
  std::string_view state;  ///< five characters, or the two of a class
  kind what;
  bool may_pass;
};

/// The first that fits; a class stands behind its members.
constexpr std::array meanings{
    meaning{"40001", kind::busy, true},      // serialization_failure
    meaning{"40P01", kind::busy, true},      // deadlock_detected
    meaning{"55P03", kind::busy, true},      // lock_not_available
    meaning{"57014", kind::busy, true},      // query_canceled: a statement took too long
    meaning{"40", kind::busy, true},         // transaction_rollback
    meaning{"25006", kind::io, false},       // read_only_sql_transaction
    meaning{"25P03", kind::busy, true},      // idle_in_transaction_session_timeout
    meaning{"25P04", kind::busy, true},      // transaction_timeout
    meaning{"53300", kind::busy, false},     // too_many_connections
    meaning{"53100", kind::full, false},     // disk_full
    meaning{"53", kind::busy, false},        // out of memory and the like
    meaning{"57P01", kind::io, false},       // admin_shutdown
    meaning{"57P02", kind::io, false},       // crash_shutdown
    meaning{"57P03", kind::busy, false},     // cannot_connect_now: it starts up
    meaning{"55", kind::busy, true},         // object_not_in_prerequisite_state
    meaning{"08", kind::io, false},          // connection exceptions
    meaning{"58", kind::io, false},          // system errors
    meaning{"XX001", kind::corrupt, false},  // data_corrupted
    meaning{"XX002", kind::corrupt, false},  // index_corrupted
};

const meaning* find_meaning(std::string_view state) noexcept {
  for (const meaning& each : meanings) {
    if (state.starts_with(each.state)) return &each;
  }
  return nullptr;
}

}  // namespace

kind kind_of_sqlstate(std::string_view state) noexcept {
  const meaning* found = find_meaning(state);
  return found != nullptr ? found->what : kind::io;
}

bool may_pass(std::string_view state) noexcept {
  const meaning* found = find_meaning(state);
  return found != nullptr && found->may_pass;
}

std::string_view way_out(std::string_view state) noexcept {
  if (state == "25006") {
    return "the server is not the primary; name the primary, or add "
           "target_session_attrs=read-write to the URL";
  }
  if (state == "53300") return "raise max_connections of the server, or close other connections";
  if (state == "53100") return "make room on the server's disk";
  if (state == "57P03") return "wait until the server has started";
  if (state == "3D000") return "create the database, or name another";
  if (state.starts_with("28")) return "check user, password and pg_hba.conf of the server";
  if (state == "42501") return "grant the right, or connect as the owner of the database";
  if (may_pass(state)) return "it is tried again; if it stays, look for other sessions' locks";
  return {};
}

}  // namespace leasehold::storage
