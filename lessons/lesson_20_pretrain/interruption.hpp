#pragma once

#include <string>

#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "src/comm/ledger.hpp"
#include "src/optim/optimizer.hpp"
#include "src/train/checkpoint.hpp"

namespace muonwalk::sim {

/// Sets all of the state of one kind in a checkpoint to zero: how moments get lost.
void clear_state(Checkpoint& checkpoint, const std::string& kind);

/// Sets all that is kept besides the weights to zero.
void clear_kept(SavedState& state);

/// What a counter in bfloat16 shows after this many steps, each of which adds 1 and rounds.
int counted_in_bf16(int steps);

/// What the interruption of a run is about, in a line: how many buckets a rank has before it, and after.
std::string interruption_text(const Pretraining& run, const RankInfo& rank);

/// What all checkpoints of one way make a rank send and receive: those that become files, those of the
/// pause and of the step much later, and what is dealt out from them.
Ledger checkpoints_ledger(const Pretraining& run, const TrainingWay& way, const RankInfo& rank);

}  // namespace muonwalk::sim
