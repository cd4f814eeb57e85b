// Answers as the bytes that a peer reads, and the refusals that are given before the API sees a
// request.
#pragma once

#include <string>
#include <string_view>

#include "src/transport.hpp"

namespace leasehold::server {

/// Refuses what the API never saw, in the shape of its errors: with a reason of the protocol where
/// it has one for the status.
http_response refusal(int status, std::string_view sentence);

/// The bytes of an answer. `body`: false for an answer to HEAD, which has the same head.
std::string answer_text(const http_response& answer, bool keep_alive, bool body);

}  // namespace leasehold::server
