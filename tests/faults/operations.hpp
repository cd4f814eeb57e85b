// The operations of a coordinator that need its store, as a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scene.hpp"

namespace leasehold::tests {

/// How an operation ended for whoever asked for it.
enum class ending { done, refused };

struct operation {
  std::string name;
  scene_options options;
  /// What must be there first.
  std::function<void(scene&)> before;
  /// Once more after a refusal it must be done.
  std::function<ending(scene&)> act;
  /// It may be refused though the log takes every write: it reads, or writes beside the log.
  bool reads = false;
  /// It asks for several things, of which the first may be done.
  bool in_parts = false;
  /// It is about the files of a store in a directory.
  bool of_directories = false;
  /// What must be true once it is done, by the answers that it got, and nothing fails any more.
  std::function<void(scene&)> after = {};
};

const std::vector<operation>& all_operations();

}  // namespace leasehold::tests
