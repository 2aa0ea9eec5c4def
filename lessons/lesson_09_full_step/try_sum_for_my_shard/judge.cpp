#include "lesson_09_full_step.hpp"
#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's own layout and gradients, on small matrices. Each matrix belongs to one rank, so shards differ in size.
// To be called before any rank starts, as the lesson's own `prepare`.
void ask_lesson_09() {
  lesson_09::request.training.small = true;
  lesson_09::request.training.steps = 1;
  lesson_09::request.ownership = "matrices";
  if (lesson_09::data == nullptr) lesson_09::data = lesson_09::request.data(Options().rank_info(0));
}

// What a rank owns of a bucket.
Flat shard_of(const RankInfo& rank, const Flat& bucket) {
  const Range mine = lesson_09::layout_of(rank).dp_slice(0, 0, rank.place.dp);
  return Flat(bucket.begin() + mine.begin, bucket.begin() + mine.end);
}

// What DP rank r has computed, for this rank's TP slices, as a whole bucket.
Flat gradient_of(const RankInfo& rank, int r) {
  const Layout layout = lesson_09::layout_of(rank);
  const Buckets weights = first_buckets(layout, *lesson_09::data, rank.place.tp);
  const std::vector<NamedMatrix> held = unpack_buckets(layout, weights, rank.place.tp);
  return pack_slices(layout, lesson_09::data->own_gradients(0, rank.grid.dp(), r, held))[0][0];
}

// The sum as the serial program has it: whole matrices, all leaves in one tree. Of that, this rank's TP slices as a
// bucket.
Flat serial_sum(const RankInfo& rank) {
  const Training& data = *lesson_09::data;
  const auto leaves = data.all_leaves(0, rank.grid.dp(), data.first_weights());
  std::vector<Matrix> slices;
  for (std::size_t p = 0; p < data.parameters().size(); ++p) {
    const Parameter& parameter = data.parameters()[p];
    std::vector<Flat> of_matrix;
    for (const std::vector<Matrix>& leaf : leaves) of_matrix.push_back(leaf[p].flat());
    const Matrix sum(parameter.shape.rows, parameter.shape.cols, tree_sum(of_matrix));
    slices.push_back(named_slice(parameter, sum, rank.grid.tp(), rank.place.tp).matrix);
  }
  return pack_slices(lesson_09::layout_of(rank), slices)[0][0];
}

Task sum_for_my_shard(SumForMyShard* yours) {
  ask_lesson_09();
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    lesson_09::Local local;
    lesson_09::start(rank, local);
    const Flat gradient = lesson_09::own_gradients(rank, local)[0][0];
    const std::vector<Index> counts = local.layout.dp_counts(0, 0);
    return [=, &rank] { return named(yours(rank.dp(), gradient, counts), "sum"); };
  };
  task.reference = [](const RankInfo& info) { return named(shard_of(info, serial_sum(info)), "sum"); };
  task.plan = [](const RankInfo& info) {
    const Layout layout = lesson_09::layout_of(info);
    const Index mine = layout.dp_slice(0, 0, info.place.dp).size();
    Plan plan{info.grid, info.place, {}};
    plan.take(mine, "the sum");
    plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, layout.buffers[0].size, mine);
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    for (int r = 0; r < info.grid.dp(); ++r) {
      const Flat shard = shard_of(info, gradient_of(info, r));
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
