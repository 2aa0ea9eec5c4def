#include "lesson_04_dp_gather.hpp"
#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's own bucket, gathered by the lesson's own steps, the last one of them.
std::shared_ptr<lesson_04::Local> last_bucket(Rank& rank) {
  auto local = std::make_shared<lesson_04::Local>();
  lesson_04::start(rank, *local);
  local->bucket_idx = static_cast<int>(lesson_04::plan(rank).buffers[0].buckets.size()) - 1;
  lesson_04::gather_bucket(rank, *local);
  guard_end(local->bucket);
  return local;
}

// The last matrix of that bucket.
DistMeta last_of(const Layout& layout) {
  return layout.buffers[0].parameters[layout.buffers[0].buckets.back().parameters.back()];
}

Task view_in_bucket(ViewInBucket* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const auto local = last_bucket(rank);
    const Layout layout = lesson_04::plan(rank);
    const Index begin = layout.buffers[0].buckets.back().range.begin;
    const DistMeta meta = last_of(layout);
    return [=] { return named(yours(local->bucket, begin, meta), meta.name); };
  };
  task.reference = [](const RankInfo& info) {
    const DistMeta meta = last_of(lesson_04::plan(info));
    return named(lesson_04::matrices_of(info)[meta.parameter].matrix, meta.name);
  };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take(last_of(lesson_04::plan(info)).shape.size(), "the matrix");
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    const Layout layout = lesson_04::plan(info);
    const Index size = last_of(layout).shape.size();
    // What a rank finds that looks at the front: the first matrix, its padding, and perhaps the start of the next.
    const Bucket& bucket = layout.buffers[0].buckets.back();
    const std::vector<NamedMatrix> matrices = lesson_04::matrices_of(info);
    Flat front(size, -1.0f);
    for (const int p : bucket.parameters) {
      const DistMeta& meta = layout.buffers[0].parameters[p];
      for (Index i = 0; i < meta.shape.size(); ++i)
        if (meta.global_range.begin - bucket.range.begin + i < size)
          front[meta.global_range.begin - bucket.range.begin + i] = matrices[p].matrix.flat()[i];
    }
    return std::vector<Look>{{"the first matrix of the bucket, and what lies behind it", Matrix(1, size, front)}};
  };
  return task;
}

const bool view_in_bucket_added = add_exercise("lesson_04_dp_gather", "view_in_bucket", view_in_bucket);

}  // namespace
}  // namespace muonwalk::sim
