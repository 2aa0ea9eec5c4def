#pragma once

#include "tools/check/explanation.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// What is kept of one parameter of one step.
struct Evidence : Described {
  std::string role;  ///< Its name without numbers.
  ParameterVerdict told;
  std::optional<Explanation> by;  ///< What explains it, or comes nearest.
  bool sure = false;              ///< Whether it does explain it.
  bool likely = false;            ///< Or would, if others have the same.
  double noise = 0;               ///< The share of rounding in the step, where it may not be random.
  bool decay_visible = false;     ///< Whether α isn't lost in rounding.
  double rate = 1;                ///< The learning rate that is seen, in those of hyper.
  bool lawful = true;             ///< As in its Moments.
  std::vector<Claim> deviations;
  /// Of one that nothing explains, some elements before and after the step, and of what a known recipe makes.
  std::array<Flat, 3> sampled;
};

/// Judges a dump, parameter by parameter. What it keeps of one is small (fits and distances), whatever its size, so a
/// caller needs to hold one ParameterCase at a time.
class Judge {
 public:
  /// `threads` are those of the products of matrices; they change no verdict.
  explicit Judge(int threads = 1) { habits_.threads = threads; }

  /// Looks at one parameter of one step: what stepped it, in which direction, how far. Parameters come in any order,
  /// but the smallest first is fastest: what explains a matrix is tried first on later ones. Steps come in their order.
  void add(const ParameterCase& parameter);

  /// What all of them are together: the laws of α and β over their shapes, and what deviates. The parameters of a
  /// verdict have the order in which they were first added; of several steps, each has its worst.
  DumpVerdict verdict() const;

 private:
  Habits habits_;
  std::vector<Evidence> all_;
};

}  // namespace muonwalk::check
