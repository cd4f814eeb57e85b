// Faults that tests seed in the rules, and M4 in the store, one at a time, to prove that their
// checks notice them: M2, M4, M5, M6, M8, M13, M14 and M15 of the catalogue of mutations. A build
// names one by defining LEASEHOLD_MUTATION for the sources that it recompiles; every other build
// has none.
#pragma once

#ifndef LEASEHOLD_MUTATION
#define LEASEHOLD_MUTATION 0
#endif

namespace leasehold::protocol {

/// Evaluated while compiling, so that a build without mutations holds no trace of them and objects
/// with and without one can be linked together.
consteval bool mutated(int number) { return LEASEHOLD_MUTATION == number; }

}  // namespace leasehold::protocol
