// # Strategy (i)
//
// Take a step of Muon in a way of your own. Every DP rank owns an equal part of each bucket, and what it keeps of the
// optimizer's state is its momentum there.
//
//     context      the layout, my coordinates (context.place), and my groups context.dp and context.tp
//     settings     for the functions of src/optim/steps.hpp, all of which you may call
//     gradients    my own: gradients[0][k] is all of bucket k; their sum over DP ranks is what counts
//     state        state.weights[0][k] and state.momentum[0][k]; change both in place
//
// Weights are whole buckets, the same on all DP ranks; of the momentum I have what I own.
// In the end all DP ranks hold the weights that the serial step has, in every bit, and my momentum. You may send what
// you like to whom you like, as long as no rank sends more bytes than in strategy (a), which gathers every bucket, or
// holds more elements at a time.
#pragma once

#include "src/optim/full_step.hpp"

namespace muonwalk {

using TakeStep = void(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                      MuonState& state);

}  // namespace muonwalk
