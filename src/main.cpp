// leaseholdd: reads its options and serves, or dispatches cancels.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "src/dispatcher_program.hpp"
#include "src/options.hpp"
#include "src/server.hpp"

extern char** environ;

namespace {

leasehold::server::environment read_environment() {
  leasehold::server::environment out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace

int main(int count, char** values) {
  std::vector<std::string> arguments(values + 1, values + count);
  if (!arguments.empty() && arguments.front() == "dispatcher") {
    arguments.erase(arguments.begin());
    return leasehold::server::run_dispatcher(std::move(arguments), read_environment());
  }
  auto loaded = leasehold::server::load_options(std::move(arguments), read_environment());
  if (const auto* end = std::get_if<leasehold::server::say_and_exit>(&loaded)) {
    (end->exit_code == 0 ? std::cout : std::cerr) << end->text << std::flush;
    constexpr int exit_not_written = 6;
    return std::cout ? end->exit_code : exit_not_written;
  }
  return leasehold::server::run_server(std::move(std::get<leasehold::server::invocation>(loaded)));
}
