#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/io/safetensors.hpp"
#include "tools/check/parameter_case.hpp"

namespace muonwalk::check {

/// Axes of the ranks and their sizes, slowest first: rank order is row-major in it.
using Mesh = std::vector<std::pair<std::string, int>>;
/// [begin, end)
using Range = std::pair<std::int64_t, std::int64_t>;

/// The tensors of a parameter that are cut alike.
enum Role : std::size_t { weights, grad, moments };

/// What one rank has of a tensor: a box of the whole, or a range of that box's row-major elements.
struct Region {
  std::vector<Range> box;
  std::optional<Range> flat;
};

/// Who holds which elements of a parameter's tensors.
struct Holdings {
  std::vector<Part> parts;                        ///< By rank.
  std::vector<std::vector<std::int64_t>> shapes;  ///< What each rank's tensor has to look like.
  std::vector<std::vector<int>> copies;           ///< Ranks that hold every element once together; one for each copy.
};

/// A parameter as all ranks describe it.
struct DumpedParameter : Described {
  std::int64_t elements = 1;
  std::vector<std::array<Region, 3>> regions;    ///< What placements leave: by rank, by role.
  std::array<std::set<std::size_t>, 3> cutting;  ///< Axes of the mesh that don't repeat it: by role.
};

/// A tensor that a dump may have of each parameter, before those that follow from it. The first four go into the step.
struct CaseTensor {
  const char* name;
  Assembled ParameterCase::*of;
};
constexpr CaseTensor kCaseTensors[] = {{"before", &ParameterCase::before},
                                       {"momentum_before", &ParameterCase::momentum_before},
                                       {"second_before", &ParameterCase::second_before},
                                       {"grad", &ParameterCase::grad},
                                       {"momentum_after", &ParameterCase::momentum_after},
                                       {"second_after", &ParameterCase::second_after},
                                       {"after", &ParameterCase::after}};
constexpr std::size_t kGiven = 4;

/// A tensor of an open file.
struct DumpedTensor {
  std::shared_ptr<const SafetensorsReader> file;
  std::size_t index = 0;

  const StoredTensor& header() const { return file->tensors()[index]; }
};

/// One step of a dump: the files of all ranks, open, and of them only the headers in memory. What throws UsageError
/// says in one sentence which file, rank, parameter or element is wrong.
struct DumpedStep {
  std::int64_t step = 1;
  Mesh mesh;
  std::vector<DumpedParameter> parameters;
  std::vector<std::unordered_map<std::string, DumpedTensor>> ranks;  ///< What each has: "after/NAME".
  std::int64_t stored = 0;                                           ///< Elements in all tensors of all ranks.

  /// The parameter of that name, or null.
  const DumpedParameter* find(const std::string& name) const;
  /// Whether a rank has some of "after/NAME".
  bool has(const std::string& tensor) const;
  /// How a tensor ("after") of a parameter is cut. Throws UsageError where an element is on no rank of a copy, or on
  /// two.
  Holdings holdings(const DumpedParameter& parameter, const std::string& tensor) const;
  /// What a rank has written under "after/NAME": nothing where there is no such tensor, or an empty one. Throws
  /// UsageError where its shape isn't the one that `holdings` gives it.
  std::optional<StoredTensor> part(const std::string& tensor, int rank, const Holdings& holdings) const;
  /// A tensor of a parameter, whole: every element once, and a version for each copy with other bits. Throws UsageError
  /// where only some of the ranks that should have a part of it do, or have it in another type.
  Assembled assembled(const DumpedParameter& parameter, const std::string& tensor) const;
  /// The parameter with all its tensors; at most one more of them is in memory meanwhile. Throws UsageError as above,
  /// without weights, and for moments before step 1.
  ParameterCase read(const DumpedParameter& parameter) const;

  [[noreturn]] void refuse(const std::string& why) const;
};

/// Where a rank is on each axis.
std::vector<int> coordinates(const Mesh& mesh, int rank);

/// "[3, 17]": the place of a row-major element of that shape.
std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t element);

/// "rank 3", "ranks 0, 2, 5"; of many the first.
std::string ranks_list(const std::vector<int>& ranks);

/// Reads a dump as docs/dump-format.md describes it: folders with a file for each rank and step, or such files. Steps
/// come in their order. Throws UsageError, one sentence, for what isn't such a dump, and for ranks that are missing.
std::vector<DumpedStep> read_dump(const std::vector<std::string>& paths);

/// The same of one process from safetensors files of the same names of parameters: {"before", path}, {"grad", path},
/// {"after", path}, and also "momentum_before" and the like. `hyper` is JSON, or empty.
std::vector<DumpedStep> read_files(const std::vector<std::pair<std::string, std::string>>& files,
                                   const std::string& hyper, std::int64_t step);

}  // namespace muonwalk::check
