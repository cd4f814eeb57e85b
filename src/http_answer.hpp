// Answers as the bytes that a peer reads, and the refusals that are given before the API sees a
// request.
#pragma once

#include <string>
#include <string_view>

#include "src/request_ids.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// Refuses what the API never saw, in the shape of its errors: with a reason of the protocol where
/// it has one for the status, and the ids where so much of the request was read.
http_response refusal(int status, std::string_view sentence, request_ids ids = {});

/// The bytes of an answer. `body`: false for an answer to HEAD, which has the same head.
std::string answer_text(const http_response& answer, bool keep_alive, bool body);

}  // namespace leasehold::server
