// What a wrong matrix looks like: said where it can be recognized, and nothing where it can't.

#include "sim/exercise/likeness.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "src/layout/slicing.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Element (i, j) is 10 · i + j + 1: no two are equal, and none is zero.
Matrix numbers(Index rows, Index cols) {
  Matrix matrix(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) matrix(i, j) = static_cast<float>(10 * i + j + 1);
  return matrix;
}

const Matrix kWanted = numbers(4, 6);

Matrix changed(void (*change)(Matrix&)) {
  Matrix matrix = kWanted;
  change(matrix);
  return matrix;
}

// Slices of the right matrix, one after the other.
Flat slices(SplitDim dim, int n, const std::vector<int>& which) {
  Flat run;
  for (const int i : which) {
    const Matrix slice = tp_slice(kWanted, dim, n, i);
    run.insert(run.end(), slice.flat().begin(), slice.flat().end());
  }
  return run;
}

Matrix times(float factor) {
  Matrix matrix = kWanted;
  for (float& value : matrix.flat()) value *= factor;
  return matrix;
}

}  // namespace

TEST_CASE("zeros are said with the place where they are") {
  CHECK(likeness(Matrix(4, 6), kWanted) == "All of it is zeros.");
  CHECK(likeness(Matrix(), kWanted) == "It is empty: nothing was returned.");
  const Matrix row = changed([](Matrix& m) {
    for (Index j = 0; j < 6; ++j) m(2, j) = 0;
  });
  CHECK(likeness(row, kWanted) == "Row 2 is zero; all else is right.");
  const Matrix columns = changed([](Matrix& m) {
    for (Index i = 0; i < 4; ++i) m(i, 4) = m(i, 5) = 0;
  });
  CHECK(likeness(columns, kWanted) == "Columns 4–5 are zeros; all else is right.");
  CHECK(likeness(columns, kWanted, 3) == "There are zeros where slice 2 belongs (columns 4–5).");
}

TEST_CASE("slices in wrong places") {
  const Flat swapped = slices(SplitDim::rows, 2, {1, 0});
  CHECK(likeness(Matrix(4, 6, swapped), kWanted, 2) ==
        "Slice 1 lies where slice 0 belongs (rows 0–1), and slice 0 lies where slice 1 belongs (rows 2–3).");
  const Matrix twice = changed([](Matrix& m) {
    for (Index i = 0; i < 4; ++i) m(i, 5) = m(i, 4);
  });
  CHECK(likeness(twice, kWanted, 6) == "Slice 4 lies where slice 5 belongs (column 5).");

  // Columns as they arrive, and rows side by side.
  const Flat arrived = slices(SplitDim::columns, 3, {0, 1, 2});
  CHECK(likeness(Matrix(4, 6, arrived), kWanted, 3).find("as if they were rows") != std::string::npos);
  CHECK(likeness(Matrix(12, 2, arrived), kWanted, 3).find("as if they were rows") != std::string::npos);
  const Matrix sideways = join_slices(kWanted.flat(), {2, 6}, SplitDim::columns, 2);
  CHECK(likeness(sideways, kWanted, 2).find("as if they were columns") != std::string::npos);
}

TEST_CASE("the transpose, and right values in another shape") {
  CHECK(likeness(kWanted.transposed(), kWanted) == "It is the transpose.");
  const Matrix square = numbers(4, 4);
  CHECK(likeness(square.transposed(), square) == "It is the transpose.");
  CHECK(likeness(Matrix(1, 24, kWanted.flat()), kWanted).find("only the shape is not 4 × 6") != std::string::npos);
}

TEST_CASE("a look of the exercise comes before all else") {
  CHECK(likeness(Matrix(4, 6), kWanted, 1, {{"what was there before", Matrix(4, 6)}}) ==
        "It is what was there before.");
  CHECK(likeness(numbers(2, 6), kWanted, 1, {{"the slice of rank 0", numbers(2, 6)}}) == "It is the slice of rank 0.");
}

TEST_CASE("shifted, scaled, and different in the last bits") {
  Flat early(kWanted.flat().begin() + 2, kWanted.flat().end());
  early.resize(24);
  CHECK(likeness(Matrix(4, 6, early), kWanted).find("2 elements too early") != std::string::npos);
  Flat late(1, 0.0f);
  late.insert(late.end(), kWanted.flat().begin(), kWanted.flat().end() - 1);
  CHECK(likeness(Matrix(4, 6, late), kWanted) == "All values lie 1 element too late.");
  CHECK(likeness(times(4), kWanted) == "Every element is 4 times too large.");
  CHECK(likeness(times(1.0f / 3), kWanted) == "Every element is 3 times too small.");
  CHECK(likeness(times(-1), kWanted) == "Every element has the wrong sign.");
  CHECK(likeness(changed([](Matrix& m) { m(3, 5) = 36.000004f; }), kWanted).find("by 1 ULP at most") !=
        std::string::npos);
  CHECK(likeness(changed([](Matrix& m) { m(0, 0) = 0.0f / m(0, 5) * 0.0f / 0.0f; }), kWanted).find("not a number") !=
        std::string::npos);
}

TEST_CASE("infinities count as numbers that should not be there") {
  CHECK(likeness(changed([](Matrix& m) { m(2, 2) = HUGE_VALF; }), kWanted).find("infinite") != std::string::npos);
}

TEST_CASE("nothing is claimed of what resembles nothing") {
  CHECK(likeness(kWanted, kWanted) != "It is the transpose.");
  CHECK(likeness(changed([](Matrix& m) { m(1, 1) = 99; }), kWanted, 2) == "");
  CHECK(likeness(changed([](Matrix& m) { m(1, 1) = 0, m(2, 3) = 7; }), kWanted, 2) == "");
  CHECK(likeness(numbers(5, 5), kWanted, 2) == "");
  CHECK(likeness(times(1.25f), kWanted) == "");
  // Equal numbers can be shifted as one likes.
  const Matrix same(3, 3, Flat(9, 2.0f));
  CHECK(likeness(Matrix(3, 3, Flat(9, 3.0f)), same) == "");
}
