#include "src/numerics/running_tree_sum.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
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

bool same_values(const Flat& a, const Flat& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

constexpr Index kMostLeaves = 40;
constexpr Index kLengths[] = {1, 12, 0, 257};  // of a leaf's arrays

std::vector<Flat> wild_leaf(std::uint64_t seed, Index leaf) {
  std::vector<Flat> arrays;
  for (const Index length : kLengths)
    arrays.push_back(wild_array(seed, static_cast<std::uint64_t>(1000 * leaf + length), length));
  return arrays;
}

}  // namespace

TEST_CASE("running tree sum: any number of leaves has the bits of tree_sum, array by array") {
  int not_from_left_to_right = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RunningTreeSum<Flat> running;  // used over and over
    for (Index count = 1; count <= kMostLeaves; ++count) {
      CAPTURE(seed);
      CAPTURE(count);
      std::vector<std::vector<Flat>> leaves;
      for (Index leaf = 0; leaf < count; ++leaf) leaves.push_back(wild_leaf(seed, leaf));
      for (Index leaf = 0; leaf < count; ++leaf) running.add(leaf, wild_leaf(seed, leaf));
      const std::vector<Flat> sum = running.take();
      REQUIRE(sum.size() == std::size(kLengths));
      for (std::size_t array = 0; array < sum.size(); ++array) {
        std::vector<Flat> parts;
        for (const auto& leaf : leaves) parts.push_back(leaf[array]);
        REQUIRE(same_values(sum[array], tree_sum(parts)));
        Flat in_a_row = parts[0];
        for (std::size_t leaf = 1; leaf < parts.size(); ++leaf)
          for (std::size_t i = 0; i < in_a_row.size(); ++i) in_a_row[i] += parts[leaf][i];
        not_from_left_to_right += !same_values(in_a_row, sum[array]);
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
    RunningTreeSum<Flat> running;
    for (Index leaf = 0; leaf < count; ++leaf) {
      std::vector<Flat> arrays;
      arrays.push_back(Flat(kElements, 1.0f));
      running.add(leaf, std::move(arrays));
      int ones = 0;
      for (Index rest = leaf + 1; rest > 0; rest >>= 1) ones += static_cast<int>(rest & 1);
      CHECK(running.leaves() == leaf + 1);
      CHECK(running.sums() == ones);
      CHECK(meter.live() == kElements * ones);
    }
    const int most = 1 + static_cast<int>(std::log2(static_cast<double>(count)));
    CHECK(meter.peak() == kElements * most);  // nothing was copied
    CHECK(running.take()[0] == Flat(kElements, static_cast<float>(count)));
    CHECK(meter.live() == 0);
  }
}

TEST_CASE("running tree sum: a leaf out of turn, or of another shape, is refused and changes nothing") {
  RunningTreeSum<Flat> running;
  CHECK_THROWS_WITH_AS(running.take(), "a running tree sum was asked for before its first leaf", std::logic_error);
  CHECK_THROWS_WITH_AS(running.add(1, {{1.0f}}), "a running tree sum was given leaf 1 where leaf 0 is the next one",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(running.add(-1, {{1.0f}}), "a running tree sum was given leaf -1 where leaf 0 is the next one",
                       std::invalid_argument);
  running.add(0, {{1.0f}});
  CHECK_THROWS_WITH_AS(running.add(0, {{2.0f}}), "a running tree sum was given leaf 0 where leaf 1 is the next one",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(running.add(2, {{2.0f}}), "a running tree sum was given leaf 2 where leaf 1 is the next one",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(running.add(1, {{2.0f, 3.0f}}), "a tree adds leaves with arrays of equal shapes",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(running.add(1, {{2.0f}, {3.0f}}), "a tree adds leaves with arrays of equal shapes",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(running.add(1, {}), "a tree adds leaves with arrays of equal shapes", std::invalid_argument);
  running.add(1, {{2.0f}});
  CHECK(running.leaves() == 2);
  CHECK(running.take() == std::vector<Flat>{{3.0f}});
  running.add(0, {{5.0f}});  // from the beginning
  CHECK(running.take() == std::vector<Flat>{{5.0f}});

  RunningTreeSum<Matrix> matrices;
  std::vector<Matrix> wide, tall;
  wide.emplace_back(2, 3);
  tall.emplace_back(3, 2);
  matrices.add(0, std::move(wide));
  CHECK_THROWS_WITH_AS(matrices.add(1, std::move(tall)), "a tree adds leaves with arrays of equal shapes",
                       std::invalid_argument);
  CHECK(tall.size() == 1);  // as it was
}
