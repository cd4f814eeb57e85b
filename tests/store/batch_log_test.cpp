#include "src/store/batch_log.hpp"

#include "tests/store/store_conformance.hpp"

namespace leasehold::tests {
namespace {

/// One piece with ten rows behind the beginning of a log.
struct BatchLog : ::testing::Test {
  BatchLog() {
    std::vector<protocol::stored_row> rows;
    for (std::int64_t i = 1; i <= 10; ++i) rows.push_back(renew_row("a", i, i - 1));
    const auto what = batch_of(rows);
    auto head = start;
    piece = storage::cut_pieces({&what}, head)->front();
  }

  /// The bytes of the framed row with this number.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::int64_t row) const {
    std::size_t begin = 0;
    auto framed = protocol::read_frame(piece.rows, 0);
    for (std::int64_t i = 1; i < row; ++i) {
      begin = framed->end;
      framed = protocol::read_frame(piece.rows, begin);
    }
    return {begin, framed->end - begin};
  }

  actors::log_head start{{0}, storage::genesis_chain("00000000000000000000000000000001")};
  actors::stored_batch piece;
};

TEST_F(BatchLog, AnUntouchedPieceFollows) { EXPECT_FALSE(storage::find_broken(start, piece)); }

TEST_F(BatchLog, EveryFlippedByteIsFoundAndItsRowNamed) {
  for (std::size_t at = 0; at < piece.rows.size(); ++at) {
    auto changed = piece;
    changed.rows[at] = static_cast<char>(changed.rows[at] ^ 0x10);
    const auto broken = storage::find_broken(start, changed);
    ASSERT_TRUE(broken) << "byte " << at;
    std::int64_t row = 1;
    while (place_of(row).first + place_of(row).second <= at) ++row;
    EXPECT_EQ(broken->row.value, row) << "byte " << at;
  }
}

TEST_F(BatchLog, ADeletedRowIsNamed) {
  const auto [begin, size] = place_of(4);
  piece.rows.erase(begin, size);
  const auto broken = storage::find_broken(start, piece);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->row.value, 4);
}

TEST_F(BatchLog, TheLastRowDeletedIsNamed) {
  const auto [begin, size] = place_of(10);
  piece.rows.erase(begin, size);
  EXPECT_EQ(storage::find_broken(start, piece)->row.value, 10);
}

TEST_F(BatchLog, AnAddedRowIsNamed) {
  const auto [begin, size] = place_of(10);
  piece.rows += piece.rows.substr(begin, size);
  EXPECT_EQ(storage::find_broken(start, piece)->row.value, 11);
}

TEST_F(BatchLog, TwoSwappedRowsAreNamedAtTheFirst) {
  const auto [first, first_size] = place_of(5);
  const auto [second, second_size] = place_of(6);
  piece.rows = piece.rows.substr(0, first) + piece.rows.substr(second, second_size) +
               piece.rows.substr(first, first_size) + piece.rows.substr(second + second_size);
  EXPECT_EQ(storage::find_broken(start, piece)->row.value, 5);
}

TEST_F(BatchLog, AChangedAnchorBreaksTheChain) {
  piece.anchor.wall_ms += 1;
  EXPECT_EQ(storage::find_broken(start, piece)->row.value, 1);
}

TEST_F(BatchLog, AMissingPieceIsNamedByItsFirstRow) {
  piece.first_row.value += 3;
  EXPECT_EQ(storage::find_broken(start, piece)->row.value, 1);
}

TEST_F(BatchLog, AnUnknownFormatIsRefused) {
  piece.format = storage::newest_format + 1;
  EXPECT_TRUE(storage::find_broken(start, piece));
}

TEST_F(BatchLog, HashesAreReadBackFromTheirText) {
  EXPECT_EQ(storage::chain_from_hex(storage::to_hex(piece.chain)), piece.chain);
  EXPECT_FALSE(storage::chain_from_hex("00"));
  EXPECT_FALSE(storage::chain_from_hex(std::string(64, 'g')));
}

}  // namespace
}  // namespace leasehold::tests
