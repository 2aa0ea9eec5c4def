#include <algorithm>

#include "lesson_04_dp_gather.hpp"
#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

Task gather_each_bucket(GatherEachBucket* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    auto local = std::make_shared<lesson_04::Local>();
    lesson_04::start(rank, *local);
    const Buffer buffer = lesson_04::plan(rank).buffers[0];
    return [=, &rank] {
      std::vector<NamedMatrix> used;
      yours(rank.dp(), buffer, local->shards, [&used](const DistMeta& meta, const Matrix& matrix) {
        MemoryMeter uncounted;  // what is kept for the comparison is not the reader's
        const MeterScope scope(uncounted);
        used.push_back({meta.name, matrix, 0, 0});
      });
      return used;
    };
  };
  task.reference = [](const RankInfo& info) {
    // By name and value; where a slice lies in its whole is not what this is about.
    std::vector<NamedMatrix> matrices = lesson_04::matrices_of(info);
    for (NamedMatrix& matrix : matrices) matrix.first_row = matrix.first_col = 0;
    return matrices;
  };
  task.plan = [](const RankInfo& info) {
    const Buffer buffer = lesson_04::plan(info).buffers[0];
    Plan plan{info.grid, info.place, {}};
    for (const Bucket& bucket : buffer.buckets) {
      const Index size = bucket.range.size();
      plan.take(size, "the bucket");
      plan.call("dp", CollectiveKind::all_gather, ElementType::float32, size / info.grid.dp(), size);
      for (const int p : bucket.parameters) {
        plan.take(buffer.parameters[p].shape.size(), "a matrix");
        plan.give_back(buffer.parameters[p].shape.size(), "a matrix");
      }
      plan.give_back(size, "the bucket");
    }
    return plan;
  };
  return task;
}

const bool gather_each_bucket_added = add_exercise("lesson_04_dp_gather", "gather_each_bucket", gather_each_bucket);

}  // namespace
}  // namespace muonwalk::sim
