#pragma once

#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/stage_filling.hpp"

namespace muonwalk::sim {

/// The rates at which a layout works, all of them reached, none a peak.
struct StepRates {
  double product_flops = 0;         ///< FLOP/s of matrix products
  double efficiency = 0;            ///< share of the peak that product_flops is
  bool efficiency_outside = false;  ///< it was read from a curve, outside of its range …
  double efficiency_nearest = 0;    ///< … and this product, in FLOPs, is the nearest that was measured
  double attention_flops = 0;       ///< FLOP/s of fused attention, over the whole square
  double score_traffic = 0;         ///< bytes per score of attention, 0 where that is fused
  double memory = 0;                ///< B/s
  double stage_link = 0;            ///< B/s from one stage to the next, per rank
  double tp_link = 0;               ///< B/s per rank of a TP group
  double dp_link = 0;               ///< B/s per rank of a DP group, which shares the links out of its nodes
  double tie_link = 0;              ///< B/s per rank, between the two copies of a tied table
  double expert_link = 0;           ///< B/s per rank of an EP group
  double tp_nodes = 1;              ///< that one TP group takes
  double dp_nodes = 1;              ///< that one DP group takes
  double hop_seconds = 0;           ///< per layer: latency of the TP ring, 0 inside of a node
  double floor_seconds = 0;         ///< per layer: the host
  double group_wait_seconds = 0;    ///< per collective of a DP group
  bool slow_path = false;           ///< what floor_seconds says
  int tp_collectives = 0;           ///< per layer, forward and backward
};

/// The rates of a layout. Peak and memory are the accelerator's, links the cluster's; shares of them the software's.
StepRates step_rates(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                     const TrainingSoftware& software);

/// What one stage needs: for one micro-batch, forward and backward, and once per step. Seconds.
struct StageTimes {
  Stage stage;            ///< what it holds
  double parameters = 0;  ///< on each of its ranks

  /// Of a micro-batch, one after the other.
  /// @{
  double products = 0;         ///< of its layers
  double attention = 0;        ///< scores and mixing
  double elementwise = 0;      ///< norms, residuals, activations, rotary embedding
  double tp_transfer = 0;      ///< all-gathers and reduce-scatters of activations
  double tp_latency = 0;       ///< hops between nodes
  double expert_transfer = 0;  ///< tokens to their experts and back
  double accumulation = 0;     ///< bf16 gradients are added to fp32 ones
  double head = 0;             ///< the product that gives logits
  double loss = 0;             ///< of logits
  double next_stage = 0;       ///< activations to the next stage, gradients back
  double host = 0;             ///< to launch all of it; at the same time
  /// @}

  /// Once per step, after the last micro-batch's backward pass, or behind it.
  /// @{
  double all_reduce = 0;  ///< of fp32 gradients, while the last backward pass runs
  double all_gather = 0;  ///< of bf16 weights, with ZeRO-1
  double optimizer = 0;   ///< AdamW and the norm of gradients
  double tied_table = 0;  ///< the sum over the two copies of a tied table
  /// @}

  /// What the accelerator needs for a micro-batch.
  double accelerator() const;
  /// What a micro-batch takes: the longer of accelerator and host.
  double slot() const { return accelerator() > host ? accelerator() : host; }
  /// What of the all-reduce is not hidden behind the backward pass, two thirds of a slot.
  double exposed_all_reduce() const;
  /// What comes after the last micro-batch.
  double tail() const { return exposed_all_reduce() + all_gather + optimizer + tied_table; }
};

/// All stages of a layout, in order. The formulas stand in training_seconds' terms.
std::vector<StageTimes> stage_times(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                                    const TrainingSoftware& software);

}  // namespace muonwalk::sim
