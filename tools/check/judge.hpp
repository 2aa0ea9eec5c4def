#pragma once

#include <memory>

#include "tools/check/parameter_case.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// Judges a dump, parameter by parameter. What it keeps of one is small (fits, distances, sketches of at most 4,096
/// numbers), whatever its size, so a caller needs to hold one ParameterCase at a time.
class Judge {
 public:
  /// `threads` are those of the products of matrices; they change no verdict.
  explicit Judge(int threads = 1);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Looks at one parameter of one step: what stepped it, in which direction, how far. Parameters come in any order,
  /// but the smallest first is fastest: what explains a matrix is tried first on later ones. Steps come in their order.
  void add(const ParameterCase& parameter);

  /// What all of them are together: the laws of α and β over their shapes, and what deviates. The parameters of a
  /// verdict have the order in which they were first added; of several steps, each has its worst.
  DumpVerdict verdict() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muonwalk::check
