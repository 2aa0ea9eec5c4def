#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/numerics/memory_meter.hpp"

namespace muonwalk::check {

/// What a program means to step a parameter with.
enum class Meant { muon, adamw, none, unsaid };

/// AdamW's numbers, as far as the dump has them.
struct AdamwHyper {
  std::optional<double> lr, beta1, beta2, epsilon, weight_decay;
};

/// The hyperparameters of a dump, with those of the parameter in place of the dump's. What is missing is fitted.
struct Hyper {
  std::optional<double> lr, momentum, weight_decay;
  std::optional<bool> nesterov;
  std::optional<int> ns_steps;
  AdamwHyper adamw;
};

/// Parts that a program means to orthogonalize each on its own: along `dim`, of these sizes.
struct Blocks {
  int dim = 0;
  std::vector<std::int64_t> sizes;  ///< Empty: the matrix is meant whole.
};

/// What one rank holds of a parameter: ranges [begin, end) of its row-major elements, in order.
struct Part {
  int rank = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
};

/// One way in which a mesh axis cuts the parameter's weights.
struct Cut {
  std::string axis;  ///< "tp"
  enum Kind { shard, flat, owner } kind = shard;
  int dim = 0;                       ///< Of a shard: the dimension that is cut.
  std::vector<std::int64_t> bounds;  ///< Of a shard: where its parts begin, and the end. Of the whole dimension.
};

/// One tensor of a parameter, whole, put together over ranks. Ranks that repeat it should agree; where they don't,
/// there is more than one version.
struct Assembled {
  std::string dtype;  ///< "F32", "BF16", "F16"; empty: the dump has no such tensor.
  struct Version {
    std::vector<int> ranks;  ///< Those that hold a part of it.
    Flat values;             ///< Row-major, in float32, all elements.
  };
  std::vector<Version> versions;  ///< The first is that of the lowest rank. The same bits in all versions: one version.

  bool there() const { return !versions.empty(); }
  const Flat& values() const { return versions.front().values; }
};

/// What is said of a parameter of one step.
struct Described {
  std::string name;
  std::vector<std::int64_t> shape;  ///< The whole parameter's.
  Meant meant = Meant::unsaid;
  Blocks blocks;
  Hyper hyper;
  std::int64_t step = 1;                          ///< From 1. In step 1 all moments before it are zero.
  std::vector<std::pair<std::string, int>> mesh;  ///< Axes and their sizes, slowest first: rank order is row-major.
  std::vector<Cut> cuts;                          ///< How the weights are cut, in the order of the list.
};

/// One parameter of one step, whole: what the judgement reads.
struct ParameterCase : Described {
  Assembled before, after;  ///< Of the masters where the dump has them, else of the weights.
  bool of_masters = false;  ///< Whether it has.
  Assembled grad;           ///< As each rank's optimizer is handed it.
  Assembled momentum_before, momentum_after, second_before, second_after;
  std::vector<Part> parts;         ///< What each rank holds of the weights.
  std::vector<Part> moment_parts;  ///< The same of the moments, where they are cut otherwise; else empty.
};

}  // namespace muonwalk::check
