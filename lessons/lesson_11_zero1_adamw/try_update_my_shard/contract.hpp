// # AdamW on my shard
//
// Given the weights of a whole bucket, which of them are mine, and the sum of their gradients, change my weights and my
// moments as step `step` of AdamW does.
//
//     weights        the whole bucket; change those in `mine`, in place, and no others
//     mine           where my DP shard lies in the bucket
//     sum            mine.size() gradients, summed over all ranks
//     first_moment   mine.size() of them; change them in place
//     second_moment  likewise
//     step           t; the first step is 1
//     settings       lr, beta1, beta2, epsilon and weight_decay, as in the lesson
//
// In this order, in float32, since the bits are compared: m ← β₁ m + (1 − β₁) g; v ← β₂ v + (1 − β₂) (g g);
// w ← w (1 − lr · decay) − s m / (√v + ε). What is the same for all elements is computed before: 1 − lr · decay in
// float32, and s = lr √(1 − β₂ᵗ) / (1 − β₁ᵗ) in double, the powers by multiplying t times, and then rounded to float32.
// Nothing is sent, and nothing more is held.
#pragma once

#include "src/layout/parameter.hpp"
#include "src/optim/adamw.hpp"

namespace muonwalk {

using UpdateMyShard = void(Flat& weights, Range mine, const Flat& sum, Flat& first_moment, Flat& second_moment,
                           int step, const AdamWSettings& settings);

}  // namespace muonwalk
