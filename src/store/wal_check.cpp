#include "src/store/wal_check.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/store/schema.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
namespace fs = std::filesystem;

// https://www.sqlite.org/fileformat2.html#walformat
constexpr std::uint32_t magic = 0x377f0682;  // and 1: the checksums are of big-endian words
constexpr std::size_t log_header_bytes = 32;
constexpr std::size_t frame_header_bytes = 24;
constexpr std::size_t database_header_bytes = 100;
/// What is written at once, whatever happens: a header within one sector is old or new as a whole.
constexpr std::int64_t sector_bytes = 512;
/// The table `meta` is made first and fits on one page.
constexpr std::uint32_t meta_page = 2;
/// A log that is appended to while it is read can look damaged once, and not twice the same.
constexpr int most_tries = 6;

using checksum = std::pair<std::uint32_t, std::uint32_t>;

std::uint32_t word_at(const char* at, bool big_endian) {
  std::array<unsigned char, 4> b{};
  std::memcpy(b.data(), at, b.size());
  if (!big_endian) std::swap(b[0], b[3]), std::swap(b[1], b[2]);
  return std::uint32_t{b[0]} << 24U | std::uint32_t{b[1]} << 16U | std::uint32_t{b[2]} << 8U | b[3];
}

checksum add(checksum sum, const char* begin, std::size_t bytes, bool big_endian) {
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    sum.first += word_at(begin + at, big_endian) + sum.second;
    sum.second += word_at(begin + at + 4, big_endian) + sum.first;
  }
  return sum;
}

checksum checksum_at(const char* at) { return {word_at(at, true), word_at(at + 4, true)}; }

std::uint64_t salts_at(const char* at) {
  return std::uint64_t{word_at(at, true)} << 32U | word_at(at + 4, true);
}

struct frame {
  std::uint32_t page = 0;
  bool ends_transaction = false;  ///< as its header says, when that is of this generation
  bool header_is_whole = false;   ///< if the frame behind goes on from it
  bool sound = false;             ///< goes on from the frame before, with its own content
  checksum stored;
  std::vector<char> content;
};

/// One pass through the file.
class wal_scan {
 public:
  explicit wal_scan(const fs::path& wal) : in_(wal, std::ios::binary) {}

  std::optional<wal_damage> run() {
    if (!read_header()) return std::nullopt;
    const auto bytes = frame_header_bytes + page_bytes_;
    damage_.frames =
        (size_ - static_cast<std::int64_t>(log_header_bytes)) / static_cast<std::int64_t>(bytes);
    std::vector<char> buffer(bytes);
    for (std::int64_t number = 1; number <= damage_.frames; ++number) {
      if (!in_.read(buffer.data(), static_cast<std::streamsize>(bytes))) break;
      if (number == 1 && broken_) damage_.salts = salts_at(buffer.data() + 8);
      if (meets(number, read_frame(number, buffer))) return damage_;
    }
    return std::nullopt;
  }

 private:
  /// False when there is nothing behind it.
  bool read_header() {
    std::array<char, log_header_bytes> h{};
    in_.seekg(0, std::ios::end);
    size_ = in_.tellg();
    in_.seekg(0);
    if (!in_.read(h.data(), h.size())) return false;
    const std::uint32_t kind = word_at(h.data(), true);
    const std::uint32_t page = word_at(h.data() + 8, true);
    before_.stored = checksum_at(h.data() + 24);
    before_.ends_transaction = before_.header_is_whole = true;
    damage_.salts = salts_at(h.data() + 16);
    big_endian_ = (kind & 1U) != 0;
    before_.sound = (kind & ~1U) == magic && std::has_single_bit(page) && page >= 512 &&
                    page <= 65536 && add({}, h.data(), 24, big_endian_) == before_.stored;
    if (before_.sound) {
      page_bytes_ = page;
    } else {
      // As the writer makes them; the salts are those of the first frame.
      broken_ = true;
      big_endian_ = std::endian::native == std::endian::big;
    }
    return size_ > static_cast<std::int64_t>(log_header_bytes);
  }

  frame read_frame(std::int64_t number, std::vector<char>& buffer) const {
    const std::int64_t at =
        static_cast<std::int64_t>(log_header_bytes) +
        (number - 1) * static_cast<std::int64_t>(frame_header_bytes + page_bytes_);
    frame now;
    const bool of_this_generation = salts_at(buffer.data() + 8) == damage_.salts;
    now.page = word_at(buffer.data(), true);
    now.ends_transaction = of_this_generation && word_at(buffer.data() + 4, true) != 0;
    now.header_is_whole =
        at % sector_bytes + static_cast<std::int64_t>(frame_header_bytes) <= sector_bytes;
    now.stored = checksum_at(buffer.data() + 16);
    const checksum sum = add(add(before_.stored, buffer.data(), 8, big_endian_),
                             buffer.data() + frame_header_bytes, page_bytes_, big_endian_);
    now.sound = of_this_generation && sum == now.stored;
    now.content.assign(buffer.begin() + frame_header_bytes, buffer.end());
    return now;
  }

  /// Whether the frame proves that what is broken before it was on the disk.
  bool meets(std::int64_t number, frame now) {
    // Some file systems have the last frame of a commit repeated up to the end of a sector.
    const bool repeats = now.sound && now.ends_transaction && before_.ends_transaction &&
                         now.page == before_.page && now.content == before_.content;
    if (now.sound && before_.ends_transaction && !repeats) {
      if (broken_ && synced_) return true;
      synced_ = before_.sound || before_.header_is_whole;
    }
    if (!now.sound) {
      synced_ = false;
      if (!broken_) damage_.frame = number;
      broken_ = true;
    } else if (now.page == meta_page) {
      synced_ = false;
    }
    before_ = std::move(now);
    return false;
  }

  std::ifstream in_;
  std::int64_t size_ = 0;
  bool big_endian_ = false;
  std::size_t page_bytes_ = database_page_bytes;
  frame before_;
  bool broken_ = false;
  /// Every frame of the transaction up to here is sound, and none is of `meta`: it is of a kind
  /// that is synced before another one begins.
  bool synced_ = false;
  wal_damage damage_;
};

fs::path wal_of(const fs::path& database) { return database.string() + "-wal"; }

std::uintmax_t size_of(const fs::path& file) {
  std::error_code missing;
  const auto bytes = fs::file_size(file, missing);
  return missing ? 0 : bytes;
}

}  // namespace

std::optional<wal_damage> find_wal_damage(const fs::path& wal) {
  std::optional<wal_damage> last;
  for (int tries = 0; tries < most_tries; ++tries) {
    auto found = wal_scan(wal).run();
    if (!found || (last && last->frame == found->frame && last->salts == found->salts)) {
      return found;
    }
    last = found;
  }
  return std::nullopt;
}

std::optional<store_error> find_lost_log(const fs::path& database) {
  const auto found = find_wal_damage(wal_of(database));
  if (!found) return std::nullopt;
  return store_error{
      store_error::kind::corrupt,
      wal_of(database).string() + " is damaged at " +
          (found->frame == 0 ? "its header" : "frame " + std::to_string(found->frame)) + " of " +
          std::to_string(found->frames) +
          ", before commits that were acknowledged; nothing was touched. Put all files of the "
          "directory back as they were, or restore a backup; or accept the loss of everything "
          "behind the frame with --restored-backup, which keeps every fencing token rising"};
}

std::optional<store_error> find_lost_database(const fs::path& database) {
  const auto there = size_of(database);
  if (there >= database_header_bytes) return std::nullopt;
  if (size_of(wal_of(database)) <= log_header_bytes) return std::nullopt;
  return store_error{
      store_error::kind::corrupt,
      database.string() + " is " + (there == 0 ? "missing or empty" : "cut short") + ", and " +
          wal_of(database).filename().string() +
          " beside it holds what was written last; nothing was touched. Put all files of the "
          "directory back as they were, or restore a backup into an empty directory"};
}

}  // namespace leasehold::storage
