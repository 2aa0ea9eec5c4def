#include "lesson_02_collectives.hpp"
#include "lessons/lesson_02_collectives/try_ring_all_gather/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kShard = 3;  // elements

Task ring_all_gather(RingAllGather* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(3), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Flat shard = lesson_02::run_of(rank.place.dp, kShard);
    return [=, &rank] { return named(yours(rank.dp(), shard), "all shards"); };
  };
  task.reference = [](const RankInfo& info) {
    Flat all;
    for (int r = 0; r < info.grid.dp(); ++r) {
      const Flat shard = lesson_02::run_of(r, kShard);
      all.insert(all.end(), shard.begin(), shard.end());
    }
    return named(all, "all shards");
  };
  task.plan = [](const RankInfo& info) {
    const int n = info.grid.dp(), me = info.place.dp;
    Plan plan{info.grid, info.place, {}};
    plan.take(n * kShard, "all shards");
    for (int round = 0; round < n - 1; ++round) {
      plan.operations.push_back(Call{"dp", CollectiveKind::send, ElementType::float32, kShard, 0, (me + 1) % n});
      plan.operations.push_back(Call{"dp", CollectiveKind::recv, ElementType::float32, 0, kShard, (me - 1 + n) % n});
      plan.operations.push_back(Call{"dp", CollectiveKind::wait, ElementType::float32, 0, 0, (me + 1) % n});
    }
    return plan;
  };
  task.slices = [](const RankInfo& info) { return info.grid.dp(); };
  return task;
}

const bool ring_all_gather_added = add_exercise("lesson_02_collectives", "ring_all_gather", ring_all_gather);

}  // namespace
}  // namespace muonwalk::sim
