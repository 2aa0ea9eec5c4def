#include <algorithm>
#include <numeric>

#include "lessons/lesson_15_sharding_layouts/try_assign_matrices/contract.hpp"

using namespace muonwalk;

// The largest first, each to the rank that has least so far. Small matrices come last, and fill what is uneven. (Graham
// showed in 1969 that the slowest rank then has at most 4/3 of what it would have with the best choice.)
std::vector<int> assign_matrices(const std::vector<Shape>& shapes, int ranks) {
  std::vector<double> work;
  for (const Shape& shape : shapes) work.push_back(newton_schulz_flops(shape.rows, shape.cols));
  std::vector<int> order(shapes.size()), owners(shapes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return work[a] > work[b]; });
  std::vector<double> load(ranks);
  for (const int matrix : order) {
    const auto least = std::min_element(load.begin(), load.end());
    owners[matrix] = static_cast<int>(least - load.begin());
    *least += work[matrix];
  }
  return owners;
}
