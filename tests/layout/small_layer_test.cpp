#include "src/layout/small_layer.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace muonwalk;

namespace {

Layout plan(int dp, int tp) { return plan_layout(small_layer(), Grid().dp(dp).tp(tp), small_layer_options(tp)); }

}  // namespace

// Lessons 03 to 08 say in words what is to be seen in the small layer. Here is what they rely on.
TEST_CASE("the small layer on 2 × 2 ranks: every case that the lessons talk about is there") {
  const Layout layout = plan(2, 2);
  const Buffer& buffer = layout.buffers.at(0);
  REQUIRE(layout.buffers.size() == 1);
  REQUIRE(buffer.buckets.size() == 2);
  bool rows = false, columns = false, tall = false, wide = false, one_owner = false, cut = false, cut_in_a_row = false;
  for (const DistMeta& meta : buffer.parameters) {
    rows = rows || meta.tp_split_dim == SplitDim::rows;
    columns = columns || meta.tp_split_dim == SplitDim::columns;
    tall = tall || meta.full_shape.rows > meta.full_shape.cols;
    wide = wide || meta.full_shape.rows < meta.full_shape.cols;
    one_owner = one_owner || layout.owners(meta).size() == 1;
    cut = cut || layout.owners(meta).size() == 2;
    cut_in_a_row = cut_in_a_row || layout.owned_range(meta, 0).size() % meta.shape.cols != 0;
  }
  CHECK((rows && columns && tall && wide && one_owner && cut && cut_in_a_row));
  // Padding before a matrix, and at the end of both buckets.
  CHECK(buffer.parameters[0].global_range.end < buffer.parameters[1].global_range.begin);
  CHECK(buffer.parameters[1].global_range.end < buffer.buckets[0].range.end);
  CHECK(buffer.parameters[3].global_range.end < buffer.buckets[1].range.end);
  // With --dp 4 a rank owns the middle of a matrix and neither of its ends.
  const Layout four = plan(4, 2);
  CHECK(four.owners(four.buffers[0].parameters[1]).size() == 3);
}

TEST_CASE("the small layer: the lessons' two buckets, two matrices each, for every size of TP that divides it") {
  for (const int dp : {1, 2, 3, 4, 5})
    for (const int tp : {1, 2, 4}) {
      CAPTURE(dp);
      CAPTURE(tp);
      const Layout layout = plan(dp, tp);
      REQUIRE(layout.buffers[0].buckets.size() == 2);
      CHECK(layout.buffers[0].buckets[0].parameters == std::vector<int>{0, 1});
      CHECK(layout.buffers[0].buckets[1].parameters == std::vector<int>{2, 3});
    }
}

TEST_CASE("the marked element: 416, with addresses that can't be mistaken for each other") {
  const ElementAddress marked = marked_element(plan(2, 2));
  CHECK(marked.parameter == "down");
  CHECK(small_layer_matrix(3)(marked.row, marked.col) == 416);
  CHECK((marked.tp_rank == 1 && marked.dp_rank == 1 && marked.bucket_idx == 1));
  const std::set<Index> elements = {marked.slice_element, marked.buffer_element, marked.bucket_element,
                                    marked.shard_element};
  CHECK(elements.size() == 4);
  CHECK(marked.slice_col != marked.col);
}

TEST_CASE("the small layer: a number says where it belongs, and no two are equal") {
  std::set<float> seen;
  for (int p = 0; p < 4; ++p) {
    const Matrix whole = small_layer_matrix(p);
    for (const float number : whole.flat()) CHECK(seen.insert(number).second);
  }
  CHECK(seen.size() == 72);
  CHECK(small_layer_number(1, 7, 2) == 272);
}

TEST_CASE("marked_text: what stands at the address, and that nothing does") {
  const Matrix whole = small_layer_matrix(3);
  CHECK(marked_text(whole, 1, 6, "down") == "★ down[1,6] = 416 at row 1, column 6 of down");
  CHECK(marked_text(whole.flat(), 14, "down") == "★ down[1,6] = 416 at element 14 of down");
  CHECK(marked_text(whole.flat(), 24, "down") == "★ down[1,6]: there is no element 24 of down");
  CHECK(marked_text(whole.flat(), -1, "x") == "★ down[1,6]: there is no element -1 of x");
  CHECK(marked_text(whole, 2, 8, "x") == "★ down[1,6]: there is no row 2, column 8 of x");
  CHECK(marked_text(whole, 3, 0, "x") == "★ down[1,6]: there is no row 3, column 0 of x");
}
