// The gateway of one thread: turns calls from sessions and the HTTP API into messages, and brings
// the replies back to the thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "leasehold/actors/gateway.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class thread_gateway final : public gateway {
 public:
  /// `next_epoch` yields a number that no session of this store had before; any thread.
  thread_gateway(context_ptr context, actor_system& system, std::function<session_id()> next_epoch,
                 std::function<std::string()> make_id);

  session_id open_session(const principal& who, std::shared_ptr<outbound> sink) override;
  void deliver(session_id session, protocol::decoded_message<protocol::worker_frame> message,
               protocol::instant ingress) override;
  void close_session(session_id session) override;

  void submit(submit_request what, std::function<void(answer)> reply) override;
  void operate(protocol::lease_key key, protocol::event what,
               std::function<void(answer)> reply) override;

  void find_lease(protocol::lease_key key,
                  std::function<void(std::optional<lease_view>)> reply) override;
  void acquire(acquire_request what, std::function<void(answer)> reply) override;
  void await_change(protocol::lease_key key, std::optional<protocol::generation> gen,
                    protocol::instant until,
                    std::function<void(std::optional<lease_view>)> reply) override;
  void list_locks(lock_filter filter, std::string page_token, std::size_t page_size,
                  std::function<void(lock_page)> reply) override;
  void find_fence(protocol::lease_key key, std::function<void(fence_view)> reply) override;
  void await_settled(protocol::lease_key key, protocol::instant until,
                     std::function<void(std::optional<lease_view>)> reply) override;
  void list_jobs(job_filter filter, std::string page_token, std::size_t page_size,
                 std::function<void(job_page)> reply) override;
  void why(protocol::lease_key key, std::function<void(std::optional<why_view>)> reply) override;
  void workers(protocol::tenant_id tenant,
               std::function<void(std::vector<worker_view>)> reply) override;
  void queues(protocol::tenant_id tenant,
              std::function<void(std::vector<queue_view>)> reply) override;

  std::int64_t watch(std::function<void(protocol::row_number)> on_rows) override;
  void unwatch(std::int64_t watch) override;
  [[nodiscard]] protocol::instant now() const override { return context_->clock->now(); }

  // ---- for the coordinator, on this thread
  void pass_fence(std::int64_t fence, const place& back_to);
  void connection_done(session_id session);
  void drain(protocol::instant release_by);
  void change(const options_ptr& options);
  void exit_connections();

 private:
  struct connection {
    actor_handle who;
    bool may_have_frames = false;  ///< since the last fence
    bool open = true;
  };
  using queue_reader = std::function<void(const std::string& name, class queue_actor&)>;

  void ask_shard(const protocol::lease_key& key, std::function<void(class shard_actor&)> ask) const;
  /// Calls `reply` once the record is as `wanted` says, which is made where the lease lives.
  void await(
      protocol::lease_key key, protocol::instant until,
      std::function<std::function<bool(const protocol::record&)>(const class shard_actor&)> wanted,
      std::function<void(std::optional<lease_view>)> reply);
  /// Goes over the leases of all threads by `each`, a page at a time.
  template <class Filter, class Each>
  void search(const Filter& filter, const std::string& page_token, std::size_t page_size, Each each,
              std::function<void(std::vector<lease_view>, std::string)> reply);
  /// Runs `read` in each queue of the tenant, then `done` here.
  void each_queue(const protocol::tenant_id& tenant, queue_reader read, std::function<void()> done);

  context_ptr context_;
  options_ptr options_;
  actor_system& system_;
  std::function<session_id()> next_epoch_;
  std::function<std::string()> make_id_;
  std::unordered_map<session_id, connection> connections_;
  std::vector<session_id> read_since_fence_;
  std::int64_t next_watch_ = 1;
};

}  // namespace leasehold::actors
