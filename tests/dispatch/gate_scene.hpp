// The tables of cancellation dispatch in a store of each kind, with a coordinator that has the
// store open, and dispatchers that are processes of their own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dispatch_names.hpp"
#include "e2e/program_run.hpp"
#include "leasehold/actors/store.hpp"
#include "src/system_clock.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {

class gate_scene : public testing::TestWithParam<const char*> {
 protected:
  gate_scene();
  ~gate_scene() override;

  /// What the coordinator writes, durable when it returns.
  void write(std::vector<protocol::dispatch_change> changes);
  /// A cancel of a live attempt whose deadline is so far away; with a handle: of its process.
  void open(const protocol::lease_key& key, std::int64_t deadline_in_ms = 600'000);
  void open_many(int count);
  void enrol(const protocol::lease_key& key, const protocol::process_handle& handle);
  /// A dispatch in the process stage that is due: the stream has nobody any more.
  void open_process(const protocol::lease_key& key, const protocol::process_handle& handle);
  void close(const protocol::lease_key& key);

  [[nodiscard]] protocol::dispatch_record at(const protocol::lease_key& key) const;
  [[nodiscard]] std::vector<protocol::dispatch_event> events(const protocol::lease_key& key) const;
  [[nodiscard]] protocol::instant now() const { return clock_->now(); }

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return kept_.path() / name;
  }
  /// The dispatcher as it is installed, with a short claim unless `more` says otherwise.
  [[nodiscard]] std::unique_ptr<e2e::program_run> dispatcher(
      const std::string& output, const std::vector<std::string>& more = {},
      const std::vector<std::string>& variables = {}) const;
  /// One cycle of it; its exit code.
  int dispatch_once(const std::string& output, const std::vector<std::string>& more = {}) const;

  temporary_directory kept_;
  std::string url_;
  std::shared_ptr<server::system_clock> clock_;
  std::unique_ptr<actors::store> store_;
  std::unique_ptr<actors::dispatch_store> tables_;
};

}  // namespace leasehold::tests
