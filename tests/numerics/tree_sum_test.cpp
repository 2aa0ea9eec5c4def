#include "src/numerics/tree_sum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/philox.hpp"
#include "tests/near.hpp"

using namespace muonwalk;

namespace {

// The definition, word for word: pair neighbours from the bottom up and carry the odd one.
template <class T>
T pair_neighbours(std::vector<T> level) {
  if (level.empty()) return 0;
  while (level.size() > 1) {
    std::vector<T> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

// Random values whose sums round differently in every order: magnitudes over many powers of two.
std::vector<float> wild_values(std::uint64_t seed, std::uint64_t tensor, Index count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = random_value({seed, tensor}, 2 * i);
    values[i] = std::ldexp(value, static_cast<int>(4 * random_value({seed, tensor}, 2 * i + 1)));
  }
  return values;
}

std::vector<const float*> pointers(const std::vector<std::vector<float>>& parts) {
  std::vector<const float*> result;
  for (const auto& part : parts) result.push_back(part.data());
  return result;
}

}  // namespace

TEST_CASE(
    "tree_sum: any number of leaves is added as neighbours, pairs of neighbours, and so on, the odd one carried") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    for (Index count = 0; count <= 64; ++count) {
      CAPTURE(count);
      const auto leaves = wild_values(seed, 1, count);
      REQUIRE(float_bits(tree_sum(leaves.data(), count)) == float_bits(pair_neighbours(leaves)));
    }
  }
}

TEST_CASE("tree_sum: doubles are added in the same tree, in double precision") {
  int other_order = 0;
  for (Index count = 0; count <= 64; ++count) {
    const auto floats = wild_values(5, 1, count);
    std::vector<double> leaves;
    double in_a_row = 0;
    for (const float value : floats) leaves.push_back(value / 3.0), in_a_row += leaves.back();
    CAPTURE(count);
    const double sum = tree_sum(leaves.data(), count);
    CHECK(sum == pair_neighbours(leaves));
    other_order += sum != in_a_row;
  }
  CHECK(other_order > 30);
}

TEST_CASE("tree_sum: with a power of two of leaves a rank, summing within the ranks first gives the same bits") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    for (Index each : {1, 2, 4, 8}) {
      for (Index ranks = 1; ranks <= 8; ++ranks) {
        CAPTURE(each);
        CAPTURE(ranks);
        const auto leaves = wild_values(seed, 3, each * ranks);
        std::vector<float> of_rank;
        for (Index rank = 0; rank < ranks; ++rank) of_rank.push_back(tree_sum(leaves.data() + rank * each, each));
        REQUIRE(float_bits(tree_sum(of_rank.data(), ranks)) == float_bits(tree_sum(leaves.data(), each * ranks)));
      }
    }
  }
}

TEST_CASE("tree_sum: whole arrays are summed element by element, and the result may lie over any of the parts") {
  for (Index count : {0, 1, 5, 255, 256, 257, 1000}) {
    for (Index leaves = 0; leaves <= 9; ++leaves) {
      CAPTURE(count);
      CAPTURE(leaves);
      std::vector<std::vector<float>> parts;
      for (Index leaf = 0; leaf < leaves; ++leaf)
        parts.push_back(wild_values(5, static_cast<std::uint64_t>(leaf), count));
      std::vector<float> expected(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::vector<float> column;
        for (const auto& part : parts) column.push_back(part[i]);
        expected[i] = pair_neighbours(column);
      }
      const std::size_t bytes = expected.size() * sizeof(float);
      std::vector<float> out(expected.size() + 1, 99.0f);
      tree_sum(pointers(parts), count, out.data());
      REQUIRE((bytes == 0 || std::memcmp(out.data(), expected.data(), bytes) == 0));
      REQUIRE(out.back() == 99.0f);
      for (std::size_t over = 0; over < parts.size(); ++over) {
        auto copy = parts;
        tree_sum(pointers(copy), count, copy[over].data());
        REQUIRE((bytes == 0 || std::memcmp(copy[over].data(), expected.data(), bytes) == 0));
      }
    }
  }
}

TEST_CASE("tree_sum: bfloat16 leaves are added in float32 and rounded once") {
  for (Index leaves = 1; leaves <= 8; ++leaves) {
    CAPTURE(leaves);
    const Index count = 300;
    std::vector<std::vector<bfloat16>> parts;
    std::vector<const bfloat16*> views;
    for (Index leaf = 0; leaf < leaves; ++leaf) {
      const auto values = wild_values(6, static_cast<std::uint64_t>(leaf), count);
      parts.emplace_back(values.size());
      to_bf16(values.data(), count, parts.back().data());
    }
    for (const auto& part : parts) views.push_back(part.data());
    std::vector<bfloat16> out(static_cast<std::size_t>(count));
    tree_sum(views, count, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::vector<float> column;
      for (const auto& part : parts) column.push_back(static_cast<float>(part[i]));
      REQUIRE(out[i].bits == bfloat16(pair_neighbours(column)).bits);
    }
  }
}

TEST_CASE("frobenius_norm: neither the largest nor the smallest floats overflow or vanish") {
  Matrix large(3, 3);
  for (float& value : large.flat()) value = std::numeric_limits<float>::max();
  CHECK(frobenius_norm(large) == near(3.0 * std::numeric_limits<float>::max()));
  Matrix small(1, 4);
  for (float& value : small.flat()) value = std::numeric_limits<float>::denorm_min();
  CHECK(frobenius_norm(small) == near(2.0 * std::numeric_limits<float>::denorm_min(), 1e-12));
  CHECK(frobenius_norm(small) > 0);
  CHECK(frobenius_norm(Matrix(0, 5)) == 0);
}

TEST_CASE("ring_sum: any number of ranks and any piece: from the rank behind it round to the piece's own") {
  for (Index count = 1; count <= 9; ++count)
    for (Index piece = 0; piece < count; ++piece) {
      CAPTURE(count);
      CAPTURE(piece);
      const auto x = wild_values(11, static_cast<std::uint64_t>(count), count);
      std::vector<float> in_turn;
      for (Index rank = piece + 1; rank < count; ++rank) in_turn.push_back(x[static_cast<std::size_t>(rank)]);
      for (Index rank = 0; rank <= piece; ++rank) in_turn.push_back(x[static_cast<std::size_t>(rank)]);
      float expected = in_turn[0];
      for (std::size_t i = 1; i < in_turn.size(); ++i) expected += in_turn[i];
      CHECK(float_bits(ring_sum(x.data(), count, piece)) == float_bits(expected));
    }
}

// Sixteen sums side by side over 1024 numbers each, halved until there is one; and over those the tree.
TEST_CASE("pairwise_sum_of_squares: these additions in this order, bit for bit") {
  int in_a_row_differs = 0;
  for (const Index count : {1, 7, 15, 16, 17, 40, 1023, 1024, 1025, 1039, 2048, 3000, 5000, 9001}) {
    CAPTURE(count);
    const auto values = wild_values(12, static_cast<std::uint64_t>(count), count);
    std::vector<double> leaves;
    double in_a_row = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += 1024) {
      std::vector<double> lanes(16);
      for (std::size_t i = begin; i < std::min(values.size(), begin + 1024); ++i) {
        const double square = static_cast<double>(values[i]) * static_cast<double>(values[i]);
        lanes[i % 16] += square;
        in_a_row += square;
      }
      for (; lanes.size() > 1; lanes.resize(lanes.size() / 2))
        for (std::size_t i = 0; i < lanes.size() / 2; ++i) lanes[i] += lanes[i + lanes.size() / 2];
      leaves.push_back(lanes[0]);
    }
    const double expected = pair_neighbours(leaves);
    CHECK(pairwise_sum_of_squares(values.data(), count) == expected);
    CHECK(frobenius_norm(Matrix(1, count, Flat(values.begin(), values.end()))) == std::sqrt(expected));
    in_a_row_differs += in_a_row != expected;
  }
  CHECK(in_a_row_differs > 4);
}

TEST_CASE("tree_sum: what it scribbles on is not counted as held; the sum that it returns is") {
  const std::vector<float> part(1000, 1.0f);
  const std::vector<bfloat16> narrow(1000, bfloat16(1.0f));
  std::vector<float> out(1000);
  std::vector<bfloat16> narrow_out(1000);
  const std::vector<Flat> arrays(5, Flat(1000, 2.0f));
  MemoryMeter meter;
  const MeterScope scope(meter);
  tree_sum({part.data(), part.data(), part.data()}, 1000, out.data());
  tree_sum({narrow.data(), narrow.data(), narrow.data()}, 1000, narrow_out.data());
  CHECK(meter.peak() == 0);
  CHECK(out[999] == 3);
  CHECK(static_cast<float>(narrow_out[999]) == 3);
  CHECK(tree_sum(arrays) == Flat(1000, 10.0f));
  CHECK(meter.peak() == 2000);  // the sum, and what it is compared with
  // Of no leaves a sum is zero, whatever lay there.
  tree_sum(std::vector<const bfloat16*>{}, 1000, narrow_out.data());
  CHECK(narrow_out[0].bits == 0);
  CHECK(narrow_out[999].bits == 0);
}
