#include <algorithm>

#include "lesson_17_overlap.hpp"
#include "lessons/lesson_17_overlap/try_pipelined_gather/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's matrices in buckets of a layer. Element i of bucket k is a number of its own, known to every rank.
Layout buckets_of(const RankInfo& rank) { return lesson_17::layout_of(rank, lesson_17::kWays[2]); }
float number(int bucket, Index i) { return static_cast<float>(1000003 * bucket + i); }

Flat numbers(const Layout& layout, int bucket, Range range) {
  const Index begin = layout.buffers[0].buckets[static_cast<std::size_t>(bucket)].range.begin;
  Flat all(static_cast<std::size_t>(range.size()));
  for (Index i = 0; i < range.size(); ++i) all[static_cast<std::size_t>(i)] = number(bucket, range.begin - begin + i);
  return all;
}

std::string title(int bucket) { return fmt::format("bucket {}", bucket); }

std::vector<NamedMatrix> whole_buckets(const RankInfo& rank) {
  const Layout layout = buckets_of(rank);
  std::vector<NamedMatrix> all;
  for (int k = 0; k < int(layout.buffers[0].buckets.size()); ++k)
    all.push_back(named(numbers(layout, k, layout.buffers[0].buckets[std::size_t(k)].range), title(k))[0]);
  return all;
}

Task pipelined_gather(PipelinedGather* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Layout layout = buckets_of(rank);
    auto shards = std::make_shared<std::vector<Flat>>();
    auto counts = std::make_shared<std::vector<std::vector<Index>>>();
    for (int k = 0; k < int(layout.buffers[0].buckets.size()); ++k) {
      shards->push_back(numbers(layout, k, layout.dp_slice(0, k, rank.place.dp)));
      counts->push_back(layout.dp_counts(0, k));
    }
    return [=, &rank] {
      std::vector<NamedMatrix> seen;
      yours(rank.dp(), *shards, *counts, [&seen](int bucket, const Flat& elements) {
        MemoryMeter uncounted;  // what is kept for the comparison is not the reader's
        const MeterScope scope(uncounted);
        seen.push_back(named(elements, title(bucket))[0]);
      });
      return seen;
    };
  };
  task.reference = whole_buckets;
  // The posts and waits of the lesson's plan. A bucket is taken when it is posted, and given back after its work.
  task.plan = [](const RankInfo& info) {
    const Layout layout = buckets_of(info);
    const MuonSettings fp32 = muon_settings(Precision::fp32, 1, Products::eigen);
    Plan plan{info.grid, info.place, {}};
    Phase phase;
    for (const Operation& operation : overlapped_plan(layout, info.place, fp32, Schedule::pipelined).operations) {
      if (const Work* work = std::get_if<Work>(&operation)) phase = work->phase;
      const bool gathers = phase == phases::dp_gather || phase == phases::await_gather;
      if (gathers && std::holds_alternative<Call>(operation)) plan.operations.push_back(operation);
      const Memory* memory = std::get_if<Memory>(&operation);
      if (memory != nullptr && memory->what == "bucket") plan.operations.push_back(operation);
    }
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    for (const NamedMatrix& bucket : whole_buckets(info)) looks.push_back({bucket.name, bucket.matrix});
    return looks;
  };
  return task;
}

const bool pipelined_gather_added = add_exercise("lesson_17_overlap", "pipelined_gather", pipelined_gather);

}  // namespace
}  // namespace muonwalk::sim
