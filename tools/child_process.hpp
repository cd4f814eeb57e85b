// One child in a process group of its own: started, fed, read and ended as a whole.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tools {

/// A descriptor that is closed with its owner.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(descriptor&& from) noexcept;
  descriptor& operator=(descriptor&& from) noexcept;
  ~descriptor() { close(); }
  void close() noexcept;
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct child_command {
  std::string program;                   ///< absolute path
  std::vector<std::string> arguments;    ///< the first is the program's name
  std::vector<std::string> environment;  ///< KEY=VALUE, all of it
};

/// The absolute path that a shell would run for `name`; empty when there is none.
std::string find_program(const std::string& name);

/// What exec takes: the texts, which must outlive it, and a null behind them.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

/// A child whose standard input, output and descriptor 3 are pipes of ours. It dies with the thread
/// that started it; its descriptors above 3 are closed.
class child_process {
 public:
  /// Makes this process the one that orphans of its children are given to, so that collect() can
  /// wait for a whole group on machines whose first process does not.
  static void adopt_orphans() noexcept;
  /// Empty with errno set when it cannot be started.
  static std::unique_ptr<child_process> start(const child_command& command);
  /// Ends the group with KILL if it still lives, and waits for its leader.
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  descriptor input;     ///< writes to its standard input; close it to say that this was all
  descriptor output;    ///< reads its standard output
  descriptor messages;  ///< reads its descriptor 3
  /// Readable once the leader has exited; may be empty on old kernels.
  descriptor exit;

  /// Of the child, which leads its group.
  [[nodiscard]] pid_t number() const noexcept { return leader_; }
  /// To every process of the group.
  void signal(int number) const noexcept;
  /// True once the leader has exited; the group keeps its number until collect().
  [[nodiscard]] bool leader_exited() const noexcept;
  /// Ends what is left of the group and waits until it is gone. Yields the leader's wait status.
  int collect() noexcept;

 private:
  explicit child_process(pid_t leader) : leader_(leader) {}
  pid_t leader_;
  bool collected_ = false;
};

}  // namespace leasehold::tools
