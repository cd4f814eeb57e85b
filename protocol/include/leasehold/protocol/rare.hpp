// Parts of a record that few leases have, for the memory of one pointer where they are not there.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::protocol {

/// A value like std::optional, kept elsewhere while it is there.
template <class T>
class rare {
 public:
  rare() = default;
  explicit rare(T value) : value_(std::make_unique<T>(std::move(value))) {}
  rare(const rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  rare(rare&&) noexcept = default;
  rare& operator=(const rare& other) {
    if (this != &other) *this = rare(other);
    return *this;
  }
  rare& operator=(rare&&) noexcept = default;
  rare& operator=(T value) { return *this = rare(std::move(value)); }
  ~rare() = default;

  [[nodiscard]] bool has_value() const noexcept { return value_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  // A part of a const record is const, which a pointer alone would not give.
  [[nodiscard]] T& operator*() noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const noexcept { return *value_; }
  [[nodiscard]] T* operator->() noexcept { return value_.get(); }
  [[nodiscard]] const T* operator->() const noexcept { return value_.get(); }
  T& emplace() { return *(value_ = std::make_unique<T>()); }
  void reset() noexcept { value_.reset(); }

  friend bool operator==(const rare& a, const rare& b) {
    return a.value_ && b.value_ ? *a.value_ == *b.value_ : !a.value_ && !b.value_;
  }

 private:
  std::unique_ptr<T> value_;
};

/// A list like std::vector that is empty nearly always.
template <class T>
class rare_list {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  rare_list() = default;
  rare_list(std::initializer_list<T> some) {
    if (some.size() != 0) some_.emplace() = some;
  }

  [[nodiscard]] bool empty() const noexcept { return all().empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all().size(); }
  [[nodiscard]] iterator begin() noexcept { return some_ ? some_->begin() : iterator{}; }
  [[nodiscard]] iterator end() noexcept { return some_ ? some_->end() : iterator{}; }
  [[nodiscard]] const_iterator begin() const noexcept { return all().begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return all().end(); }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return (*some_)[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return (*some_)[at]; }
  [[nodiscard]] const T& front() const noexcept { return some_->front(); }
  [[nodiscard]] T& back() noexcept { return some_->back(); }
  [[nodiscard]] const T& back() const noexcept { return some_->back(); }

  void push_back(T value) { made().push_back(std::move(value)); }
  T& emplace_back() { return made().emplace_back(); }
  iterator erase(iterator at) { return some_->erase(at); }
  void clear() noexcept { some_.reset(); }
  /// All of them, which leave it.
  std::vector<T> take() {
    auto taken = some_ ? std::move(*some_) : std::vector<T>{};
    some_.reset();
    return taken;
  }

  friend bool operator==(const rare_list& a, const rare_list& b) { return a.all() == b.all(); }

 private:
  [[nodiscard]] const std::vector<T>& all() const noexcept {
    static const std::vector<T> none;
    return some_ ? *some_ : none;
  }
  std::vector<T>& made() { return some_ ? *some_ : some_.emplace(); }

  rare<std::vector<T>> some_;
};

}  // namespace leasehold::protocol
