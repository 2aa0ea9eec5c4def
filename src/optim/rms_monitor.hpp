#pragma once

#include <vector>

#include "src/comm/communicator.hpp"
#include "src/layout/buffer.hpp"

namespace muonwalk {

/// Root mean squares of one parameter.
struct ParameterRms {
  double weights = 0;  ///< The root mean square of the weights after the step.
  double update = 0;   ///< The root mean square of what the step took from them, decay not counted.
};

/// Watches the root mean square of weights and updates, parameter by parameter, at a price that a distributed run can
/// afford: every rank adds up squares of what it owns, and one all-reduce per step, of two numbers per parameter, makes
/// them whole. Nothing is gathered. (Where a matrix lies on several ranks, none of them could tell from its own part.)
class RmsMonitor {
 public:
  /// For these parameters, by their numbers.
  explicit RmsMonitor(const std::vector<Parameter>& parameters);

  /// `count` new weights that this rank owns of a parameter, and the sum of squares of their update. Of a parameter
  /// that TP does not cut, every TP rank has the same, and the first one counts.
  void add(const DistMeta& meta, const Place& place, const float* weights, Index count, double squares_of_update);

  /// One all-reduce over `ranks`, who together own every element: the root mean squares of all parameters, the same on
  /// all ranks, for what was added since the last call.
  std::vector<ParameterRms> reduce(Communicator& ranks);

 private:
  std::vector<double> sizes_;
  std::vector<double> squares_;  // of the weights of parameter p at 2 p, of its update at 2 p + 1
};

}  // namespace muonwalk
