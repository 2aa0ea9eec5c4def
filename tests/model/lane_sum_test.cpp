#include "src/model/lane_sum.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

bool bits_agree(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// The lanes of lane_sum, written out.
float in_lanes(const std::vector<float>& terms) {
  std::vector<float> lanes(16, 0.0f);
  for (std::size_t i = 0; i < terms.size(); ++i) lanes[i % 16] += terms[i];
  while (lanes.size() > 1) {
    std::vector<float> pairs;
    for (std::size_t i = 0; i < lanes.size(); i += 2) pairs.push_back(lanes[i] + lanes[i + 1]);
    lanes = pairs;
  }
  return lanes[0];
}

}  // namespace

TEST_CASE("lane_sum: sums and sums of products have sixteen chains, and a tree over their ends") {
  for (std::size_t count = 0; count <= 100; ++count) {
    std::vector<float> left, right, products;
    for (std::uint64_t i = 0; i < count; ++i) {
      left.push_back(random_value({4, 1}, i));
      right.push_back(random_value({4, 2}, i));
      products.push_back(left.back() * right.back());
    }
    CHECK(bits_agree(lane_sum(left.data(), static_cast<Index>(count)), in_lanes(left)));
    CHECK(bits_agree(lane_dot(left.data(), right.data(), static_cast<Index>(count)), in_lanes(products)));
  }
}
