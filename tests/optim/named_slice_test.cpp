#include <doctest/doctest.h>

#include <stdexcept>

#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;

TEST_CASE("named_slice: any split, any tp that divides: the slice that tp_slice cuts, at the place it came from") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto draw = [&](std::uint64_t which, int upto) {
      return 1 + int(philox4x32_10({std::uint32_t(which)}, {std::uint32_t(seed), 7})[0] % std::uint32_t(upto));
    };
    const int tp = draw(0, 6);
    const SplitDim dim = SplitDim(draw(1, 3) - 2);
    Parameter parameter = {"w", {draw(2, 9), draw(3, 9)}, dim};
    if (dim == SplitDim::rows) parameter.shape.rows *= tp;
    if (dim == SplitDim::columns) parameter.shape.cols *= tp;
    const Matrix whole = random_matrix({seed, 0}, parameter.shape.rows, parameter.shape.cols);
    for (int rank = 0; rank < tp; ++rank) {
      CAPTURE(rank);
      const NamedMatrix slice = named_slice(parameter, whole, tp, rank);
      CHECK(slice.name == "w");
      CHECK(same_bits(slice.matrix, tp_slice(whole, dim, tp, rank)));
      const Range part = tp_range(parameter, tp, rank);
      CHECK(slice.first_row == (dim == SplitDim::rows ? part.begin : 0));
      CHECK(slice.first_col == (dim == SplitDim::columns ? part.begin : 0));
    }
  }
}

TEST_CASE("named_slice: what does not fit is refused: a dimension that tp does not divide, a rank, another shape") {
  const Parameter by_rows = {"w", {4, 6}, SplitDim::rows};
  const Parameter by_columns = {"w", {6, 4}, SplitDim::columns};
  CHECK_THROWS_WITH_AS(named_slice(by_rows, Matrix(4, 6), 3, 0), "\"w\" can't be cut into 3 equal slices of rows",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(named_slice(by_columns, Matrix(6, 4), 3, 0), "\"w\" can't be cut into 3 equal slices of columns",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(named_slice(by_rows, Matrix(4, 6), 2, 2), "TP rank 2 of 2 does not exist",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(named_slice(by_rows, Matrix(4, 6), 2, -1), "TP rank -1 of 2 does not exist",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(named_slice(by_rows, Matrix(6, 4), 2, 0),
                       "\"w\" is 4 × 6, but its whole matrix was given as 6 × 4", std::invalid_argument);
}

TEST_CASE("append_of: names with what they are of") {
  std::vector<NamedMatrix> all;
  append_of("per bucket", {{"0.wq", Matrix(1, 2)}}, all);
  append_of("in turn", {{"0.wq", Matrix(1, 2)}, {"0.wk", Matrix(2, 1)}}, all);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "per bucket: 0.wq");
  CHECK(all[2].name == "in turn: 0.wk");
  CHECK(all[2].matrix.rows() == 2);
}
