// A call that waits for something to happen: it ends with its credential, and with its client.
#pragma once

#include <atomic>
#include <memory>

#include "src/credential.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

class waiting_call final : public credentialed, public std::enable_shared_from_this<waiting_call> {
 public:
  /// On the loop of the call.
  static std::shared_ptr<waiting_call> begin(const call_ptr& c);
  explicit waiting_call(const call_ptr& c);
  /// On any thread.
  ~waiting_call() override;
  waiting_call(const waiting_call&) = delete;
  waiting_call& operator=(const waiting_call&) = delete;

  /// Refuses the call when its credential holds no more.
  void check_credential() override;
  /// Refuses the call: what it waits for may come after the end.
  void drain() override;
  /// Whether nobody waits for the answer any more; any thread.
  [[nodiscard]] bool is_gone() const noexcept;
  /// What it waited for has come: false when it was refused meanwhile.
  [[nodiscard]] bool end();

 private:
  call_ptr call_;
  credential credential_;
  std::shared_ptr<const std::atomic<bool>> client_gone_;
  std::atomic<bool> over_{false};
};

}  // namespace leasehold::server
