// fails: the slowest rank over what can't be avoided
#include <algorithm>

#include "lessons/lesson_15_sharding_layouts/try_assign_matrices/contract.hpp"

using namespace muonwalk;

std::vector<int> assign_matrices(const std::vector<Shape>& shapes, int ranks) {
  std::vector<int> owners;
  std::vector<double> load(ranks);
  for (const Shape& shape : shapes) {
    const auto least = std::min_element(load.begin(), load.end());
    owners.push_back(static_cast<int>(least - load.begin()));
    *least += newton_schulz_flops(shape.rows, shape.cols);
  }
  return owners;
}
