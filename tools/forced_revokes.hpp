// Which revokes were made with force. The evidence has no column for it, because what a revoke did
// tells it.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

namespace leasehold::tools {

/// For the rows of one lease, in order.
class forced_revokes {
 public:
  /// True for a row of a revoke that must have been forced. Where force made no difference the
  /// answer is false, which replays to the same decisions.
  bool tell(const boost::json::object& row);

 private:
  struct remembered {
    boost::json::object request;
    bool force = false;
  };
  std::map<std::string, remembered> requests_;
};

}  // namespace leasehold::tools
