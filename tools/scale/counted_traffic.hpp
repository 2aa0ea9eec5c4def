#pragma once

namespace muonwalk::sim {

/// What is counted in the public source of nanotron (models/llama.py, parallel/tensor_parallel/functional.py), kernel
/// by kernel: bytes that one training step reads, writes and keeps. And shares of a peak that others have measured.
/// @{

/// Bytes read and written per token and channel by what is not a product, forward and backward: norms, residuals,
/// copies of queries, keys and values, rotary embedding; and, per channel of the feed-forward half, SwiGLU.
constexpr double kWidthTraffic = 160, kHiddenTraffic = 34;
/// Per score, where attention is not fused: scale and mask, softmax, dropout, in bf16, forward and backward.
constexpr double kScoreTraffic = 22;
/// Per logit: cast to fp32, largest, difference, exponential, sum, quotient, and their gradient.
constexpr double kLogitTraffic = 56;
/// Per parameter and micro-batch: a bf16 gradient is read and added to an fp32 one.
constexpr double kAccumulationTraffic = 12;
/// Per parameter and step, of AdamW: gradients (norm, clipping, clearing), and states, of which ZeRO-1 has a share.
constexpr double kGradientTraffic = 16, kStateTraffic = 30;

/// Bytes kept per parameter: bf16 weight; fp32 gradient; fp32 copy of the weight, and two moments.
constexpr double kWeightBytes = 2, kGradientBytes = 4, kMasterBytes = 4, kMomentBytes = 8;
/// Bytes kept per token and layer, per channel of the width and of the feed-forward half: two norms' fp32 inputs (8),
/// queries, keys, values and attention's output (8), two inputs of products (4); gate, up and their products (8).
constexpr double kWidthActivation = 20, kHiddenActivation = 8;
/// Those two inputs of products, where they are gathered from all TP ranks.
constexpr double kGatheredActivation = 4;
/// Bytes per logit at the peak: bf16, fp32, its softmax, their gradient.
constexpr double kLogitBytes = 14, kBf16Bytes = 2;
/// Bytes per token and channel of the width while one layer is worked on: four gathered tensors in bf16.
constexpr double kWorkingBytes = 8;

/// A TP group's all-gathers and reduce-scatters per layer: two each, forward and backward; and two all-gathers more
/// where gathered inputs are not kept.
constexpr int kTpCollectives = 8, kRegathered = 2;

/// FlashAttention-2 reaches 35 % of an H100's peak (Shah et al., "FlashAttention-3", 2024) on the half of the square
/// that a causal mask leaves; over the whole square that is twice as much.
constexpr double kAttentionEfficiency = 0.70;
/// A copy reaches this share of a GPU's bandwidth (BabelStream on A100 and H100).
constexpr double kMemoryEfficiency = 0.9;
/// @}

}  // namespace muonwalk::sim
