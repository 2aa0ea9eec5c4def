// # The schedule 1F1B
//
// Given what a stage can do with one micro-batch, do it for all of them in the order of 1F1B: first some forwards, then
// one forward and one backward in turn, then the backwards that are left.
//
//     stages         how many stages the pipeline has
//     stage          which of them this rank is, from 0
//     micro_batches  how many go through it; there may be fewer than stages
//     forward        goes forward with micro-batch number i: waits for what the stage before sends, if there is one,
//                    keeps the activations, and posts what comes out to the next stage
//     backward       goes backward with it, the other way, and gives its activations up
//
// Call each of the two once for every micro-batch, in the order of their numbers. How many forwards come first depends
// on the stage: as many as it takes until the first gradient can come back, and no more, because each holds
// activations.
#pragma once

#include <functional>

namespace muonwalk {

using MoveOfStage = std::function<void(int micro_batch)>;
using OneFOneB = void(int stages, int stage, int micro_batches, const MoveOfStage& forward,
                      const MoveOfStage& backward);

}  // namespace muonwalk
