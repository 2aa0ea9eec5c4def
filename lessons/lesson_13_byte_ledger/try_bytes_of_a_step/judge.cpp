#include "lesson_13_byte_ledger.hpp"
#include "lessons/lesson_13_byte_ledger/try_bytes_of_a_step/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// In bf16 and in float32, of the lesson's small matrices, in one bucket, and in several of which ranks own unequal
// parts.
struct Asked {
  Precision precision;
  Index bucket_capacity;
  Ownership ownership;
};
constexpr Asked kAsked[] = {{Precision::bf16, 0, Ownership::buckets},
                            {Precision::fp32, 0, Ownership::buckets},
                            {Precision::bf16, 3000, Ownership::buffer},
                            {Precision::fp32, 3000, Ownership::buffer}};

Layout layout_asked(const Grid& grid, const Asked& asked) {
  LayoutOptions options;
  options.bucket_capacity = asked.bucket_capacity;
  options.ownership = asked.ownership;
  return plan_layout(small_published_run_parameters(), grid, options);
}

// For each of what is asked, the number that `bytes` gives.
template <class Bytes>
Matrix all_of(const RankInfo& rank, const Bytes& bytes) {
  Matrix all(1, std::size(kAsked));
  for (Index i = 0; i < all.cols(); ++i)
    all(0, i) = static_cast<float>(bytes(layout_asked(rank.grid, kAsked[i]), kAsked[i]));
  return all;
}

SentBytes planned_for(const RankInfo& rank, const Layout& layout, const Asked& asked) {
  return muonwalk::sim::planned(contenders()[asked.precision == Precision::bf16 ? muon_bf16 : muon_fp32], layout,
                                rank.place);
}

// What everybody in a TP group would send if it took part in the gather of every matrix.
Index every_slice(const Layout& layout, const Asked& asked) {
  Index elements = 0;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters)
      if (meta.tp_split_dim != SplitDim::none) elements += meta.shape.size() * (layout.grid.tp() - 1);
  return elements * (asked.precision == Precision::bf16 ? 2 : 4);
}

Task bytes_of_a_step(BytesOfAStep* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().tp(2)};
  task.prepare = [yours](Rank& rank) -> Answer {
    return [=, info = static_cast<const RankInfo&>(rank)] {
      MemoryMeter uncounted;  // the numbers as a matrix, for the comparison
      const MeterScope scope(uncounted);
      return named(all_of(info, [&](const Layout& layout, const Asked& asked) {
        return yours(layout, info.place, asked.precision == Precision::bf16 ? 2 : 4);
      }));
    };
  };
  task.reference = [](const RankInfo& info) {
    return named(all_of(
        info, [&](const Layout& layout, const Asked& asked) { return planned_for(info, layout, asked).total(); }));
  };
  task.looks = [](const RankInfo& info) -> std::vector<Look> {
    return {{"the number with TP gathers of matrices of which this rank owns nothing",
             all_of(info,
                    [&](const Layout& layout, const Asked& asked) {
                      const SentBytes sent = planned_for(info, layout, asked);
                      return sent.total() - sent.slices + every_slice(layout, asked);
                    })},
            {"the number for everything in elements of one size",
             all_of(info, [&](const Layout& layout, const Asked& asked) {
               const SentBytes sent = planned_for(info, layout, asked);
               const Index kept = sent.gradients + sent.weights;
               return sent.gathers() + (asked.precision == Precision::bf16 ? kept / 2 : kept);
             })}};
  };
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  return task;
}

const bool bytes_of_a_step_added = add_exercise("lesson_13_byte_ledger", "bytes_of_a_step", bytes_of_a_step);

}  // namespace
}  // namespace muonwalk::sim
