#include "lesson_08_dp_shard.hpp"
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// This rank's TP slice of a matrix of the lesson.
Matrix slice_of(const RankInfo& rank, const DistMeta& meta) {
  const Parameter& parameter = lesson_08::kParameters[meta.parameter];
  return named_slice(parameter, lesson_08::orthogonal_of(rank, meta.parameter), rank.grid.tp(), rank.place.tp).matrix;
}

Task my_elements(MyElements* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  // Every matrix of the lesson, also those of which a rank owns nothing.
  task.prepare = [yours](Rank& rank) -> Answer {
    const Layout layout = lesson_08::plan(rank);
    auto slices = std::make_shared<std::vector<Matrix>>();
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      slices->push_back(slice_of(rank, meta));
      guard_end(slices->back().flat());
    }
    const int me = rank.place.dp;
    return [=] {
      std::vector<NamedMatrix> owned;
      for (std::size_t p = 0; p < slices->size(); ++p) {
        const DistMeta& meta = layout.buffers[0].parameters[p];
        owned.push_back(std::move(
            named(yours((*slices)[p], meta.global_range, layout.dp_slice(0, meta.bucket_idx, me)), meta.name)[0]));
      }
      return owned;
    };
  };
  task.reference = [](const RankInfo& info) {
    const Layout layout = lesson_08::plan(info);
    std::vector<NamedMatrix> owned;
    for (const DistMeta& meta : layout.buffers[0].parameters)
      owned.push_back(named(dp_shard(slice_of(info, meta), layout, meta, info.place.dp), meta.name)[0]);
    return owned;
  };
  task.plan = [](const RankInfo& info) {
    const Layout layout = lesson_08::plan(info);
    Plan plan{info.grid, info.place, {}};
    for (const DistMeta& meta : layout.buffers[0].parameters)
      plan.take(layout.owned_range(meta, info.place.dp).size(), "what I own");
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    const Layout layout = lesson_08::plan(info);
    std::vector<Look> looks;
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      const Matrix slice = slice_of(info, meta);
      const Index owned = layout.owned_range(meta, info.place.dp).size();
      const Flat first(slice.flat().begin(), slice.flat().begin() + owned);
      looks.push_back({"the whole slice of " + meta.name, slice});
      if (owned > 0)
        looks.push_back({"as many elements as I own, but from the start of the matrix", Matrix(1, owned, first)});
    }
    return looks;
  };
  return task;
}

const bool my_elements_added = add_exercise("lesson_08_dp_shard", "my_elements", my_elements);

}  // namespace
}  // namespace muonwalk::sim
