#include "tools/check/dump.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::check {
namespace {

std::int64_t elements_of(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : ranges) sum += end - begin;
  return sum;
}

// The region as ranges of the whole's row-major elements, found line by line of its last dimension.
std::vector<Range> ranges_of(Region region, std::vector<std::int64_t> shape) {
  const Range flat = region.flat.value_or(Range{0, std::numeric_limits<std::int64_t>::max() / 2});
  shape.insert(shape.begin(), 1);  // a single number is a line, too
  region.box.insert(region.box.begin(), {0, 1});
  const std::size_t last = shape.size() - 1;
  std::int64_t lines = 1, passed = 0;  // elements of the box
  for (std::size_t dim = 0; dim < last; ++dim) lines *= shape[dim];
  std::vector<Range> ranges;
  for (std::int64_t line = 0; line < lines && passed < flat.second; ++line) {
    bool inside = true;
    std::int64_t index = line;
    for (std::size_t dim = last; dim-- > 0; index /= shape[dim])
      inside = inside && region.box[dim].first <= index % shape[dim] && index % shape[dim] < region.box[dim].second;
    if (!inside) continue;
    const auto [from, to] = region.box[last];
    const std::int64_t begin = std::max(from, from + flat.first - passed),
                       end = std::min(to, from + flat.second - passed);
    passed += to - from;
    if (begin >= end) continue;
    const std::int64_t first = line * shape[last];
    if (!ranges.empty() && ranges.back().second == first + begin)
      ranges.back().second = first + end;
    else
      ranges.emplace_back(first + begin, first + end);
  }
  return ranges;
}

}  // namespace

std::vector<int> coordinates(const Mesh& mesh, int rank) {
  std::vector<int> at(mesh.size());
  for (std::size_t axis = mesh.size(); axis-- > 0; rank /= mesh[axis].second) at[axis] = rank % mesh[axis].second;
  return at;
}

bool same_bits(const Flat& left, const Flat& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

bool all_zero(const Flat& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0; element /= shape[dim]) index[dim] = element % shape[dim];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string ranks_list(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + visible_names(names);
}

void DumpedStep::refuse(const std::string& why) const {
  throw UsageError(fmt::format("can't judge step {}: {}; docs/dump-format.md says what each rank writes", step, why));
}

const DumpedParameter* DumpedStep::find(const std::string& name) const {
  for (const DumpedParameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

bool DumpedStep::has(const std::string& tensor) const {
  return std::any_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.count(tensor) > 0; });
}

Holdings DumpedStep::holdings(const DumpedParameter& parameter, const std::string& tensor) const {
  const std::string name = in_quotes(parameter.name);
  if (tensor.rfind("master_", 0) == 0) {  // cut as moments are, or as weights: their shapes say which
    const Holdings as_moments = holdings(parameter, "momentum_before");
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (const auto master = ranks[rank].find(tensor + "/" + parameter.name); master != ranks[rank].end())
        if (master->second.header().shape != as_moments.shapes[rank]) return holdings(parameter, "before");
    return as_moments;
  }
  const Role role = tensor == "grad" ? grad : tensor == "before" || tensor == "after" ? weights : moments;
  if (parameter.elements > stored)
    refuse(fmt::format("{} has {} elements by its shape, more than all tensors together", name, parameter.elements));
  Holdings holdings;
  std::map<std::vector<int>, std::vector<int>> copies;  // by their coordinates on the axes that repeat it
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const Region& region = parameter.regions[rank][role];
    holdings.parts.push_back({rank, ranges_of(region, parameter.shape)});
    std::vector<std::int64_t>& shape = holdings.shapes.emplace_back();
    if (region.flat)
      shape = {region.flat->second - region.flat->first};
    else
      for (const auto& [from, to] : region.box) shape.push_back(to - from);
    std::vector<int> at = coordinates(mesh, rank);
    for (const std::size_t axis : parameter.cutting[role]) at[axis] = 0;
    copies[at].push_back(rank);
  }
  for (const auto& [at, of] : copies) {
    std::vector<std::tuple<std::int64_t, std::int64_t, int>> pieces;
    for (const int rank : of)
      for (const auto& [begin, end] : holdings.parts[rank].ranges) pieces.emplace_back(begin, end, rank);
    std::sort(pieces.begin(), pieces.end());
    pieces.emplace_back(parameter.elements, parameter.elements, -1);
    std::int64_t next = 0;
    int before = -1;
    for (const auto& [begin, end, rank] : pieces) {
      if (begin != next)
        refuse(fmt::format("the placements of {} leave its element {} to {}", name,
                           element_text(parameter.shape, std::min(begin, next)),
                           begin > next ? "no rank" : fmt::format("ranks {} and {}", before, rank)));
      next = end;
      before = rank;
    }
    holdings.copies.push_back(of);
  }
  return holdings;
}

std::optional<StoredTensor> DumpedStep::part(const std::string& tensor, int rank, const Holdings& holdings) const {
  const auto found = ranks[rank].find(tensor);
  if (found == ranks[rank].end()) return std::nullopt;
  const auto& ranges = holdings.parts[rank].ranges;
  const std::vector<std::int64_t>&is = found->second.header().shape, &shape = holdings.shapes[rank];
  if (ranges.empty() || is != shape)
    refuse(fmt::format("{} is of shape [{}] on rank {}, but its placements leave it {}", in_quotes(tensor),
                       fmt::join(is, ", "), rank,
                       ranges.empty() ? "nothing" : fmt::format("[{}]", fmt::join(shape, ", "))));
  return found->second.file->read(found->second.index);
}

Assembled DumpedStep::assembled(const DumpedParameter& parameter, const std::string& tensor) const {
  const std::string name = tensor + "/" + parameter.name;
  const Holdings holdings = this->holdings(parameter, tensor);
  Assembled whole;
  for (const std::vector<int>& copy : holdings.copies) {
    Assembled::Version version;
    for (const int rank : copy) {
      std::optional<StoredTensor> piece = part(name, rank, holdings);
      const auto& ranges = holdings.parts[rank].ranges;
      if (!piece && !ranges.empty() && has(name))
        refuse(fmt::format("rank {} has no {}, though its placements leave it {} elements and other ranks have theirs",
                           rank, in_quotes(name), elements_of(ranges)));
      if (!piece) continue;
      if (whole.dtype.empty()) whole.dtype = piece->dtype;
      if (piece->dtype != whole.dtype)
        refuse(fmt::format("{} is {} on rank {} and {} on rank {}", in_quotes(name), whole.dtype,
                           whole.versions.empty() ? version.ranks[0] : whole.versions[0].ranks[0], piece->dtype, rank));
      version.ranks.push_back(rank);
      const Flat values = piece->values();
      version.values.resize(parameter.elements);
      const float* from = values.data();
      for (const auto& [begin, end] : ranges) {
        std::copy(from, from + (end - begin), version.values.data() + begin);
        from += end - begin;
      }
    }
    if (version.ranks.empty()) return whole;
    const auto same = std::find_if(whole.versions.begin(), whole.versions.end(),
                                   [&](const auto& other) { return same_bits(other.values, version.values); });
    if (same == whole.versions.end())
      whole.versions.push_back(std::move(version));
    else
      same->ranks.insert(same->ranks.end(), version.ranks.begin(), version.ranks.end());
  }
  return whole;
}

ParameterCase DumpedStep::read(const DumpedParameter& parameter) const {
  const std::string name = "/" + parameter.name;
  ParameterCase whole;
  static_cast<Described&>(whole) = parameter;
  whole.step = step;
  whole.mesh = mesh;
  whole.of_masters = has("master_before" + name);
  if (whole.of_masters != has("master_after" + name))
    refuse(in_quotes(parameter.name) + " has masters before or after the step, but not both");
  for (const std::string tensor : {"before", "after"})
    if (!has(tensor + name)) refuse("no rank has " + in_quotes(tensor + name));
  for (const CaseTensor& tensor : kCaseTensors) {
    const bool weights = tensor.of == &ParameterCase::before || tensor.of == &ParameterCase::after;
    whole.*tensor.of = assembled(parameter, (whole.of_masters && weights ? "master_" : "") + std::string(tensor.name));
  }
  for (const Assembled* moment : {&whole.momentum_before, &whole.second_before})
    for (const Assembled::Version& version : moment->versions)
      if (step == 1 && !all_zero(version.values))
        refuse(fmt::format("the moments of {} before step 1 are not zero", in_quotes(parameter.name)));
  whole.parts = holdings(parameter, "before").parts;
  whole.moment_parts = holdings(parameter, "momentum_before").parts;
  if (std::equal(whole.parts.begin(), whole.parts.end(), whole.moment_parts.begin(),
                 [](const Part& a, const Part& b) { return a.ranges == b.ranges; }))
    whole.moment_parts.clear();
  return whole;
}

}  // namespace muonwalk::check
