#pragma once

#include "tools/check/explanation.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// 4,096 numbers that stand for many more: sums of elements, dealt out by a hash, with signs. Inner products are kept
/// on average, so the update of one parameter is known again in another's.
class Sketch {
 public:
  Sketch() = default;
  explicit Sketch(const Flat& values);
  bool empty() const { return sums_.empty(); }
  const Flat& sums() const { return sums_; }

 private:
  Flat sums_;
};

/// What is kept of one parameter of one step.
struct Evidence {
  std::string name, role;  ///< Its role is its name without numbers.
  std::vector<std::int64_t> shape;
  Meant meant = Meant::unsaid;
  Blocks blocks;
  Hyper hyper;
  std::int64_t step = 1;
  std::vector<Slices> slices;

  Verdict verdict = Verdict::unknown;
  std::string reason;
  std::optional<Explanation> by;    ///< What explains it, or comes nearest.
  std::optional<Explanation> next;  ///< What comes next, where the nearest isn't sure.
  bool sure = false;                ///< Whether `by` does explain it.
  bool likely = false;              ///< Or would, if others have the same.
  double noise = 0;                 ///< The share of rounding in the step, where it may not be random.
  bool decay_visible = false;       ///< Whether α isn't lost in rounding.
  std::vector<Deviation> deviations;
  Sketch moved, weights, update;  ///< Where nothing explains it: its step, and what a known recipe would have made.
  double momentum_norm = -1;      ///< After the step; −1: the dump doesn't have it.
};

/// Looks at one parameter of one step.
Evidence evidence_of(const ParameterCase& parameter, Habits& habits);

/// What all of them are together.
DumpVerdict verdict_of(std::vector<Evidence> all);

/// What a bug of this kind is, from the catalogue, as the beginning of a sentence. Empty for a kind that isn't in it.
std::string bug_text(const std::string& kind);

}  // namespace muonwalk::check
