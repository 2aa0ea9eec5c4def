#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lessons/lesson_09_full_step/training_files.hpp"
#include "sim/ranks/options.hpp"
#include "src/layout/buffer.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/recipes.hpp"

namespace muonwalk::sim {

/// What is to be trained, as the options of lesson 09 say it.
struct TrainingRequest {
  int steps = 10;           ///< --steps: optimizer steps on random numbers
  bool small = false;       ///< --small: matrices of an eighth of the size
  bool toy = false;         ///< --toy: matrices that can be read number by number
  std::string model;        ///< --model: matrices of a large model, to be planned and not run
  bool plan = false;        ///< --plan: nothing will run
  TrainingFileNames files;  ///< --params, --grads, --out and so on: the reader's own
};

/// The reader's files where they were given; else random numbers for the matrices of the model, or of the proof of
/// concept's own test. Throws UsageError for a number of steps outside of 1 to 1000, for options that go without or
/// against each other, and for all that FileTraining and model_parameters refuse.
std::unique_ptr<Training> requested_training(const TrainingRequest& request, int tp, std::uint64_t seed);

/// What lesson 09 can be asked for besides the options of every lesson. The defaults are the proof of concept's.
struct FullStepRequest {
  MuonSettings muon;          ///< What the options below make of Muon, once it is settled.
  std::string recipe;         ///< --recipe; empty: the proof of concept's
  RecipeArguments asked;      ///< --lr, --momentum, --weight-decay, --ns-steps, --beta2, --cautious, --adjust-lr
  std::optional<double> rms;  ///< --rms
  AdamWSettings adamw;        ///< --adamw-lr and so on: for what is not a hidden matrix
  std::vector<std::string> adamw_for;  ///< --adamw-for: matrices that it steps besides those with a usual name
  bool nesterov = false;               ///< --nesterov
  bool no_nesterov = false;            ///< --no-nesterov
  int bucket_capacity = 0;             ///< --bucket-capacity; 0: one bucket
  int alignment = 1;                   ///< --alignment; 1: no padding
  std::string ownership = "buckets";   ///< --ownership: who owns what of a bucket
  TrainingRequest training;            ///< all others: sizes, steps, the reader's own files

  /// These options, for LessonInfo::options. They write into this struct.
  std::vector<LessonOption> options();
  /// The reader brought their own weights.
  bool own_files() const { return !training.files.params.empty(); }

  /// Makes `muon`, with what the options of every lesson say as well; of the threads each rank knows by itself. Throws
  /// UsageError where the settings make no sense, and where a recipe has no such option.
  void settle(const RankInfo& rank);
  /// Where weights and gradients come from. Throws UsageError for what requested_training refuses.
  std::unique_ptr<Training> data(const RankInfo& rank) const;

  /// Who steps what: usual_groups with the settings that were asked for.
  std::vector<ParameterGroup> groups() const;
  /// The optimizer of all groups, for the parameters of the whole model. Throws UsageError for an --adamw-for that
  /// names no matrix among them.
  std::unique_ptr<GroupedOptimizer> optimizer(const std::vector<Parameter>& parameters) const;
  /// Which class is followed, with which numbers: a line, or none without a recipe.
  std::string recipe_text() const;
  /// A line or more for each group: which parameters its optimizer steps.
  std::string groups_text(const std::vector<Parameter>& parameters) const;

  /// The layout of a pipeline stage, and those of all stages; each group has a buffer. Throws UsageError for what
  /// plan_layout refuses, and where there are more stages than parameters.
  /// @{
  Layout layout(const std::vector<Parameter>& parameters, const Grid& grid, int stage) const;
  std::vector<Layout> layouts(const std::vector<Parameter>& parameters, const Grid& grid) const;
  /// @}

  /// This request with buckets, to compare with; or with one, where they were asked for. Small matrices get small ones.
  FullStepRequest with_other_buckets() const;
  /// "one bucket", "buckets of 50,000 elements".
  std::string buckets_text() const;
};

}  // namespace muonwalk::sim
