#include "sim/lesson_20/interruption.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::string interruption_text(const Pretraining& run, const Seat& seat) {
  const GptTraining& training = run.ways[0].training;
  const auto owned = [&](const GptTraining& in_layout) {
    const Layout layout = stage_layout(in_layout, seat.grid, seat.place.pp);
    std::int64_t buckets = 0;
    for (int b = 0; b < static_cast<int>(layout.buffers.size()); ++b)
      buckets += static_cast<std::int64_t>(layout.buffers[static_cast<std::size_t>(b)].buckets.size());
    return count_text(buckets, "bucket");
  };
  std::string text;
  for (const std::string& line : wrap_text(
           fmt::format("pause   after step {} a checkpoint is gathered, and the run goes on from it in another layout: "
                       "rank {} owns shards of {} before, and of {} behind",
                       run.pause, seat.place.rank, owned(training), owned(run.ways[0].rearranged)),
           8))
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace muonwalk::sim
