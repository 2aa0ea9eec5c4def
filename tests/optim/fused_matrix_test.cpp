// Pieces of matrices that several projections share: which rows they have, what they are called, and what is refused.
#include "src/optim/fused_matrix.hpp"

#include <doctest/doctest.h>

#include "src/layout/buffer.hpp"
#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

// "q 0–5, 12–17; k 6–8"
std::string piece_text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    text += (text.empty() ? "" : "; ") + piece.name;
    for (const Range& rows : piece.rows)
      text += (&rows == &piece.rows[0] ? " " : ", ") + std::to_string(rows.begin) + "-" + std::to_string(rows.end);
  }
  return text;
}

}  // namespace

TEST_CASE("qkv_pieces: names and rows of every split, one below the other and interleaved") {
  const AttentionRows plain{4, 2, 3, false}, interleaved{4, 2, 3, true}, many{2, 2, 1, true};
  CHECK(piece_text(qkv_pieces(plain, QkvSplit::three)) == "q 0-12; k 12-18; v 18-24");
  CHECK(piece_text(qkv_pieces(interleaved, QkvSplit::three)) == "q 0-6, 12-18; k 6-9, 18-21; v 9-12, 21-24");
  CHECK(piece_text(qkv_pieces(plain, QkvSplit::heads)) ==
        "q head 0 0-3; q head 1 3-6; q head 2 6-9; q head 3 9-12; k head 0 12-15; k head 1 15-18; v head 0 18-21; "
        "v head 1 21-24");
  CHECK(piece_text(qkv_pieces(interleaved, QkvSplit::heads)) ==
        "q head 0 0-3; q head 1 3-6; q head 2 12-15; q head 3 15-18; k head 0 6-9; k head 1 18-21; v head 0 9-12; "
        "v head 1 21-24");
  CHECK(piece_text(qkv_pieces(many, QkvSplit::three)) == "q 0-1, 3-4; k 1-2, 4-5; v 2-3, 5-6");
  CHECK(piece_text(qkv_pieces({}, QkvSplit::three)) == "q 0-1; k 1-2; v 2-3");
  CHECK(AttentionRows().rows() == 3);
  CHECK(piece_text(gate_and_up(10)) == "gate 0-5; up 5-10");
  CHECK(qkv_pieces(interleaved, QkvSplit::three)[1].count() == 6);
  const std::pair<QkvSplit, const char*> words[] = {
      {QkvSplit::none, "none"}, {QkvSplit::three, "three"}, {QkvSplit::heads, "heads"}};
  for (const auto& [split, word] : words) {
    CHECK(std::string(split_name(split)) == word);
    CHECK(parse_qkv_split(word) == split);
  }
  CHECK(usage_error([] { parse_qkv_split("two"); }) ==
        "--split-qkv \"two\" is not known; it takes none, three or heads");
}

TEST_CASE(
    "qkv_pieces: no heads of q, none of k and v, and some that do not share out are refused, however it is split") {
  for (const QkvSplit split : {QkvSplit::none, QkvSplit::three, QkvSplit::heads})
    for (const auto& [heads, kv] : {std::pair<Index, Index>(0, 2), {4, 0}, {-2, 1}, {4, -2}, {6, 4}, {2, 4}})
      CHECK(usage_error([&, heads = heads, kv = kv] {
              qkv_pieces({heads, kv, 8}, split);
            }) == std::to_string(kv) + " heads of k and v can't be shared by " + std::to_string(heads) +
                      " heads of q; give a number that divides it");
}

TEST_CASE("by_pieces: what a rank owns of a slice, cut where another piece begins, with the shape of the whole piece") {
  const Layout layout =
      plan_layout({{"other", {2, 5}}, {"w", {8, 6}, SplitDim::rows}, {"v", {4, 6}, SplitDim::columns}}, Grid().tp(2),
                  {0, 1, 1, Ownership::buckets, {}});
  const FusedMatrices fused = {{"w", {{"a", {{0, 3}, {6, 7}}}, {"b", {{3, 6}, {7, 8}}}}}, {"v", gate_and_up(4)}};
  const auto text = [&](const DistMeta& meta, int tp_rank, Range owned) {
    std::string all;
    for (const auto& [range, shape] : by_pieces(meta, tp_rank, owned, fused))
      all += std::to_string(range.begin) + "-" + std::to_string(range.end) + " of " + std::to_string(shape.rows) + "x" +
             std::to_string(shape.cols) + "; ";
    return all;
  };
  const DistMeta &w = layout.meta("w"), &v = layout.meta("v");  // 4 × 6, begins at 10; 4 × 3, begins at 34
  CHECK(text(w, 0, w.global_range) == "10-28 of 4x6; 28-34 of 4x6; ");
  CHECK(text(w, 1, w.global_range) == "10-22 of 4x6; 22-28 of 4x6; 28-34 of 4x6; ");
  CHECK(text(w, 1, {13, 25}) == "13-22 of 4x6; 22-25 of 4x6; ");
  CHECK(text(w, 1, {22, 23}) == "22-23 of 4x6; ");
  CHECK(text(v, 1, {35, 45}) == "35-40 of 2x6; 40-45 of 2x6; ");
  CHECK(text(layout.meta("other"), 1, {3, 7}) == "3-7 of 2x5; ");
}

TEST_CASE("take_rows, put_rows: the rows of a piece in its order, back to where they were, and no others touched") {
  Matrix whole(5, 2);
  for (Index i = 0; i < 10; ++i) whole.data()[i] = static_cast<float>(i);
  const Piece piece{"p", {{1, 2}, {3, 5}}};
  Matrix rows = take_rows(whole, piece);
  CHECK(rows.rows() == 3);
  CHECK(rows.flat() == Flat{2, 3, 6, 7, 8, 9});
  for (float& value : rows.flat()) value += 100;
  put_rows(rows, piece, whole);
  CHECK(whole.flat() == Flat{0, 1, 102, 103, 4, 5, 106, 107, 108, 109});
}
