// fails: It is as large as when one rank owns everything
#include <algorithm>
#include <numeric>

#include "lessons/lesson_15_sharding_layouts/try_assign_matrices/contract.hpp"

using namespace muonwalk;

// Shape has rows, cols, and size(), which is rows · cols.
std::vector<int> assign_matrices(const std::vector<Shape>& shapes, int ranks) {
  std::vector<int> owners(shapes.size());
  // Your code goes here: newton_schulz_flops(shapes[i].rows, shapes[i].cols) is the work of matrix i.
  return owners;
}
