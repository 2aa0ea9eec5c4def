#pragma once

#include <cstdint>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk::test {

/// A small counter-based source of choices, so that a seed means the same case on every machine.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : seed_(seed) {}
  /// An integer from `low` to `high`, both included.
  Index between(Index low, Index high);
  bool yes(int percent) { return between(1, 100) <= percent; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<Index>(values.size()) - 1))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

/// One training run in small: what is laid out, how, and what the optimizer is told.
struct Case {
  std::uint64_t seed = 0;
  std::vector<Parameter> parameters;
  Grid grid;
  LayoutOptions options;
  MuonSettings settings;
  int steps = 2;
  std::vector<float> rates = {};  ///< a factor of the learning rates for each step; empty: they stay as they are

  Layout layout() const { return plan_layout(parameters, grid, options); }
  /// The first weights, the same for every grid.
  std::vector<NamedMatrix> weights() const;
  /// Leaf number `leaf` of the gradients at step `step`, one per parameter: every leaf is another.
  std::vector<Matrix> gradients(int step, int leaf) const;
  /// In one line, for failures.
  std::string text() const;
};

/// Any dp and tp from 1 to 4; one to six matrices of 1 to 40 rows and columns in up to three groups, often with one row
/// or column; TP along any dimension that it divides; bucket capacities from 0 over tiny to large; odd and even
/// alignments.
Case random_case(std::uint64_t seed);

/// Pointers to the matrices, as pack_buckets takes them.
std::vector<const Matrix*> pointers(const std::vector<NamedMatrix>& matrices);
std::vector<const Matrix*> pointers(const std::vector<Matrix>& matrices);

}  // namespace muonwalk::test
