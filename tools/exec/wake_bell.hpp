// A descriptor by which one thread wakes another that waits in poll().
#pragma once

#include "tools/child_process.hpp"

namespace leasehold::tools {

class wake_bell {
 public:
  wake_bell();
  /// Makes it readable until it is cleared.
  void ring() const noexcept;
  void clear() const noexcept;
  [[nodiscard]] int number() const noexcept { return descriptor_.number(); }

 private:
  descriptor descriptor_;
};

}  // namespace leasehold::tools
