// What the program prints. Every subcommand writes through here: nothing throws, and output that
// is lost is found out in one place, at the end of the program.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tools/exit_codes.hpp"

namespace leasehold::tools {

/// Writes to standard output. The first failure is remembered; what comes after it is dropped, so
/// that the output is cut and never has a hole.
void write_out(std::string_view text);
/// Writes to standard error. A failure has nowhere to be told and changes nothing.
void write_error(std::string_view text);

template <class... Values>
void print(fmt::format_string<Values...> shape, Values&&... values) {
  write_out(fmt::format(shape, std::forward<Values>(values)...));
}

template <class... Values>
void print_error(fmt::format_string<Values...> shape, Values&&... values) {
  write_error(fmt::format(shape, std::forward<Values>(values)...));
}

/// Hands on to the system what is buffered. False: some of the output was lost, now or before.
bool flush_output();
/// True once a write has failed: whoever prints much asks, and ends early.
bool output_is_lost() noexcept;
/// True when it was lost because its reader has ended, as `head -1` does.
bool reader_has_ended() noexcept;

/// To be called before anything is opened or printed. A reader that ends is then a failed write and
/// no signal, and a standard descriptor that was closed is no file or socket of ours by accident.
void begin_output();
/// To be called at the end: `result`, or broken with a sentence when output was lost. Where its
/// reader has ended, the process ends by SIGPIPE without a word, as is expected in a pipe.
exit_code finish_output(exit_code result);

}  // namespace leasehold::tools
