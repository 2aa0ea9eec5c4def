#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/errors.hpp"
#include "src/io/safetensors.hpp"
#include "tools/check/parameter_case.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// A number that is NaN or infinite in what a step is given; no step can be judged with it.
struct NotFiniteError : UsageError {
  using UsageError::UsageError;
};

/// One way in which an axis of the mesh cuts or repeats a parameter, as one rank has written it.
struct Placement {
  enum Kind { shard, flat, owner, replicate } kind = replicate;
  std::size_t axis = 0;             ///< Its index in the mesh.
  std::int64_t dim = 0;             ///< Of a shard: the dimension that is cut. Of an owner: its rank on the axis.
  std::int64_t begin = 0, end = 0;  ///< Of a flat part: the elements of what the axes before it left.
};

/// The tensors of a parameter that are cut alike.
enum class Role { weights, grad, moments };

/// A tensor that a dump may have of each parameter, before those that follow from it.
struct CaseTensor {
  const char* name;  ///< "before"
  Role role;
  Assembled ParameterCase::*of;
  bool given;  ///< Whether it goes into the step.
};
constexpr CaseTensor kCaseTensors[] = {{"before", Role::weights, &ParameterCase::before, true},
                                       {"momentum_before", Role::moments, &ParameterCase::momentum_before, true},
                                       {"second_before", Role::moments, &ParameterCase::second_before, true},
                                       {"grad", Role::grad, &ParameterCase::grad, true},
                                       {"momentum_after", Role::moments, &ParameterCase::momentum_after, false},
                                       {"second_after", Role::moments, &ParameterCase::second_after, false},
                                       {"after", Role::weights, &ParameterCase::after, false}};

/// Who holds which elements of a parameter's tensors.
struct Holdings {
  std::vector<Part> parts;                        ///< What each rank holds, by rank.
  std::vector<std::vector<std::int64_t>> shapes;  ///< What the tensor of each rank has to look like.
  std::vector<std::vector<int>> copies;           ///< Ranks that hold every element once together; one for each copy.
};

/// A parameter as all ranks describe it.
struct DumpedParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  Meant meant = Meant::unsaid;
  Blocks blocks;
  Hyper hyper;
  std::vector<std::array<std::vector<Placement>, 3>> placements;  ///< By rank, by role.
};

/// A parameter put together, and what its bits alone say.
struct ReadParameter {
  ParameterCase parameter;
  std::vector<Finding> findings;  ///< replicas_differ, not_finite, and weights that aren't their masters, rounded.
};

/// Equal length and equal bits.
bool same_bits(const Flat& left, const Flat& right);

/// "[3, 17]": the place of a row-major element of that shape.
std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t element);

/// Axes of the ranks and their sizes, slowest first: rank order is row-major in it.
using Mesh = std::vector<std::pair<std::string, int>>;

/// One step of a dump: the files of all ranks, open, and of them only the headers in memory. What throws UsageError
/// says in one sentence which file, rank, parameter or element is wrong.
class DumpedStep {
 public:
  std::int64_t step = 1;
  Mesh mesh;
  std::string framework;
  std::vector<DumpedParameter> parameters;

  int world() const { return static_cast<int>(ranks_.size()); }
  /// The parameter of that name, or null.
  const DumpedParameter* find(const std::string& name) const;
  /// How the tensors of a role are cut. Throws UsageError where an element is on no rank of a copy, or on two.
  Holdings holdings(const DumpedParameter& parameter, Role role) const;
  /// How the mesh cuts its weights.
  std::vector<Cut> cuts(const DumpedParameter& parameter) const;
  /// What a rank has written under "after/NAME": nothing where there is no such tensor, or an empty one. Throws
  /// UsageError where its shape isn't the one that `holdings` gives it.
  std::optional<Flat> part(const std::string& tensor, int rank, const Holdings& holdings) const;
  /// A tensor ("after") of a parameter, whole: every element once, and a version for each copy with other bits. Throws
  /// UsageError where only some of the ranks that should have a part of it do, or have it in another type.
  Assembled assembled(const DumpedParameter& parameter, const std::string& tensor, const Holdings& holdings) const;
  /// The parameter with all its tensors; at most one more of them is in memory meanwhile. Throws UsageError as above,
  /// without weights, and for moments before step 1; NotFiniteError for NaN and infinity in what the step was given.
  ReadParameter read(const DumpedParameter& parameter) const;

 private:
  struct Tensor {
    const SafetensorsReader* file;
    std::size_t index;
  };
  struct Rank {
    std::vector<std::shared_ptr<const SafetensorsReader>> files;
    std::unordered_map<std::string, Tensor> tensors;
  };
  friend class DumpReader;
  std::vector<Rank> ranks_;
  std::int64_t stored_ = 0;  // elements in all tensors of all ranks

  // The tensor without its bytes; null where the rank has none, or an empty one.
  const StoredTensor* header(const std::string& tensor, int rank) const;
  [[noreturn]] void refuse(const std::string& why) const;
};

/// Reads a dump as docs/dump-format.md describes it: folders with a file for each rank and step, or such files. Steps
/// come in their order. Throws UsageError, one sentence, for what isn't such a dump, and for ranks that are missing.
std::vector<DumpedStep> read_dump(const std::vector<std::string>& paths);

/// One step of one process from safetensors files of the same names of parameters: {"before", path}, {"grad", path},
/// {"after", path}, and also "momentum_before" and the like. `hyper` is JSON, or empty.
DumpedStep read_files(const std::vector<std::pair<std::string, std::string>>& files, const std::string& hyper,
                      std::int64_t step);

}  // namespace muonwalk::check
