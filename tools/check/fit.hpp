#pragma once

#include <vector>

#include "tools/check/cuttings.hpp"

namespace muonwalk::check {

/// What a step was: after − before, and how much of it is rounding of what was stored.
struct Step {
  Flat moved;  ///< D = after − before.
  const Flat* before = nullptr;
  double squares = 0;     ///< ‖D‖².
  double rounding = 0;    ///< The expected squares of the rounding of `after` to its dtype.
  double of_weights = 0;  ///< ‖W‖².
  /// The rounding's share of the step, 0 to more than 1.
  double noise() const;
};
/// `before` must outlive it.
Step step_between(const Flat& before, const Flat& after, const std::string& dtype);

/// D = −α W − Σ β_b O_b, by least squares over one α and a β for each group of elements.
struct Fit {
  double distance = 1;  ///< ‖D + αW + Σ β_b O_b‖ / ‖D + αW‖, both without the expected rounding.
  double alpha = 0, alpha_error = 0;
  std::vector<double> beta;  ///< Of each group.
  std::vector<double> norm;  ///< ‖O_b‖.
  double mean_beta() const;  ///< Of the norm of all.
};

/// Where weights decay.
enum class Decays { everywhere, where_signs_agree };

/// Each block is a group, in the places of its update. `update` is laid out like the parameter.
Fit fit_of(const Step& step, const Flat& update, const std::vector<Block>& groups, Decays decays = Decays::everywhere);
/// The same with all elements in one group, or with those from `begin` to `end`, and the update shifted by `shift`.
/// @{
Fit fit_of(const Step& step, const Flat& update, Decays decays = Decays::everywhere);
Fit fit_of(const Step& step, const Flat& update, const std::vector<std::pair<Index, Index>>& at, Index shift = 0);
/// @}

/// From the sums of one unknown decay and one β for each group.
class FitSums {
 public:
  void next_group() { groups_.emplace_back(); }
  void add(double moved, double weight, double update) {
    Group& g = groups_.back();
    squares_ += moved * moved, count_ += 1, dw_ += moved * weight, ww_ += weight * weight;
    g.moved += moved * update, g.weights += weight * update, g.squares += update * update;
  }
  /// `rounding` is the expected sum of squares of what rounding adds.
  Fit fit(double rounding, bool with_alpha = true) const;

 private:
  struct Group {
    double moved = 0, weights = 0, squares = 0;
  };
  std::vector<Group> groups_;
  double squares_ = 0, dw_ = 0, ww_ = 0, count_ = 0;
};

}  // namespace muonwalk::check
