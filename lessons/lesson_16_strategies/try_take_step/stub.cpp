// fails: It is the old weights
#include <algorithm>

#include "lessons/lesson_16_strategies/try_take_step/contract.hpp"

using namespace muonwalk;

void take_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
               MuonState& state) {
  // Your code goes here. context.layout.buffers[0].buckets are the buckets, and layout.dp_counts(0, k) says how many
  // elements of bucket k each DP rank owns.
}
