#include <algorithm>
#include <numeric>

#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"
#include "sim/exercise/exercise.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk::sim {
namespace {

// Shards of unequal sizes; with four ranks, one of them owns nothing.
std::vector<Index> counts_of_shards(const Seat& seat) {
  std::vector<Index> counts;
  for (int r = 0; r < seat.grid.dp(); ++r) counts.push_back(r == 2 ? 0 : 5 + 3 * r);
  return counts;
}

// What rank r has computed, for the whole bucket.
Flat gradient_of(const Seat& seat, int r) {
  const std::vector<Index> counts = counts_of_shards(seat);
  const Index all = std::accumulate(counts.begin(), counts.end(), Index{0});
  return random_matrix({seat.seed, static_cast<std::uint64_t>(r)}, 1, all).flat();
}

// The elements of a bucket that the rank at the seat owns.
Flat shard_of(const Seat& seat, const Flat& bucket) {
  const std::vector<Index> counts = counts_of_shards(seat);
  const auto begin = bucket.begin() + std::accumulate(counts.begin(), counts.begin() + seat.place.dp, Index{0});
  return Flat(begin, begin + counts[static_cast<std::size_t>(seat.place.dp)]);
}

Task sum_for_my_shard(SumForMyShard* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Flat gradient = gradient_of(rank, rank.place.dp);
    const std::vector<Index> counts = counts_of_shards(rank);
    return [=, &rank] { return answer("sum", yours(rank.dp(), gradient, counts)); };
  };
  // The serial program adds the gradients of all ranks in the same tree.
  task.reference = [](const Seat& seat) {
    std::vector<Flat> gradients;
    for (int r = 0; r < seat.grid.dp(); ++r) gradients.push_back(gradient_of(seat, r));
    return answer("sum", shard_of(seat, tree_sum(gradients)));
  };
  task.plan = [](const Seat& seat) {
    const std::vector<Index> counts = counts_of_shards(seat);
    const Index mine = counts[static_cast<std::size_t>(seat.place.dp)];
    Plan plan{seat.grid, seat.place, {}};
    plan.take(mine, "the sum");
    plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32,
              std::accumulate(counts.begin(), counts.end(), Index{0}), mine);
    return plan;
  };
  task.looks = [](const Seat& seat) {
    std::vector<Look> looks;
    for (int r = 0; r < seat.grid.dp(); ++r) {
      const Flat shard = shard_of(seat, gradient_of(seat, r));
      looks.push_back(
          {"the gradient of rank " + std::to_string(r) + " alone", Matrix(1, static_cast<Index>(shard.size()), shard)});
    }
    return looks;
  };
  return task;
}

const bool sum_for_my_shard_added = add_exercise("lesson_09_full_step", "sum_for_my_shard", sum_for_my_shard);

}  // namespace
}  // namespace muonwalk::sim
