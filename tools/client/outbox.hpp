// Frames about leases that the coordinator has not finally answered: kept, sent again, bounded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "leasehold/client/notice.hpp"
#include "leasehold/protocol/frame.hpp"

namespace leasehold::client {

/// Spreads points in time, so that many workers do not come at once.
class jitter {
 public:
  explicit jitter(std::uint64_t seed) : random_(seed) {}
  /// `middle` give or take a tenth.
  protocol::duration around(protocol::duration middle);
  /// `least`, or up to a tenth more.
  protocol::duration after(protocol::duration least);

 private:
  std::mt19937_64 random_;
};

/// What a session gives to the frames it sends.
struct sending_session {
  std::int64_t epoch = 0;
  std::int64_t last_frame_id = 0;
  std::int64_t server_minus_local_ms = 0;  ///< coordinator time less local time
};

/// How long to wait for an answer before a frame is sent again: at first, and at most.
struct patience {
  protocol::duration first{500};
  protocol::duration most{5000};
};

class outbox {
 public:
  /// A frame that was answered for good, or that the answer says to keep.
  struct answered {
    grant about;
    protocol::lease_frame content;
    local_time first_sent;
    local_time sent;  ///< the sending that was answered
    bool kept = false;
  };

  outbox(std::size_t most_in_flight, jitter& spread)
      : bound_(most_in_flight), spread_(spread), most_in_flight_(most_in_flight) {}

  /// Keeps a frame to be sent now; its kind and grant must not be kept already. `not_before`: the
  /// least that its sent_at may be.
  void add(local_time now, const grant& about, protocol::lease_frame content, patience wait,
           protocol::instant not_before);
  [[nodiscard]] bool has(const grant& about, protocol::event_kind kind) const;
  [[nodiscard]] const protocol::lease_frame* find(const grant& about,
                                                  protocol::event_kind kind) const;
  void drop(const grant& about, protocol::event_kind kind);
  void clear();

  /// Nothing when the verdict answers none of the frames kept. A frame that is deferred, or to be
  /// sent again, stays.
  std::optional<answered> judge(local_time now, const protocol::frame_verdict& verdict);

  /// A new session: everything that waits for an answer is sent again at once, but a deferred frame
  /// in its own time. `allowed`: frames in flight that the coordinator takes; 0: it did not say.
  void reopen(local_time now, std::size_t allowed);
  /// Sends what is due, oldest kinds of need first, up to the bound in flight. Yields the highest
  /// sent_at given to each grant through `stamped`.
  template <class Stamped>
  void flush(local_time now, sending_session& session, std::vector<protocol::worker_frame>& out,
             Stamped stamped);

  [[nodiscard]] std::optional<local_time> next_due() const;
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

 private:
  struct sending {
    std::int64_t epoch = 0;
    std::int64_t frame_id = 0;
    local_time at;
  };
  /// Needs first: what keeps or begins authority, then what ends it, then what only tells.
  using key = std::pair<int, grant>;
  struct kept_frame {
    protocol::lease_frame content;
    patience wait;
    local_time due;
    protocol::instant not_before;
    local_time first_sent;
    std::vector<sending> sendings;  ///< the newest few
    bool in_flight = false;
    bool deferred = false;
  };
  static key key_of(const grant& about, protocol::event_kind kind);
  protocol::worker_frame send(local_time now, const key& which, kept_frame& frame,
                              sending_session& session);
  void forget(std::map<key, kept_frame>::iterator at);

  std::size_t bound_;
  jitter& spread_;
  std::map<key, kept_frame> frames_;
  std::map<std::pair<std::int64_t, std::int64_t>, key> by_frame_id_;
  std::size_t in_flight_ = 0;
  std::size_t most_in_flight_;  ///< the lower of ours and the coordinator's
};

template <class Stamped>
void outbox::flush(local_time now, sending_session& session,
                   std::vector<protocol::worker_frame>& out, Stamped stamped) {
  for (auto& [which, frame] : frames_) {
    if (frame.due > now) continue;
    if (!frame.in_flight && in_flight_ >= most_in_flight_) continue;
    out.push_back(send(now, which, frame, session));
    stamped(which.second, frame.content.what.sent_at);
  }
}

}  // namespace leasehold::client
