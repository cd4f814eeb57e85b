// Decision tables as data. A table is a list of boxes: each row names, for some facts, the values
// that it takes, and leaves the others open. Whether every case meets exactly one row is then a
// matter of arithmetic and not of enumeration: rows that are pairwise disjoint, and whose sizes sum
// up to the size of the whole product, are a partition of it.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>

namespace leasehold::protocol::tables {

/// A fact is an enum whose values count up from 0 and end with `how_many`.
template <class Fact>
inline constexpr int values_of = static_cast<int>(Fact::how_many);

/// The product of some facts. A case sets one bit for each fact, a box any number of them.
template <class... Facts>
struct fact_space {
  static_assert((values_of<Facts> + ...) <= 64, "the facts of a table fit into one word");

  using bits = std::uint64_t;

  template <class Fact>
  static constexpr int offset_of() {
    int offset = 0;
    bool found = false;
    ((found = found || std::is_same_v<Fact, Facts>, offset += found ? 0 : values_of<Facts>), ...);
    return offset;
  }

  template <class Fact>
  static constexpr bits all_of() {
    return ((bits{1} << values_of<Fact>)-1) << offset_of<Fact>();
  }

  template <class Fact>
  static constexpr bits bit(Fact value) {
    return bits{1} << (offset_of<Fact>() + static_cast<int>(value));
  }

  /// One value for each fact.
  struct one_case {
    bits set = 0;
  };

  static constexpr one_case make_case(Facts... values) { return {(bit(values) | ...)}; }

  /// For each fact the values that a row takes.
  struct box {
    bits taken = (all_of<Facts>() | ...);

    template <class Fact, class... More>
    [[nodiscard]] constexpr box only(Fact first, More... more) const {
      const bits wanted = (bit(first) | ... | bit(static_cast<Fact>(more)));
      return {taken & (~all_of<Fact>() | wanted)};
    }
    template <class Fact, class... More>
    [[nodiscard]] constexpr box except(Fact first, More... more) const {
      return {taken & ~(bit(first) | ... | bit(static_cast<Fact>(more)))};
    }
    [[nodiscard]] constexpr bool has(one_case c) const { return (c.set & ~taken) == 0; }
  };

  static constexpr box any{};

  static constexpr std::uint64_t size(box b) {
    return (static_cast<std::uint64_t>(std::popcount(b.taken & all_of<Facts>())) * ...);
  }

  static constexpr bool disjoint(box a, box b) {
    return (((a.taken & b.taken & all_of<Facts>()) == 0) || ...);
  }

  /// True when every case of the product meets exactly one of the rows, and every row some case.
  template <class Row>
  static constexpr bool partitioned_by(std::span<const Row> rows) {
    std::uint64_t covered = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (size(rows[i].when) == 0) return false;
      covered += size(rows[i].when);
      for (std::size_t j = 0; j < i; ++j) {
        if (!disjoint(rows[i].when, rows[j].when)) return false;
      }
    }
    return covered == size(any);
  }
};

}  // namespace leasehold::protocol::tables
