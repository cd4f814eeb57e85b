// A client's socket of a load: never blocks, keeps what the kernel does not take yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::bench {

class load_socket {
 public:
  /// Connects to a port of this machine; gone() when nobody listens. `receive_buffer` > 0: of the
  /// kernel, in bytes.
  explicit load_socket(std::uint16_t port, int receive_buffer = 0);
  ~load_socket();
  load_socket(load_socket&& other) noexcept;
  load_socket& operator=(load_socket&&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  /// Takes part in nothing any more.
  void close() noexcept { gone_ = true; }

  void put(std::string_view bytes) { out_.append(bytes); }
  /// The buffer that put() appends to.
  std::string& outgoing() noexcept { return out_; }
  /// Writes what the kernel takes.
  void flush();
  [[nodiscard]] bool waits_to_write() const noexcept { return sent_ < out_.size(); }

  /// Reads what is there.
  void fill();
  [[nodiscard]] std::string_view unread() const noexcept {
    return std::string_view(in_).substr(taken_);
  }
  void take(std::size_t bytes) noexcept { taken_ += bytes; }
  /// Nothing is read any more: frees what reading needs.
  void forget() noexcept {
    in_ = {};
    taken_ = 0;
  }

 private:
  int descriptor_;
  bool gone_ = false;
  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  std::size_t taken_ = 0;
};

}  // namespace leasehold::bench
