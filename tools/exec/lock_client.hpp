// The calls about one lock, over HTTP. Blocking; a client is not for use from two threads.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "leasehold/protocol/lock_key.hpp"
#include "tools/exec/authority.hpp"
#include "tools/http_client.hpp"

namespace leasehold::tools {

/// What an acquire asks for.
struct acquire_request {
  protocol::lock_name name;  ///< as typed: the coordinator normalises it
  std::string instance;      ///< tells holders of one principal apart
  std::string request_id;    ///< a repeat of it gets the same grant
  std::chrono::milliseconds term{};
  std::chrono::milliseconds max_lifetime{};  ///< 0: none
};

/// A lock as an answer shows it.
struct lock_grant {
  std::string lease_id;
  std::string key;  ///< canonical
  std::string holder;
  std::int64_t generation = 0;  ///< the fencing token
  told_term term;
  friend bool operator==(const lock_grant&, const lock_grant&) = default;
};

/// An answer that is a refusal, or that cannot be read.
struct lock_refusal {
  int status = 0;
  std::string reason;                       ///< a word of docs/REASONS.md; empty: none was given
  std::string sentence;                     ///< for people
  std::chrono::milliseconds retry_after{};  ///< 0: not said
};

/// An accepted renew or release, or one that was taken before.
struct lock_decision {
  std::string decision;
  std::string reason;
  told_term term;
  std::int64_t renew_sequence = 0;
};

/// Whether the generation that was asked about is still the live one.
struct lock_sight {
  bool is_held = false;
  std::string state;
};

template <class Answer>
using lock_answer = std::variant<Answer, lock_refusal, transport_failure>;

/// True for a refusal after which this generation has no authority and never will.
bool tells_loss(const lock_refusal& refusal);

/// A member for each part that the API takes: {"program", "target", ...}.
boost::json::object to_json(const protocol::lock_name& name);

class lock_client {
 public:
  /// The answer timeout of `options` is not used: each call names its own.
  explicit lock_client(client_options options);

  using patience = std::chrono::milliseconds;

  /// Whether another coordinator may answer where one does not.
  [[nodiscard]] bool has_others() const noexcept { return client_.has_others(); }

  /// How long a connection that is opened from now on may take.
  void connect_within(std::chrono::milliseconds longest) noexcept {
    client_.connect_within(longest);
  }

  /// `wait`: how long the coordinator may let it stand in the queue. The answer is waited for so
  /// much longer.
  lock_answer<lock_grant> acquire(const acquire_request& request, std::chrono::milliseconds wait,
                                  patience longer);
  lock_answer<lock_decision> renew(const lock_grant& grant, std::int64_t sequence,
                                   patience longest);
  lock_answer<lock_decision> release(const lock_grant& grant, const std::string& request_id,
                                     patience longest);
  /// Answers when the generation of `grant` is no longer live, or after `wait`.
  lock_answer<lock_sight> wait_for_change(const lock_grant& grant, std::chrono::milliseconds wait,
                                          patience longer);

 private:
  lock_answer<boost::json::object> call(const http_call& what, patience longest);
  lock_answer<boost::json::object> post(const char* target, const boost::json::object& body,
                                        patience longest);

  http_client client_;
};

}  // namespace leasehold::tools
