// A store in front of another that hears when a commit or a checkpoint was refused because another
// coordinator has taken the store over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "leasehold/actors/forwarding_store.hpp"

namespace leasehold::server {

class watched_store final : public actors::forwarding_store {
 public:
  using on_deposed = std::function<void(const std::string& sentence)>;

  /// `tell` is called on threads of the store.
  watched_store(std::unique_ptr<actors::store> behind, on_deposed tell)
      : forwarding_store(std::move(behind)),
        tell_(std::make_shared<const on_deposed>(std::move(tell))) {}

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    forwarding_store::commit(std::move(what), watched(std::move(done)));
  }
  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    forwarding_store::checkpoint(std::move(slice), watched(std::move(done)));
  }
  void cut(protocol::row_number upto,
           std::function<void(actors::store_result<protocol::row_number>)> done) override {
    forwarding_store::cut(upto, watched(std::move(done)));
  }

 private:
  template <class T>
  using on_done = std::function<void(actors::store_result<T>)>;

  /// The role has ended before anybody hears of the refusal.
  template <class T>
  on_done<T> watched(on_done<T> done) {
    return [tell = tell_, done = std::move(done)](actors::store_result<T> result) {
      const auto* fault = std::get_if<actors::store_error>(&result);
      if (fault != nullptr && fault->what == actors::store_error::kind::deposed) {
        (*tell)(fault->sentence);
      }
      done(std::move(result));
    };
  }

  std::shared_ptr<const on_deposed> tell_;
};

}  // namespace leasehold::server
