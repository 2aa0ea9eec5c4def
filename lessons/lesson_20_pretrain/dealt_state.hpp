#pragma once

#include <optional>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "src/comm/communicator.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk::sim {

/// Gathers a checkpoint of a trainer on rank 0 (gather_checkpoint). All ranks of `world` call it.
std::optional<Checkpoint> gather_training(Communicator& world, const GptTraining& training, const Grid& grid,
                                          const Place& place, const SavedState& saved);

/// The other way round: rank 0 works out what each rank has to have to go on from a checkpoint (state_of), and sends it
/// to that rank: all weights, then what is kept, then the steps, as one message in float32. The others have no
/// checkpoint. All ranks call it. Throws as state_of does.
SavedState deal_out(Communicator& world, const GptTraining& training, const Grid& grid, const Place& place,
                    const std::optional<Checkpoint>& checkpoint);

/// What these two do on the rank at `place`, as lists.
/// @{
Plan gather_training_plan(const GptTraining& training, const Grid& grid, const Place& place);
Plan deal_out_plan(const GptTraining& training, const Grid& grid, const Place& place);
/// @}

/// Refuses a checkpoint that this training can't go on from on a grid, before any rank is started. Throws UsageError as
/// state_of does.
void require_resumable(const Checkpoint& checkpoint, const GptTraining& training, const Grid& grid);

}  // namespace muonwalk::sim
