
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"

using namespace muonwalk;

namespace {

// Magnitudes over many powers of two, so that sums round differently in every order.
Flat wild_array(std::uint64_t seed, std::uint64_t tensor, Index count) {
  Flat values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = random_value({seed, tensor}, 2 * i);
    values[i] = std::ldexp(value, static_cast<int>(4 * random_value({seed, tensor}, 2 * i + 1)));
  }
  return values;
}

constexpr Index kMostLeaves = 40;
constexpr Index kLengths[] = {1, 12, 0, 257};  // of a leaf's arrays

std::vector<Matrix> wild_leaf(std::uint64_t seed, Index leaf) {
  std::vector<Matrix> arrays;
  for (const Index length : kLengths)
    arrays.emplace_back(1, length, wild_array(seed, static_cast<std::uint64_t>(1000 * leaf + length), length));
  return arrays;
}

}  // namespace

TEST_CASE("running tree sum: any number of leaves has the bits of tree_sum, array by array") {
  int not_from_left_to_right = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RunningTreeSum running;  // used over and over
    for (Index count = 1; count <= kMostLeaves; ++count) {
      CAPTURE(seed);
      CAPTURE(count);
      std::vector<std::vector<Matrix>> leaves;
      for (Index leaf = 0; leaf < count; ++leaf) leaves.push_back(wild_leaf(seed, leaf));
      for (Index leaf = 0; leaf < count; ++leaf) running.add(leaf, wild_leaf(seed, leaf));
      const std::vector<Matrix> sum = running.take();
      REQUIRE(sum.size() == std::size(kLengths));
      for (std::size_t array = 0; array < sum.size(); ++array) {
        std::vector<Flat> parts;
        for (const auto& leaf : leaves) parts.push_back(leaf[array].flat());
        REQUIRE(same_bits(sum[array], Matrix(1, kLengths[array], tree_sum(parts))));
        Flat in_a_row = parts[0];
        for (std::size_t leaf = 1; leaf < parts.size(); ++leaf)
          for (std::size_t i = 0; i < in_a_row.size(); ++i) in_a_row[i] += parts[leaf][i];
        not_from_left_to_right += !same_bits(Matrix(1, kLengths[array], in_a_row), sum[array]);
      }
    }
  }
  CHECK(not_from_left_to_right > 300);
}

TEST_CASE("running tree sum: after any number of leaves, a sum for each one in binary; never more than log2 + 1") {
  constexpr Index kElements = 100;
  for (Index count = 1; count <= kMostLeaves; ++count) {
    CAPTURE(count);
    MemoryMeter meter;
    const MeterScope scope(meter);
    RunningTreeSum running;
    for (Index leaf = 0; leaf < count; ++leaf) {
      std::vector<Matrix> arrays;
      arrays.emplace_back(1, kElements, Flat(kElements, 1.0f));
      running.add(leaf, std::move(arrays));
      int ones = 0;
      for (Index rest = leaf + 1; rest > 0; rest >>= 1) ones += static_cast<int>(rest & 1);
      CHECK(running.leaves() == leaf + 1);
      CHECK(running.sums() == ones);
      CHECK(meter.live() == kElements * ones);
    }
    const int most = 1 + static_cast<int>(std::log2(static_cast<double>(count)));
    CHECK(meter.peak() == kElements * most);  // nothing was copied
    CHECK(running.take()[0](0, 7) == static_cast<float>(count));
    CHECK(meter.live() == 0);
  }
}

TEST_CASE("running tree sum: a leaf out of turn, or of another shape, is refused and changes nothing") {
  RunningTreeSum running;
  const auto leaf = [](std::vector<std::pair<Index, Index>> shapes, float value) {
    std::vector<Matrix> arrays;
    for (const auto& [rows, cols] : shapes)
      arrays.emplace_back(rows, cols, Flat(static_cast<std::size_t>(rows * cols), value));
    return arrays;
  };
  CHECK_THROWS_WITH_AS(running.take(), "a running tree sum was asked for before its first leaf", std::logic_error);
  for (const Index next : {0, 1})
    for (const Index number : {-1, 0, 1, 2}) {
      if (number == next) continue;
      if (next == 1 && running.leaves() == 0) running.add(0, leaf({{2, 3}}, 1));
      const std::string sentence = "a running tree sum was given leaf " + std::to_string(number) + " where leaf " +
                                   std::to_string(next) + " is the next one";
      CHECK_THROWS_WITH_AS(running.add(number, leaf({{2, 3}}, 2)), sentence.c_str(), std::invalid_argument);
    }
  for (const auto& shapes :
       std::vector<std::vector<std::pair<Index, Index>>>{{}, {{3, 2}}, {{2, 4}}, {{2, 3}, {2, 3}}}) {
    std::vector<Matrix> other = leaf(shapes, 2);
    CHECK_THROWS_WITH_AS(running.add(1, std::move(other)), "a tree adds leaves with arrays of equal shapes",
                         std::invalid_argument);
    CHECK(other.size() == shapes.size());  // as it was
  }
  running.add(1, leaf({{2, 3}}, 2));
  CHECK(running.leaves() == 2);
  CHECK(running.take()[0](1, 2) == 3);
  running.add(0, leaf({{1, 1}}, 5));  // from the beginning
  CHECK(running.take()[0](0, 0) == 5);
}
