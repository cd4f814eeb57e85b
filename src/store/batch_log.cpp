#include "src/store/batch_log.hpp"

#include <openssl/evp.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <memory>

namespace leasehold::storage {

namespace {

using actors::chain_hash;
using actors::stored_batch;

/// Feeds values to one SHA-256 in a fixed layout: integers as 8 bytes little endian, text with its
/// length in front.
class sha256 {
 public:
  sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  sha256& add(std::int64_t value) {
    unsigned char bytes[8];
    const auto bits = static_cast<std::uint64_t>(value);
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(bits >> (8 * i));
    EVP_DigestUpdate(context_.get(), bytes, sizeof bytes);
    return *this;
  }

  sha256& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    EVP_DigestUpdate(context_.get(), text.data(), text.size());
    return *this;
  }

  sha256& add(const chain_hash& hash) {
    EVP_DigestUpdate(context_.get(), hash.data(), hash.size());
    return *this;
  }

  chain_hash finish() {
    chain_hash out{};
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::uint32_t check_of(std::uint32_t before, std::string_view body) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(body.data(), body.size(), before));
}

void put_check(char* at, std::uint32_t check) noexcept {
  for (unsigned i = 0; i < 4; ++i) at[i] = static_cast<char>(check >> (8 * i));
}

/// A piece is closed only between groups, so that "the row before" of a group is in the same piece.
class piece_cutter {
 public:
  explicit piece_cutter(const actors::log_head& head)
      : head_(head), check_(first_check(head.chain)) {}

  bool add(const actors::batch& what) {
    std::int64_t rows = 0;
    for (const std::string& group : what.groups) {
      if (open_.rows.size() >= piece_bytes) close();
      const std::size_t begin = open_.rows.size();
      open_.rows += group;
      const auto sealed = seal_rows(open_.rows, begin, check_);
      if (!sealed) return false;
      rows += *sealed;
      open_rows_ += *sealed;
      open_.anchor = what.anchor;
    }
    return rows == what.rows;
  }

  std::vector<stored_batch> finish(actors::log_head& head) {
    if (open_rows_ > 0) close();
    head = head_;
    return std::move(pieces_);
  }

 private:
  void close() {
    open_.first_row.value = head_.last_row.value + 1;
    open_.last_row.value = head_.last_row.value + open_rows_;
    open_.format = newest_format;
    open_.chain = next_chain(head_.chain, open_);
    head_ = {open_.last_row, open_.chain};
    check_ = first_check(head_.chain);
    pieces_.push_back(std::move(open_));
    open_ = {};
    open_rows_ = 0;
  }

  actors::log_head head_;
  std::uint32_t check_;
  stored_batch open_;
  std::int64_t open_rows_ = 0;
  std::vector<stored_batch> pieces_;
};

std::optional<broken_row> find_broken_seal(const actors::log_head& before,
                                           const stored_batch& what) {
  std::uint32_t check = first_check(before.chain);
  std::int64_t row = what.first_row.value;
  for (std::size_t at = 0; at < what.rows.size(); ++row) {
    if (row > what.last_row.value) {
      return broken_row{{row}, "the batch holds more rows than it says"};
    }
    const auto framed = protocol::read_frame(what.rows, at);
    if (!framed) return broken_row{{row}, "the row is cut off or its length is wrong"};
    if (framed->check != check_of(check, framed->body)) {
      return broken_row{{row}, "the row was changed, or the row before it is not the one that was"};
    }
    check = framed->check;
    at = framed->end;
  }
  if (row != what.last_row.value + 1) return broken_row{{row}, "the row is missing from its batch"};
  return std::nullopt;
}

}  // namespace

std::uint32_t first_check(const chain_hash& before) noexcept {
  std::uint32_t check = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    check |= std::to_integer<std::uint32_t>(before[i]) << (8 * i);
  }
  return check;
}

std::optional<std::int64_t> seal_rows(std::string& bytes, std::size_t begin, std::uint32_t& check) {
  std::int64_t rows = 0;
  for (std::size_t at = begin; at < bytes.size(); ++rows) {
    const auto framed = protocol::read_frame(bytes, at);
    if (!framed) return std::nullopt;
    check = check_of(check, framed->body);
    put_check(bytes.data() + framed->check_at, check);
    at = framed->end;
  }
  return rows;
}

std::optional<broken_row> find_broken(const actors::log_head& before, const stored_batch& what) {
  if (what.first_row.value != before.last_row.value + 1) {
    return broken_row{{before.last_row.value + 1},
                      "the row is not in the log: the next batch begins with row " +
                          std::to_string(what.first_row.value)};
  }
  if (what.format < 1 || what.format > newest_format) {
    return broken_row{what.first_row, "its batch has format " + std::to_string(what.format) +
                                          ", which this version does not read"};
  }
  if (auto broken = find_broken_seal(before, what)) return broken;
  if (next_chain(before.chain, what) != what.chain) {
    return broken_row{
        what.first_row,
        "the hash of the batch that begins here does not follow from the batch before"};
  }
  return std::nullopt;
}

chain_hash genesis_chain(std::string_view store_id) {
  return sha256().add(std::string_view("leasehold log 1")).add(store_id).finish();
}

chain_hash next_chain(const chain_hash& before, const stored_batch& what) {
  return sha256()
      .add(before)
      .add(what.first_row.value)
      .add(what.last_row.value)
      .add(what.format)
      .add(std::string_view(what.anchor.boot_id))
      .add(what.anchor.boottime_ms)
      .add(what.anchor.wall_ms)
      .add(what.anchor.coordinator_time.ms)
      .add(std::string_view(what.rows))
      .finish();
}

std::optional<std::vector<stored_batch>> cut_pieces(
    const std::vector<const actors::batch*>& batches, actors::log_head& head) {
  piece_cutter cutter(head);
  for (const actors::batch* each : batches) {
    if (!cutter.add(*each)) return std::nullopt;
  }
  return cutter.finish(head);
}

std::string to_hex(const chain_hash& hash) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(hash.size() * 2);
  for (const std::byte each : hash) {
    text.push_back(digits[std::to_integer<unsigned>(each) >> 4]);
    text.push_back(digits[std::to_integer<unsigned>(each) & 15U]);
  }
  return text;
}

std::optional<chain_hash> chain_from_hex(std::string_view text) {
  chain_hash hash{};
  if (text.size() != hash.size() * 2) return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<std::byte>(high * 16 + low);
  }
  return hash;
}

}  // namespace leasehold::storage
