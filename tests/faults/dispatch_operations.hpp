// What a dispatcher asks of the tables of cancellation dispatch, as operations of the table.
#pragma once

#include "operations.hpp"

namespace leasehold::tests {

/// Confirmed, it is in the table once; not confirmed, it may have been made and is then over when
/// it expires, and not before.
operation claims_a_dispatch();

/// Confirmed, the record has its result and one event tells of it; not confirmed, it is said once
/// more, and there is one event.
operation reports_a_dispatch();

}  // namespace leasehold::tests
