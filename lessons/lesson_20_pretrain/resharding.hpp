#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/state_form.hpp"
#include "src/comm/communicator.hpp"
#include "src/optim/optimizer.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk {

/// The phase in which a checkpoint is gathered, after compare_states.
namespace phases {
/// A bucket of the weights or of something that is kept comes to rank 0.
constexpr Phase gather_bucket = "gather of a bucket";
}  // namespace phases

/// Gathers a checkpoint on rank 0 of the world, from what each rank's optimizer has saved between two steps. All ranks
/// of `world` call it, and the others get nothing. `model` are the parameters of the whole model, in the order in which
/// the checkpoint is to have them; `stages` are the layouts of the pipeline stages, in order, one for each, in which
/// every parameter lies at least once.
///
/// What moves is what rank 0 lacks, without padding, bucket by bucket: weights, and what is kept as whole buckets, from
/// the first DP rank; shards from all of them; what TP does not cut from the first TP rank. Besides the tensors
/// themselves, rank 0 holds one bucket of what comes in.
///
/// Before that, all ranks compare what they keep. Where the ranks differ in their steps, their optimizer or in what it
/// keeps, or stages that share a parameter (a tied embedding) keep different things of it, every rank throws RunError
/// with the same sentence. That the values of a shared parameter differ is seen by rank 0 alone, which throws RunError
/// when everything has come in. Throws std::invalid_argument, before anything is sent, for layouts that are not the
/// model's, and for a state that is not the rank's.
std::optional<Checkpoint> gather_checkpoint(Communicator& world, const std::vector<Parameter>& model,
                                            const std::vector<Layout>& stages, const Place& place,
                                            const SavedState& saved,
                                            const std::map<std::string, std::string>& notes = {});

/// What gather_checkpoint does on the rank at `place`, as a list, where the ranks of each stage keep what `forms` says,
/// one for each. Memory is counted beyond the saved state itself; the tensors stay on rank 0.
Plan gather_checkpoint_plan(const std::vector<Layout>& stages, const std::vector<StateForm>& forms, const Place& place);

/// What the optimizer on the rank at `place` has to have to go on from a checkpoint, in any layout of the same model:
/// other dp, tp and pp, other owners, other buckets. `layout` is that of the rank's pipeline stage, and `model` are the
/// parameters of the whole model. `optimizer` is started there, with zeros, to see what it keeps; the caller then
/// hands the state to Optimizer::resume.
///
/// Throws UsageError, one sentence that names the file, where the checkpoint is of another model (require_model) or
/// another optimizer, or has less or more of the state of one of the layout's parameters than the optimizer keeps. It
/// needs no other rank, so a program can ask for the first rank of each stage before it starts any. Throws
/// std::invalid_argument for a layout that is not the model's.
SavedState state_of(const Checkpoint& checkpoint, const std::vector<Parameter>& model, const Layout& layout,
                    const Place& place, Optimizer& optimizer);

}  // namespace muonwalk

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

/// Refuses a checkpoint that this training can't go on from, before ranks start. Throws UsageError as state_of does.
void require_resumable(const Checkpoint& checkpoint, const GptTraining& training, const Grid& grid);

}  // namespace muonwalk::sim
