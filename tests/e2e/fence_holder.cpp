// A holder of a lock that trusts its grant for ever, as one does that has been stopped: it acquires
// once, never renews and never looks at a clock, and writes when it is told to.
//
// fence_holder URL TOKEN_FILE INSTANCE TTL_MS TARGET DIRECTORY: acquires opaque:x of the program p
// and says "acquired TOKEN LEASE_ID EXPIRES_AT". For N = 1, 2, ... it waits for the file
// DIRECTORY/INSTANCE.N, writes to TARGET and says "N OUTCOME"; the file holds the text to write, or
// nothing: the token alone is told.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <variant>

#include "support/eventually.hpp"
#include "support/fenced_target.hpp"
#include "tools/exec/lock_client.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::milliseconds;

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

tools::lock_client connected(const std::string& url, const std::string& token_file) {
  tools::client_options options;
  options.where = tools::parse_endpoint(url).value_or(tools::endpoint{});
  options.token = content(token_file);
  return tools::lock_client(std::move(options));
}

/// Waits for the order, two minutes at most: files are put there whole, by renaming.
std::string order(const std::filesystem::path& file) {
  tests::eventually([&] { return std::filesystem::exists(file); }, std::chrono::minutes{2});
  return content(file);
}

int hold(std::span<const std::string> words) {
  auto client = connected(words[0], words[1]);
  tools::acquire_request request;
  request.name = {.program = "p", .kind = protocol::target_kind::opaque, .target = "x"};
  request.instance = words[2];
  request.request_id = "r-" + words[2];
  request.term = milliseconds(std::stoll(words[3]));
  const auto answer = client.acquire(request, std::chrono::seconds{20}, std::chrono::seconds{10});
  const auto* grant = std::get_if<tools::lock_grant>(&answer);
  if (grant == nullptr) {
    const auto* refused = std::get_if<tools::lock_refusal>(&answer);
    std::cout << "refused " << (refused == nullptr ? "" : refused->reason) << std::endl;
    return 1;
  }
  const auto target = tests::open_target(words[4]);
  if (!target) {
    std::cout << "the target cannot be opened" << std::endl;
    return 1;
  }
  std::cout << "acquired " << grant->generation << ' ' << grant->lease_id << ' '
            << grant->term.expires_ms << std::endl;
  for (int step = 1;; ++step) {
    const auto text =
        order(std::filesystem::path(words[5]) / (words[2] + '.' + std::to_string(step)));
    const auto end = text.empty() ? target->raise(grant->lease_id, grant->generation)
                                  : target->write(grant->lease_id, grant->generation, text);
    std::cout << step << ' ' << word(end) << std::endl;
  }
}

}  // namespace
}  // namespace leasehold::e2e

int main(int count, char** words) {
  constexpr int wanted = 7;
  if (count != wanted) {
    std::cout << "usage: fence_holder URL TOKEN_FILE INSTANCE TTL_MS TARGET DIRECTORY" << std::endl;
    return 2;
  }
  return leasehold::e2e::hold(std::vector<std::string>(words + 1, words + count));
}
