#pragma once

#include <string>
#include <vector>

#include "src/numerics/matrix.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// Matrices of a run that are alike. Tables, of which every token has a row, are not among them.
struct RunMatrices : TensorClass {
  std::string name;  ///< "layers.*.up"
  bool muon = true;  ///< Muon takes them, and not AdamW.

  /// The ranks of an expert-parallel group share them out.
  bool expert() const { return kind == TensorKind::expert; }
};

/// What every rank holds of the parameters.
enum class ParameterSharding {
  ddp,    ///< All of it, and of the optimizer's state.
  zero1,  ///< All of it; of the optimizer's state a share.
  fsdp2,  ///< A share along dimension 0 of each, and of the state.
  hsdp    ///< The same within groups, which are replicas of each other.
};

/// Who orthogonalizes what.
enum class Orthogonalizers {
  all,               ///< Every DP rank everything.
  dealt,             ///< Each matrix has one owner.
  owner_all_to_all,  ///< Shards travel to an owner and back.
  sharded_products,  ///< The iteration runs on DTensors: each product is shared out.
  strategy           ///< As one of lesson 16's letters.
};

/// How an owner's result comes to the other ranks.
enum class Return { all_reduce, all_gather, broadcast };

/// A training run as a file describes it (format "muonwalk-run 1").
struct TrainingRun {
  std::string name;                           ///< "12 layers of 768 channels"
  Cluster cluster;                            ///< Its GPU and its links.
  double launch = 0;                          ///< Seconds between one kernel and the next, however small they are.
  double newton_schulz_flops_per_second = 0;  ///< The peak in the type of Newton–Schulz.

  ModelShape model;                   ///< What forward and backward compute.
  std::vector<RunMatrices> matrices;  ///< What the optimizers take, but for the tables.
  double table_parameters = 0;        ///< Embedding and output layer, which AdamW takes.

  double tokens = 0;          ///< Of a step, all ranks together.
  TrainingLayout layout;      ///< The grid, micro-batches, and whether ZeRO-1 shares states out.
  TrainingSoftware software;  ///< As far as time depends on it.
  bool compiled = true;       ///< Elementwise work is fused.
  double weight_bytes = 2, master_bytes = 4, gradient_bytes = 4;  ///< Per parameter.

  ParameterSharding sharding = ParameterSharding::ddp;
  int shard = 1;  ///< How many ranks a parameter lies on, with fsdp2 and hsdp.
  Orthogonalizers who = Orthogonalizers::all;
  Return then = Return::all_gather;
  Strategy strategy = owner_by_work();    ///< Where `who` is one.
  Precision precision = Precision::bf16;  ///< Of Newton–Schulz and of what travels for it.
  int ns_steps = 5;                       ///< Steps of Newton–Schulz.
  bool symmetric = false;                 ///< Of a product that is symmetric, half is computed.
  bool gram = false;                      ///< It runs on the Gram matrix, with a restart after two steps.
  std::vector<std::string> assumed;       ///< What the file left out and was taken, a sentence each.

  bool shards_parameters() const { return sharding == ParameterSharding::fsdp2 || sharding == ParameterSharding::hsdp; }
};

/// The run that a file describes (docs/cost-model.md has its fields). What it leaves out is taken as TrainingRun says
/// in `assumed`. Throws UsageError, one sentence, for a file that can't be read, a field that is missing and can't be
/// known, that is unknown, twice there or of another type, and for a grid that can't be.
TrainingRun read_training_run(const std::string& path);
/// The same of such a file's text; `path` names it in a sentence.
TrainingRun training_run(const std::string& path, const std::string& text);

}  // namespace muonwalk::sim
