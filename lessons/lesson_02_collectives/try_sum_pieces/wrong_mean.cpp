// fails: times too small
#include "lessons/lesson_02_collectives/try_sum_pieces/contract.hpp"

using namespace muonwalk;

Flat sum_pieces(const std::vector<Flat>& pieces) {
  std::vector<Flat> level = pieces;
  for (std::size_t step = 1; step < level.size(); step *= 2)
    for (std::size_t r = 0; r + step < level.size(); r += 2 * step)
      for (std::size_t i = 0; i < level[r].size(); ++i) level[r][i] += level[r + step][i];
  for (float& value : level[0]) value /= static_cast<float>(level.size());
  return level[0];
}
