#include <cstring>
#include <memory>
#include <numeric>

#include "lesson_14_memory.hpp"
#include "lessons/lesson_14_memory/try_refresh_weights/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

const lesson_14::Way& way_of_refresh() { return lesson_14::kWays.back(); }

// The first bucket of the lesson's hidden matrices before the step, as float32.
Flat old_masters(const RankInfo& rank) {
  return first_buckets(lesson_14::layout(rank, way_of_refresh()), *lesson_14::data, rank.place.tp)[0][0];
}

// A step of any optimizer: what changes is that all numbers are others, most of them in the last bits of bfloat16.
Flat new_masters(const RankInfo& rank) {
  Flat masters = old_masters(rank);
  for (float& master : masters) master *= 1.01f;
  return masters;
}

// How many elements each rank owns: unequal numbers, as where buckets belong to few ranks.
std::vector<Index> uneven_counts(const RankInfo& rank) {
  std::vector<Index> counts = lesson_14::layout(rank, way_of_refresh()).dp_counts(0, 0);
  for (std::size_t r = 0; r + 1 < counts.size(); ++r) {
    const Index moved = counts[r] / (static_cast<Index>(r) + 2);
    counts[r] -= moved, counts[r + 1] += moved;
  }
  return counts;
}

Matrix in_bf16(Flat values) {
  const Index count = static_cast<Index>(values.size());
  round_to_bf16(values.data(), count);
  return Matrix(1, count, std::move(values));
}

Matrix cut_off(Flat values) {
  for (float& value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xffff0000u;
    std::memcpy(&value, &bits, sizeof bits);
  }
  const Index count = static_cast<Index>(values.size());
  return Matrix(1, count, std::move(values));
}

Task refresh_weights(RefreshWeights* yours) {
  lesson_14::prepare(Options().rank_info(0));
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Flat all = new_masters(rank);
    const std::vector<Index> counts = uneven_counts(rank);
    const auto own = all.begin() + std::accumulate(counts.begin(), counts.begin() + rank.place.dp, Index{0});
    const Flat masters(own, own + counts[rank.place.dp]);
    auto weights = std::make_shared<FlatOf<bfloat16>>(rounded({{old_masters(rank)}})[0][0]);
    return [=, &rank] {
      yours(rank.dp(), masters, counts, *weights);
      MemoryMeter uncounted;  // for the comparison
      const MeterScope scope(uncounted);
      return named(widened({{*weights}})[0][0], "weights");
    };
  };
  task.reference = [](const RankInfo& info) { return named(in_bf16(new_masters(info)), "weights"); };
  task.plan = [](const RankInfo& info) {
    const Layout layout = lesson_14::layout(info, way_of_refresh());
    Plan plan{info.grid, info.place, {}};
    plan.call("dp", CollectiveKind::all_gather, ElementType::bfloat16, uneven_counts(info)[info.place.dp],
              layout.buffers[0].buckets[0].range.size());
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    return std::vector<Look>{{"the old weights", in_bf16(old_masters(info))},
                             {"the new masters, cut off, not rounded", cut_off(new_masters(info))}};
  };
  return task;
}

const bool refresh_weights_added = add_exercise("lesson_14_memory", "refresh_weights", refresh_weights);

}  // namespace
}  // namespace muonwalk::sim
