#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/optim/adamw.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

/// Which parameters a group claims. What counts is the whole tensor, before anything cuts it: a rank's shard of a
/// matrix is a range of elements, in which no matrix can be recognized.
struct Claim {
  int dims = 0;                     ///< 2: matrices; 1: vectors and others (Parameter::dims); 0: both
  std::vector<std::string> names;   ///< whose name one of these patterns matches ("*embed*"); empty: of any name
  std::vector<std::string> except;  ///< Patterns that no name of the group matches.

  /// Whether all of that is true of `whole`.
  bool holds(const Parameter& whole) const;
};

/// Parameters that one optimizer steps, with its own settings: the `param_groups` of PyTorch.
struct ParameterGroup {
  std::string name;                                  ///< "hidden matrices"
  Claim claim;                                       ///< what belongs to it
  std::function<std::unique_ptr<Optimizer>()> make;  ///< Makes its optimizer, as often as somebody needs one.
};

/// The same parameters, each with the number of the group that claims it (Parameter::group), so that a layout gives
/// each group a buffer. Throws UsageError, a sentence that names the parameter, where no group claims it, or two do.
std::vector<Parameter> route(std::vector<Parameter> parameters, const std::vector<ParameterGroup>& groups);

/// Names of embeddings and output layers in use: matrices by their shape, but tables of vectors, one per token.
std::vector<std::string> usual_outer_layers();

/// The number of the first of the usual groups, that of Muon's.
constexpr int kHiddenMatrices = 0;

/// The groups that are usual: "hidden matrices" to Muon; "embeddings and output", the matrices with one of the names of
/// `outer_layers`, to AdamW (ZeRO-1); and "vectors", biases and gains of norms, to AdamW without weight decay.
std::vector<ParameterGroup> usual_groups(const MuonSettings& muon, const AdamWSettings& adamw,
                                         const std::vector<std::string>& outer_layers = usual_outer_layers());

/// An optimizer made of several: each group's own steps the buffer of its group, one after the other. So its plan is
/// the plans of all, one after the other, after what all of them are handed and keep.
class GroupedOptimizer : public Optimizer {
 public:
  /// `parameters` are those of the whole model, routed; the reference needs to know which group each of them has.
  /// Throws std::invalid_argument where one group's optimizer takes summed gradients and another's does not.
  GroupedOptimizer(const std::vector<ParameterGroup>& groups, const std::vector<Parameter>& parameters);

  /// "Muon + ZeRO-1 AdamW".
  std::string name() const override;
  /// Takes a layout that was planned from routed parameters; throws std::invalid_argument for a group that it has not.
  void start(const Layout& layout, const Place& place, Buckets weights) override;
  /// The observer is told of matrices as they lie in their group's own layout (Layout::of_group).
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;
  BucketsView weights() const override;
  bool takes_summed_gradients() const override;
  /// Those of all groups.
  void scale_learning_rates(float factor) override;
  /// Throws std::invalid_argument for a parameter that it was not made with.
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override;

 protected:
  /// That of all groups, in the order of the buffers.
  StateTensors state_tensors() override;

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // [group]
  std::vector<int> started_;                            // groups that have a buffer, in the order of the buffers
  std::map<std::string, int> group_of_;                 // by the parameter's name
};

}  // namespace muonwalk
