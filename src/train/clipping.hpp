#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/numerics/exact_sum.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

// Gradients are clipped by the norm of all of them at once (Pascanu et al., "On the difficulty of training recurrent
// neural networks", 2013). Nobody holds all of them, so before any step begins: gradients are summed over DP ranks,
// every rank adds up the squares of what it has to count, the sums go to everybody, and everybody multiplies its shards
// by one factor. The sum of squares has no order (ExactSum), so the norm has the same bits on every grid.

/// Between the backward pass and the step of the optimizer.
namespace phases {
/// Each announced to the observer as it begins.
/// @{
constexpr Phase gradient_norm = "norm of gradients";
constexpr Phase clip = "clipping";
/// @}
}  // namespace phases

/// Reduce-scatters this rank's own `gradients` (whole buckets), bucket by bucket, as full_step does: its DP shards of
/// their sum over DP ranks, padding included. Optimizers take them with `summed_gradients`. Throws as require_fitting
/// does.
Buckets reduced_shards(const StepContext& context, const BucketsView& gradients);

/// Appends what that does to a plan that already holds the gradients. It ends with the shards held as "summed
/// gradients".
void plan_reduced_shards(Plan& plan, const Layout& layout);

/// The squares of what the rank at `place` has to count of its shards, so that every element of the model is counted on
/// one rank: no padding; a parameter that TP does not cut, which all ranks of a TP group hold, on TP rank 0 alone; and
/// none of the parameters that `not_mine` names, because another stage counts them, as with the second copy of a tied
/// embedding. Throws std::out_of_range where the layout has no parameter of such a name.
ExactSum squares_of_shards(const Layout& layout, const Place& place, const BucketsView& shards,
                           const std::set<std::string>& not_mine = {});

/// The root of the sum of what all ranks have counted, the same bits on all of them: NaN where one has counted a NaN or
/// an infinity. `world` is the group of all ranks. The sum is rounded to double once, and its root once more.
double norm_of_all(Communicator& world, const ExactSum& mine);

/// What gradients are multiplied by: min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it. It is
/// computed in double and rounded to float32 once. Throws UsageError where max_norm is not above 0, or the norm is not
/// finite; all ranks have the same norm, so all of them throw.
float clip_factor(double norm, float max_norm);

/// Multiplies every element by a factor, also where it is 1: one product in float32 for each.
void scale_shards(Buckets& shards, float factor);

/// Counts, asks all ranks, and multiplies every element of `shards` by clip_factor, also where it is 1: one product in
/// float32 for each. Returns the norm before that, in which the squares of what this rank has to count in other layouts
/// are counted too (`other_layouts`). `world` is the group of all ranks of the layout's grid, over all pipeline stages;
/// throws std::invalid_argument where it is not, and as require_fitting and the functions above do.
double clip_shards(const StepContext& context, Communicator& world, float max_norm,
                   const std::set<std::string>& not_mine, Buckets& shards, const ExactSum& other_layouts = {});

/// Appends what that does on the plan's rank, which has this many elements of its shards in other layouts.
void plan_clip_shards(Plan& plan, const Layout& layout, const std::set<std::string>& not_mine,
                      Index in_other_layouts = 0);

// The same on one process: whole gradients, summed already (summed_gradient), one matrix for each parameter.

/// The norm of all of them.
double norm_of_gradients(const std::vector<Matrix>& gradients);

/// Multiplies all of them by clip_factor; returns the norm before that.
double clip_gradients(std::vector<Matrix>& gradients, float max_norm);

}  // namespace muonwalk
