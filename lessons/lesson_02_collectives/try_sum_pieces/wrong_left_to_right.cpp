// fails: the same numbers, added or multiplied in another order
#include "lessons/lesson_02_collectives/try_sum_pieces/contract.hpp"

using namespace muonwalk;

Flat sum_pieces(const std::vector<Flat>& pieces) {
  Flat sum = pieces[0];
  for (std::size_t r = 1; r < pieces.size(); ++r)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += pieces[r][i];
  return sum;
}
