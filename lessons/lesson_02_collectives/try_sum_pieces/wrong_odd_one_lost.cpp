// fails: dp 5
#include "lessons/lesson_02_collectives/try_sum_pieces/contract.hpp"

using namespace muonwalk;

Flat sum_pieces(const std::vector<Flat>& pieces) {
  std::vector<Flat> level = pieces;
  while (level.size() > 1) {
    for (std::size_t r = 0; r < level.size() / 2; ++r) {
      Flat sum = level[2 * r];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += level[2 * r + 1][i];
      level[r] = sum;
    }
    level.resize(level.size() / 2);
  }
  return level[0];
}
