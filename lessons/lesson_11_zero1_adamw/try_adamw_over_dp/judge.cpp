#include "lesson_11_zero1_adamw.hpp"
#include "lessons/lesson_11_zero1_adamw/try_adamw_over_dp/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk::sim {
namespace {

using lesson_11::kTables;

// The tables' bucket on one rank, before the first step. The ranges that the ranks own are of different sizes here, as
// they would be with buckets that belong to few ranks.
struct Handed {
  std::vector<Index> counts;
  Flat weights, gradients, first_moment, second_moment;
};

std::vector<Index> uneven_counts(Index size, int dp) {
  std::vector<Index> counts(static_cast<std::size_t>(dp), size / (2 * dp));
  for (std::size_t r = 0; r + 1 < counts.size(); ++r) size -= counts[r];
  counts.back() = size;
  return counts;
}

// The gradients of DP rank r.
Handed bucket_of(const RankInfo& rank, int r) {
  lesson_11::Local local;
  local.layout = lesson_11::layout_of(rank);
  local.weights = first_buckets(local.layout, *lesson_11::data, rank.place.tp);
  const std::vector<NamedMatrix> held = lesson_11::held_slices(rank, local);
  Handed bucket;
  bucket.counts = uneven_counts(local.layout.buffers[kTables].size, rank.grid.dp());
  bucket.weights = local.weights[kTables][0];
  bucket.gradients = pack_slices(local.layout, lesson_11::data->own_gradients(0, rank.grid.dp(), r, held))[kTables][0];
  bucket.first_moment = bucket.second_moment = Flat(static_cast<std::size_t>(bucket.counts[rank.place.dp]));
  return bucket;
}

std::vector<NamedMatrix> all_of(Handed& bucket) {
  std::vector<NamedMatrix> all = named(std::move(bucket.weights), "weights");
  all.push_back(std::move(named(std::move(bucket.first_moment), "first moments")[0]));
  all.push_back(std::move(named(std::move(bucket.second_moment), "second moments")[0]));
  return all;
}

// A step on the whole bucket as one process takes it, with the sum of the gradients or with each rank's own; and the
// moments of what this rank owns. With `mine_only`, all other weights stay as they were.
std::vector<NamedMatrix> one_step(const RankInfo& rank, bool summed = true, bool mine_only = false) {
  Handed bucket = bucket_of(rank, rank.place.dp);
  const Flat old = bucket.weights;
  std::vector<Flat> own;
  for (int r = 0; r < rank.grid.dp(); ++r) own.push_back(bucket_of(rank, r).gradients);
  const Flat sum = tree_sum(own);
  AdamWState state = initial_adamw_state(bucket.weights);
  Index at = 0;
  for (int r = 0; r < rank.grid.dp(); ++r) {
    const Index count = bucket.counts[r];
    const Flat& gradient = summed ? sum : own[r];
    adamw(state.weights.data() + at, gradient.data() + at, state.first_moment.data() + at,
          state.second_moment.data() + at, count, 1, adamw_of_try());
    if (r == rank.place.dp) {
      std::copy_n(state.first_moment.begin() + at, count, bucket.first_moment.begin());
      std::copy_n(state.second_moment.begin() + at, count, bucket.second_moment.begin());
    } else if (mine_only) {
      std::copy_n(old.begin() + at, count, state.weights.begin() + at);
    }
    at += count;
  }
  bucket.weights = state.weights;
  return all_of(bucket);
}

Task adamw_over_dp(AdamwOverDp* yours) {
  lesson_11::prepare(Options().rank_info(0));
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    auto bucket = std::make_shared<Handed>(bucket_of(rank, rank.place.dp));
    return [=, &rank] {
      yours(rank.dp(), bucket->weights, bucket->gradients, bucket->counts, bucket->first_moment, bucket->second_moment,
            1, adamw_of_try());
      return all_of(*bucket);
    };
  };
  task.reference = [](const RankInfo& info) { return one_step(info); };
  task.plan = [](const RankInfo& info) {
    const Index size = lesson_11::layout_of(info).buffers[kTables].size;
    const Index mine = uneven_counts(size, info.grid.dp())[static_cast<std::size_t>(info.place.dp)];
    Plan plan{info.grid, info.place, {}};
    plan.take(mine, "the sum");
    plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, size, mine);
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, mine, size);
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    return std::vector<Look>{{"the old weights", all_of(*std::make_unique<Handed>(bucket_of(info, 0)))[0].matrix},
                             {"new only where this rank owns it", one_step(info, true, true)[0].matrix},
                             {"stepped with own gradients, not with their sum", one_step(info, false)[0].matrix}};
  };
  return task;
}

const bool adamw_over_dp_added = add_exercise("lesson_11_zero1_adamw", "adamw_over_dp", adamw_over_dp);

}  // namespace
}  // namespace muonwalk::sim
