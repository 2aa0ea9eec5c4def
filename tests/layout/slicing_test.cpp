#include "src/layout/slicing.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/sentence_of.hpp"

using namespace muonwalk;

namespace {

// Element (i, j) is i · cols + j, so that every element tells where it came from.
Matrix numbered(Index rows, Index cols) {
  Matrix x(rows, cols);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  return x;
}

// What an all-gather of the slices leaves: one after the other, in rank order.
Flat gathered(const Matrix& x, SplitDim dim, int tp) {
  Flat all;
  for (int rank = 0; rank < tp; ++rank) {
    const Matrix slice = tp_slice(x, dim, tp, rank);
    all.insert(all.end(), slice.flat().begin(), slice.flat().end());
  }
  return all;
}

}  // namespace

TEST_CASE("tp_slice: element (i, j) of a slice is the element of the whole it was cut from") {
  for (int tp = 1; tp <= 4; ++tp) {
    const Matrix x = numbered(tp * 3, tp * 2);
    for (int rank = 0; rank < tp; ++rank) {
      const Matrix rows = tp_slice(x, SplitDim::rows, tp, rank);
      const Matrix columns = tp_slice(x, SplitDim::columns, tp, rank);
      REQUIRE(rows.rows() == 3);
      REQUIRE(rows.cols() == tp * 2);
      REQUIRE(columns.rows() == tp * 3);
      REQUIRE(columns.cols() == 2);
      for (Index i = 0; i < rows.rows(); ++i) {
        for (Index j = 0; j < rows.cols(); ++j) CHECK(rows(i, j) == x(rank * 3 + i, j));
      }
      for (Index i = 0; i < columns.rows(); ++i) {
        for (Index j = 0; j < columns.cols(); ++j) CHECK(columns(i, j) == x(i, rank * 2 + j));
      }
      CHECK(same_bits(tp_slice(x, SplitDim::none, tp, rank), x));
    }
  }
}

TEST_CASE("join_slices: any shape, dimension and tp: the opposite of tp_slice, bit for bit") {
  const unsigned seed = 20250101;
  std::mt19937 random(seed);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 300; ++round) {
    const int tp = between(1, 8);
    const SplitDim dim = between(0, 1) == 0 ? SplitDim::rows : SplitDim::columns;
    const Shape slice{between(1, 9), between(1, 9)};
    const Index rows = slice.rows * (dim == SplitDim::rows ? tp : 1);
    const Index cols = slice.cols * (dim == SplitDim::columns ? tp : 1);
    INFO("seed " << seed << ", round " << round << ": " << rows << " x " << cols << ", " << split_name(dim) << ", tp "
                 << tp);
    const Matrix whole = numbered(rows, cols);
    CHECK(same_bits(join_slices(gathered(whole, dim, tp), slice, dim, tp), whole));
  }
  const Matrix whole = numbered(3, 5);
  CHECK(same_bits(join_slices(whole.flat(), {3, 5}, SplitDim::none, 1), whole));
}

TEST_CASE("slicing: what can't be cut or joined throws") {
  const Matrix x = numbered(4, 6);
  CHECK(sentence_of([&] { tp_slice(x, SplitDim::rows, 3, 0); }) == "3 TP ranks do not divide a length of 4");
  CHECK(sentence_of([&] { tp_slice(x, SplitDim::columns, 4, 0); }) == "4 TP ranks do not divide a length of 6");
  for (const auto& [tp, rank] : {std::pair(2, 2), {2, -1}, {0, 0}})
    for (const SplitDim dim : {SplitDim::rows, SplitDim::columns, SplitDim::none})
      CHECK(sentence_of([&, tp = tp, rank = rank] { tp_slice(x, dim, tp, rank); }) ==
            "TP rank " + std::to_string(rank) + " of " + std::to_string(tp) + " does not exist");
  CHECK(sentence_of([&] { row_slice(x, {2, 5}); }) == "rows 2..5 (end excluded) do not lie in 0..4");
  CHECK(sentence_of([&] { row_slice(x, {-1, 2}); }) == "rows -1..2 (end excluded) do not lie in 0..4");
  CHECK(sentence_of([&] { column_slice(x, {3, 2}); }) == "columns 3..2 (end excluded) do not lie in 0..6");
  CHECK(sentence_of([&] { column_slice(x, {0, 7}); }) == "columns 0..7 (end excluded) do not lie in 0..6");
  CHECK(sentence_of([&] {
          join_slices(x.flat(), {4, 3}, SplitDim::columns, 3);
        }) == "24 elements are not 3 slices of 4 × 3");
  CHECK(sentence_of([&] {
          join_slices(x.flat(), {-4, -6}, SplitDim::rows, 1);
        }) == "24 elements are not 1 slices of -4 × -6");
  CHECK(sentence_of([&] { join_slices(x.flat(), {4, 3}, SplitDim::none, 2); }) == "can't join 2 slices along none");
  CHECK(sentence_of([&] { join_slices(x.flat(), {4, 6}, SplitDim::rows, 0); }) == "can't join 0 slices along rows");
  CHECK(same_bits(row_slice(x, {0, 4}), x));
  CHECK(same_bits(column_slice(x, {0, 6}), x));
  // Where nothing was cut, the first of the slices is the whole.
  CHECK(same_bits(join_slices(std::vector<const Matrix*>{&x, nullptr}, SplitDim::none), x));
  CHECK(row_slice(x, {2, 2}).size() == 0);
}

TEST_CASE("join_slices: any number of matrices of their own, in their order; none at all is refused") {
  for (const int tp : {1, 3, 4})
    for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
      CAPTURE(tp);
      const Matrix whole = dim == SplitDim::rows ? numbered(tp * 2, 5) : numbered(5, tp * 2);
      std::vector<Matrix> slices;
      for (int rank = 0; rank < tp; ++rank) slices.push_back(tp_slice(whole, dim, tp, rank));
      std::vector<const Matrix*> pointers;
      for (const Matrix& slice : slices) pointers.push_back(&slice);
      CHECK(same_bits(join_slices(pointers, dim), whole));
      if (tp == 1) continue;
      std::swap(pointers.front(), pointers.back());
      CHECK_FALSE(same_bits(join_slices(pointers, dim), whole));
    }
  for (const SplitDim dim : {SplitDim::rows, SplitDim::columns, SplitDim::none})
    CHECK_THROWS_AS(join_slices(std::vector<const Matrix*>{}, dim), std::out_of_range);
  const Matrix small = numbered(2, 3), large = numbered(2, 4);
  for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
    CHECK_THROWS_WITH_AS(join_slices(std::vector<const Matrix*>{&small, &large}, dim),
                         "14 elements are not 2 slices of 2 × 3", std::invalid_argument);
    CHECK_THROWS_WITH_AS(join_slices(small.flat(), {2, 2}, dim, 1), "6 elements are not 1 slices of 2 × 2",
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(join_slices(small.flat(), {2, 3}, SplitDim::columns, 0), "can't join 0 slices along columns",
                       std::invalid_argument);
}
