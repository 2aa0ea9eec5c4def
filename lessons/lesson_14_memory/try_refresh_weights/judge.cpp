#include <cstring>
#include <memory>

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
    const Layout layout = lesson_14::layout(rank, way_of_refresh());
    const Flat all = new_masters(rank);
    const Range own = layout.dp_slice(0, 0, rank.place.dp);
    const Flat masters(all.begin() + own.begin, all.begin() + own.end);
    const std::vector<Index> counts = layout.dp_counts(0, 0);
    auto weights = std::make_shared<FlatOf<bfloat16>>(rounded({{old_masters(rank)}})[0][0]);
    return [=, &rank] {
      yours(rank.dp(), masters, counts, *weights);
      MemoryMeter uncounted;  // for the comparison
      const MeterScope scope(uncounted);
      return answer("weights", widened({{*weights}})[0][0]);
    };
  };
  task.reference = [](const RankInfo& info) { return answer("weights", in_bf16(new_masters(info))); };
  task.plan = [](const RankInfo& info) {
    const Layout layout = lesson_14::layout(info, way_of_refresh());
    Plan plan{info.grid, info.place, {}};
    plan.call("dp", CollectiveKind::all_gather, ElementType::bfloat16, layout.dp_slice(0, 0, info.place.dp).size(),
              layout.buffers[0].buckets[0].range.size());
    return plan;
  };
  task.slices = [](const RankInfo& info) { return info.grid.dp(); };
  task.looks = [](const RankInfo& info) {
    return std::vector<Look>{{"the old weights", in_bf16(old_masters(info))},
                             {"the new masters, cut off, not rounded", cut_off(new_masters(info))}};
  };
  return task;
}

const bool refresh_weights_added = add_exercise("lesson_14_memory", "refresh_weights", refresh_weights);

}  // namespace
}  // namespace muonwalk::sim
