// What a wrong matrix looks like: said where it can be recognized, and nothing where it can't.

#include "sim/classroom/likeness.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "src/layout/slicing.hpp"
#include "tests/golden/golden_text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::Draws;

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

Matrix times(float factor) {
  Matrix matrix = kWanted;
  for (float& value : matrix.flat()) value *= factor;
  return matrix;
}

}  // namespace

TEST_CASE("a matrix of zeros, and one that was not returned") {
  CHECK(likeness(Matrix(4, 6), kWanted) == "All of it is zeros.");
  CHECK(likeness(Matrix(), kWanted) == "It is empty.");
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

TEST_CASE("infinities count as numbers that should not be there, and so does what is not a number") {
  CHECK(likeness(changed([](Matrix& m) { m(2, 2) = HUGE_VALF; }), kWanted).find("infinite") != std::string::npos);
  CHECK(likeness(changed([](Matrix& m) { m(0, 0) = NAN; }), kWanted).find("not a number") != std::string::npos);
}

TEST_CASE("what lies behind the end of an input is recognized, and the input is what it was") {
  Flat given = kWanted.flat();
  guard_end(given);
  CHECK(given == kWanted.flat());
  CHECK(likeness(Matrix(4, 6, Flat(given.data() + 3, given.data() + 27)), kWanted) ==
        "Some of it lies behind the end of what you were given.");
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

namespace {

// Slice i of n of a matrix, taken and put element by element.
Matrix with_slice(Matrix into, const Matrix& from, SplitDim dim, Index n, Index to_slice, Index from_slice) {
  const bool rows = dim == SplitDim::rows;
  const Index along = (rows ? into.rows() : into.cols()) / n;
  for (Index i = 0; i < into.rows(); ++i)
    for (Index j = 0; j < into.cols(); ++j) {
      const Index at = rows ? i : j;
      if (at / along != to_slice) continue;
      const Index there = from_slice * along + at % along;
      into(i, j) = rows ? from(there, j) : from(i, there);
    }
  return into;
}

std::string place_text(SplitDim dim, Index along, Index i) {
  const char* one = dim == SplitDim::rows ? "row" : "column";
  return along == 1 ? fmt::format("{} {}", one, i) : fmt::format("{}s {}–{}", one, i * along, (i + 1) * along - 1);
}

}  // namespace

TEST_CASE("any shape and any number of slices: what was done to the matrix is said, with its places and numbers") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Draws draw(seed);
    const int n = draw(2, 4);
    const SplitDim dim = draw(0, 1) == 0 ? SplitDim::rows : SplitDim::columns;
    const bool rows = dim == SplitDim::rows;
    // The other dimension does not divide by the number of slices, so that only this one can be meant.
    const Index along = draw(1, 3), other = n * draw(1, 2) + 1;
    const Matrix wanted = numbers(rows ? along * n : other, rows ? other : along * n);
    CAPTURE(wanted.rows());
    CAPTURE(wanted.cols());

    // One slice where another one belongs, then all of them moved on by one.
    const Index to = draw(0, n - 1), from = (to + draw(1, n - 1)) % n;
    CHECK(likeness(with_slice(wanted, wanted, dim, n, to, from), wanted, n) ==
          fmt::format("Slice {} lies where slice {} belongs ({}).", from, to, place_text(dim, along, to)));
    Matrix moved_on = wanted;
    for (Index i = 0; i < n; ++i) moved_on = with_slice(moved_on, wanted, dim, n, i, (i + 1) % n);
    const std::string first = fmt::format("Slice 1 lies where slice 0 belongs ({})", place_text(dim, along, 0));
    CHECK(likeness(moved_on, wanted, n) ==
          first + (n == 2 ? fmt::format(", and slice 0 lies where slice 1 belongs ({}).", place_text(dim, along, 1))
                          : fmt::format(", and {} more slices are not where they belong.", n - 1)));
    CHECK(likeness(with_slice(wanted, Matrix(wanted.rows(), wanted.cols()), dim, n, to, 0), wanted, n) ==
          fmt::format("There are zeros where slice {} belongs ({}).", to, place_text(dim, along, to)));

    // The lines of the slices taking turns, and each slice read or written as if columns lay one after the other.
    Matrix turns = wanted;
    for (Index i = 0; i < along * n; ++i) turns = with_slice(turns, wanted, dim, along * n, i, i % n * along + i / n);
    if (along > 1)
      CHECK(likeness(turns, wanted, n) ==
            fmt::format("The {}s of the {} slices take turns; those of one slice belong side by side.",
                        rows ? "row" : "column", n));
    if (!rows && wanted.rows() > 1 && along > 1) {
      Matrix read = wanted;
      for (Index i = 0; i < wanted.rows(); ++i)
        for (Index j = 0; j < wanted.cols(); ++j) {
          const Index at = j % along * wanted.rows() + i;  // of the slice
          read(i, j) = wanted(at / along, j / along * along + at % along);
        }
      CHECK(likeness(read, wanted, n) == "It was read column by column; it lies row by row in memory.");
    }
    if (along > 1 && wanted.rows() > 1 && wanted.rows() != wanted.cols())
      CHECK(likeness(Matrix(wanted.rows(), wanted.cols(), wanted.transposed().flat()), wanted, n) ==
            "It was written column by column; a matrix lies row by row in memory.");

    // The slices joined along the other dimension, under the right shape and under their own.
    Flat joined;
    for (Index i = 0; i < n; ++i)
      for (Index r = 0; r < (rows ? along : wanted.rows()); ++r)
        for (Index c = 0; c < (rows ? wanted.cols() : along); ++c)
          joined.push_back(rows ? wanted(i * along + r, c) : wanted(r, i * along + c));
    if (!rows && wanted.rows() > 1) {
      const std::string words =
          fmt::format("The {} slices lie one below the other, as if they were rows; they are columns.", n);
      CHECK(likeness(Matrix(wanted.rows(), wanted.cols(), joined), wanted, n) ==
            (along == 1 ? "It was written column by column; a matrix lies row by row in memory." : words));
      CHECK(likeness(Matrix(wanted.rows() * n, along, joined), wanted, n) == words);
    }
    if (rows && along > 1) {
      Flat sideways;
      for (Index r = 0; r < along; ++r)
        for (Index i = 0; i < n; ++i)
          for (Index c = 0; c < wanted.cols(); ++c) sideways.push_back(wanted(i * along + r, c));
      const std::string words =
          fmt::format("The {} slices lie side by side, as if they were columns; they are rows.", n);
      CHECK(likeness(Matrix(along, wanted.cols() * n, sideways), wanted, n) == words);
    }

    // Where the number of slices divides neither dimension, the same wrong answers get a likeness or none, but no
    // exception.
    CHECK_NOTHROW(likeness(moved_on, wanted, 5));
    CHECK_NOTHROW(likeness(Matrix(1, wanted.size(), joined), wanted, 5));
    CHECK_NOTHROW(likeness(Matrix(wanted.size(), 1, Flat(static_cast<std::size_t>(wanted.size()), 1.5f)), wanted, n));

    // A shift, and a factor.
    const auto size = static_cast<std::size_t>(wanted.size());
    const auto by = static_cast<std::size_t>(draw(1, 8));
    Flat early(size, -1.0f), late(size, -1.0f);
    for (std::size_t i = 0; i + by < size; ++i) early[i] = wanted.flat()[i + by], late[i + by] = wanted.flat()[i];
    const std::string elements = fmt::format("{} element{}", by, by == 1 ? "" : "s");
    const bool told = 4 * by <= size;
    const std::string of_early = likeness(Matrix(wanted.rows(), wanted.cols(), early), wanted),
                      of_late = likeness(Matrix(wanted.rows(), wanted.cols(), late), wanted);
    CHECK(of_early ==
          (told ? fmt::format("All values lie {} too early: what should come first is missing.", elements) : ""));
    CHECK(of_late == (told ? fmt::format("All values lie {} too late.", elements) : ""));
    // One value that does not go with the others, the first or the last too, and it is not a shift.
    const std::size_t compared = told ? size - by : 0;
    for (std::size_t odd = 0; odd < compared; ++odd) {
      CAPTURE(odd);
      Flat odd_early = early, odd_late = late;
      odd_early[odd] = odd_late[odd + by] = -3;
      CHECK(likeness(Matrix(wanted.rows(), wanted.cols(), odd_early), wanted).find(" too early") == std::string::npos);
      CHECK(likeness(Matrix(wanted.rows(), wanted.cols(), odd_late), wanted).find(" too late") == std::string::npos);
    }
    const int factor = draw(2, 9);
    Matrix large = wanted, small = wanted, apart = wanted;
    for (float& value : large.flat()) value *= static_cast<float>(factor);
    for (float& value : small.flat()) value /= static_cast<float>(factor);
    CHECK(likeness(large, wanted) == fmt::format("Every element is {} times too large.", factor));
    CHECK(likeness(small, wanted) == fmt::format("Every element is {} times too small.", factor));
    const int ulp = draw(1, 90);
    for (int k = 0; k < ulp; ++k) apart(0, 0) = std::nextafter(apart(0, 0), 1e9f);
    CHECK(likeness(apart, wanted) ==
          (ulp > 64 ? ""
                    : fmt::format("Only last bits differ, by {} ULP at most: the same numbers, added or multiplied in "
                                  "another order or precision.",
                                  ulp)));
  }
}

TEST_CASE("a factor is one where there are zeros, too, and none where a zero is anything else") {
  for (Index at = 0; at < 24; ++at) {
    Matrix wanted = kWanted;
    wanted(at / 6, at % 6) = 0;
    Matrix held = wanted;
    for (float& value : held.flat()) value *= 3;
    CHECK(likeness(held, wanted) == "Every element is 3 times too large.");
    held(at / 6, at % 6) = 1;
    CHECK(likeness(held, wanted) == "");
    held(at / 6, at % 6) = 0;
    held((at + 1) % 24 / 6, (at + 1) % 24 % 6) = 0;
    CHECK(likeness(held, wanted) == "");
    held = wanted;
    for (float& value : held.flat()) value = -value;
    CHECK(likeness(held, wanted) == "Every element has the wrong sign.");
  }
}

TEST_CASE("of lines that are zero, those that follow each other are said, and none where others stand between") {
  for (unsigned which = 1; which < 63; ++which)  // bit i: line i is zero
    for (const bool rows : {true, false}) {
      CAPTURE(which);
      const Matrix wanted = rows ? numbers(6, 5) : numbers(5, 6);
      Matrix held = wanted;
      for (Index i = 0; i < held.rows(); ++i)
        for (Index j = 0; j < held.cols(); ++j)
          if ((which >> (rows ? i : j) & 1u) != 0) held(i, j) = 0;
      int first = 0, last = 5, zeros = 0;
      while ((which >> first & 1u) == 0) ++first;
      while ((which >> last & 1u) == 0) --last;
      for (int i = 0; i < 6; ++i) zeros += static_cast<int>(which >> i & 1u);
      const char* one = rows ? "Row" : "Column";
      const std::string expected = zeros == 1 ? fmt::format("{} {} is zero; all else is right.", one, first)
                                   : zeros == last - first + 1
                                       ? fmt::format("{}s {}–{} are zeros; all else is right.", one, first, last)
                                       : "";
      CHECK(likeness(held, wanted) == expected);
    }
}

TEST_CASE("zeros, their signs, and shapes of nothing") {
  Matrix negative(2, 3, {0.0f, 1, 2, 3, 4, 5}), positive = negative;
  negative(0, 0) = -0.0f;
  CHECK(likeness(negative, positive) == "It differs in the sign of a zero alone.");
  CHECK(likeness(numbers(1, 1), Matrix(1, 1)) == "");
  CHECK(likeness(Matrix(2, 2), Matrix(3, 3)).empty());
}
