#include "lessons/lesson_20_pretrain/interruption.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_20_pretrain/dealt_state.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

void clear_state(Checkpoint& checkpoint, const std::string& kind) {
  for (SavedParameter& parameter : checkpoint.parameters) {
    const auto found = parameter.state.find(kind);
    if (found != parameter.state.end()) found->second = Matrix(found->second.rows(), found->second.cols());
  }
}

void clear_kept(SavedState& state) {
  for (SavedBuckets& kept : state.kept)
    for (std::vector<Flat>& buffer : kept.buckets)
      for (Flat& bucket : buffer) std::fill(bucket.begin(), bucket.end(), 0.0f);
}

int counted_in_bf16(int steps) {
  float count = 0;
  for (int i = 0; i < steps; ++i) {
    count += 1;
    round_to_bf16(&count, 1);
  }
  return static_cast<int>(count);
}

std::string interruption_text(const Pretraining& run, const RankInfo& rank) {
  const GptTraining& training = run.ways[0].training;
  const auto owned = [&](const GptTraining& in_layout) {
    const Layout layout = stage_layout(in_layout, rank.grid, rank.place.pp);
    std::int64_t buckets = 0;
    for (int b = 0; b < static_cast<int>(layout.buffers.size()); ++b)
      buckets += static_cast<std::int64_t>(layout.buffers[static_cast<std::size_t>(b)].buckets.size());
    return count_text(buckets, "bucket");
  };
  return fmt::format("pause   after step {}, at a checkpoint; rank {} has {} before, {} after", run.pause,
                     rank.place.rank, owned(training), owned(run.ways[0].rearranged));
}

Ledger checkpoints_ledger(const Pretraining& run, const TrainingWay& way, const RankInfo& rank) {
  Ledger all;
  const auto gather = [&](const GptTraining& training) {
    all.add(ledger_of(gather_training_plan(training, rank.grid, rank.place)), 1);
  };
  const auto deal = [&](const GptTraining& training) {
    all.add(ledger_of(deal_out_plan(training, rank.grid, rank.place)), 1);
  };
  if (!way.resume_from.empty()) deal(training_behind(run, way, way.done));
  for (int step = way.done + 1; step <= run.steps; ++step) {
    const GptTraining& training = training_behind(run, way, step - 1);
    if (run.saves(step)) gather(training);
    if (step == run.pause) {
      gather(training);
      deal(way.rearranged);
    }
  }
  gather(way.rearranged);  // much later
  deal(way.rearranged);
  return all;
}

}  // namespace muonwalk::sim
