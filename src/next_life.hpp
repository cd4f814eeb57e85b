// A process that has lost its store drops everything at once by becoming a new one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::server {

/// The arguments of the next life: those of this one, without what is meant for one start, and on
/// the port that a listen address with port 0 got.
std::vector<std::string> next_arguments(std::vector<std::string> arguments,
                                        const std::string& listen);

/// Runs this program anew in this process, with the same environment. Every thread ends in
/// between, and every descriptor but the standard ones is closed. Returns only when that is
/// impossible.
void begin_next_life(const std::vector<std::string>& arguments);

}  // namespace leasehold::server
