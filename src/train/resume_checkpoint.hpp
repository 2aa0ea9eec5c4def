#pragma once

#include "src/optim/optimizer.hpp"
#include "src/train/checkpoint.hpp"

namespace muonwalk {

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
