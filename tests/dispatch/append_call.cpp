// A controller that only says that it was called: appends one line to a file, so that calls are
// counted outside of whoever makes them.
//
//   append_call FILE WAIT_MS WORD...
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

int main(int count, char** values) {
  if (count < 4) return 2;
  std::string line;
  for (int i = 3; i < count; ++i) line += (i == 3 ? "" : " ") + std::string(values[i]);
  line += '\n';
  const int file = open(values[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  // One write is one line, however many append at once.
  const bool is_told = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  // It works on for so long: with the time of the claim, or beyond it.
  std::this_thread::sleep_for(std::chrono::milliseconds{std::atoi(values[2])});
  return is_told ? 0 : 1;
}
