// fails: It is as large as when matrices are dealt out in turn
#include "lessons/lesson_15_sharding_layouts/try_assign_matrices/contract.hpp"

using namespace muonwalk;

std::vector<int> assign_matrices(const std::vector<Shape>& shapes, int ranks) {
  std::vector<int> owners;
  for (std::size_t i = 0; i < shapes.size(); ++i) owners.push_back(static_cast<int>(i) % ranks);
  return owners;
}
