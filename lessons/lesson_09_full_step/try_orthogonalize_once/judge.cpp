#include <algorithm>

#include "lessons/lesson_09_full_step/try_orthogonalize_once/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// Wide, tall, and of which some ranks own nothing; with padding between them and at the end.
Layout layout_once(const RankInfo& rank) {
  LayoutOptions options;
  options.parameter_alignment = 4;
  options.bucket_alignment = 8;
  return plan_layout({{"q", {4, 6}}, {"up", {9, 3}}, {"o", {5, 5}}}, rank.grid, options);
}

// The last rank owns the first matrix, and so on: hardly a rank is the owner of what lies with it.
std::vector<int> owners_once(const RankInfo& rank) {
  std::vector<int> owners;
  for (int p = 0; p < 3; ++p) owners.push_back((2 * rank.grid.dp() - 1 - p) % rank.grid.dp());
  return owners;
}

// My DP shard of the updates, or of what the serial program makes of them.
Flat shard_once(const RankInfo& rank, bool orthogonal) {
  const Layout layout = layout_once(rank);
  Flat shard(layout.dp_slice(0, 0, rank.place.dp).size());
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const RandomTensor key = {rank.seed, static_cast<std::uint64_t>(meta.parameter)};
    Matrix update = random_matrix(key, meta.shape.rows, meta.shape.cols);
    if (orthogonal) update = newton_schulz(update);
    const Flat mine = dp_shard(update, layout, meta, rank.place.dp);
    std::copy(mine.begin(), mine.end(), shard.begin() + layout.local_range(meta, rank.place.dp).begin);
  }
  return shard;
}

Task orthogonalize_once(OrthogonalizeOnce* yours) {
  Task task;
  task.own_design = true;
  task.grids = {Grid().dp(4), Grid().dp(3), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Flat shard = shard_once(rank, false);
    const Layout layout = layout_once(rank);
    const std::vector<int> owners = owners_once(rank);
    return [=, &rank] { return named(yours(rank.dp(), layout, owners, shard), "orthogonal updates"); };
  };
  task.reference = [](const RankInfo& info) { return named(shard_once(info, true), "orthogonal updates"); };
  task.plan = [](const RankInfo& info) {
    const Layout layout = layout_once(info);
    const int me = info.place.dp;
    Plan plan{info.grid, info.place, {}};
    const auto message = [&](CollectiveKind kind, Index count, int peer) {
      const bool out = kind == CollectiveKind::send;
      plan.operations.push_back(Call{"dp", kind, ElementType::float32, out ? count : 0, out ? 0 : count, peer});
    };
    plan.take(layout.dp_slice(0, 0, me).size(), "the result");
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      const int owner = owners_once(info)[meta.parameter];
      const Index mine = layout.owned_range(meta, me).size();
      if (me != owner && mine > 0) {
        message(CollectiveKind::send, mine, owner);
        message(CollectiveKind::recv, mine, owner);
      }
      if (me != owner) continue;
      const Index m = std::min(meta.shape.rows, meta.shape.cols), all = 3 * meta.shape.size() + 2 * m * m;
      plan.take(all, "the matrix, and what Newton–Schulz needs");
      for (const CollectiveKind kind : {CollectiveKind::recv, CollectiveKind::send})
        for (int r = 0; r < info.grid.dp(); ++r)
          if (const Index count = layout.owned_range(meta, r).size(); r != me && count > 0) message(kind, count, r);
      plan.give_back(all, "the matrix, and what Newton–Schulz needs");
    }
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    const Flat before = shard_once(info, false);
    return std::vector<Look>{
        {"my shard of the updates as it came", Matrix(1, static_cast<Index>(before.size()), before)}};
  };
  return task;
}

const bool orthogonalize_once_added = add_exercise("lesson_09_full_step", "orthogonalize_once", orthogonalize_once);

}  // namespace
}  // namespace muonwalk::sim
