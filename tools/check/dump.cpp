#include "tools/check/dump.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "src/text/names.hpp"

namespace muonwalk::check {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

std::vector<std::int64_t> coordinates(const Mesh& mesh, std::int64_t rank) {
  std::vector<std::int64_t> of(mesh.size());
  for (std::size_t axis = mesh.size(); axis-- > 0; rank /= mesh[axis].second) of[axis] = rank % mesh[axis].second;
  return of;
}

// What placements leave to a rank: a box of the whole, and of its elements a range.
struct Region {
  std::vector<Range> box;
  std::int64_t begin = 0, end = 0;
  bool flat = false;

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (const auto& [from, to] : box) product *= to - from;
    return product;
  }
};

// What the first `count` of them leave.
Region region(const std::vector<std::int64_t>& shape, const std::vector<Placement>& placements, std::size_t count,
              const Mesh& mesh, const std::vector<std::int64_t>& at) {
  Region left;
  for (const std::int64_t length : shape) left.box.emplace_back(0, length);
  bool here = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Placement& placement = placements[i];
    if (placement.kind == Placement::shard) {  // as torch.chunk
      auto& [from, to] = left.box[placement.dim];
      const std::int64_t size = mesh[placement.axis].second, chunk = (to - from + size - 1) / size;
      from = std::min(from + at[placement.axis] * chunk, to);
      to = std::min(from + chunk, to);
    } else if (placement.kind == Placement::owner) {
      here = here && at[placement.axis] == placement.dim;
    } else if (placement.kind == Placement::flat) {
      left.flat = true;
      left.begin = placement.begin;
      left.end = placement.end;
    }
  }
  if (!left.flat) left.end = left.elements();
  if (!here) left.end = left.begin;
  return left;
}

// The region as ranges of the whole's row-major elements. A contiguous stretch is as long as the dimensions that are
// whole, and the one before them.
std::vector<Range> ranges_of(const Region& region, const std::vector<std::int64_t>& shape) {
  std::vector<Range> ranges;
  std::size_t outer = shape.size();
  std::int64_t stretch = 1, inner = 1;
  while (outer > 0 && stretch == inner) {  // so far whole
    --outer;
    stretch *= region.box[outer].second - region.box[outer].first;
    inner *= shape[outer];
  }
  for (std::int64_t at = region.begin; at < region.end;) {
    const std::int64_t row = at / stretch, until = std::min(region.end, (row + 1) * stretch);
    std::int64_t first = 0, stride = inner, index = row;
    for (std::size_t dim = outer; dim-- > 0; stride *= shape[dim]) {
      const auto& [from, to] = region.box[dim];
      first += (from + index % (to - from)) * stride;
      index /= to - from;
    }
    if (outer < shape.size()) first += region.box[outer].first * (inner / shape[outer]);
    const std::int64_t begin = first + at - row * stretch, end = begin + until - at;
    if (!ranges.empty() && ranges.back().second == begin)
      ranges.back().second = end;
    else
      ranges.emplace_back(begin, end);
    at = until;
  }
  return ranges;
}

std::int64_t elements_of(const Part& part) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : part.ranges) sum += end - begin;
  return sum;
}

}  // namespace

bool same_bits(const Flat& left, const Flat& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0; element /= shape[dim]) index[dim] = element % shape[dim];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

void DumpedStep::refuse(const std::string& why) const {
  throw UsageError(fmt::format("can't judge step {}: {}; docs/dump-format.md says what each rank writes", step, why));
}

const DumpedParameter* DumpedStep::find(const std::string& name) const {
  for (const DumpedParameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

const StoredTensor* DumpedStep::header(const std::string& tensor, int rank) const {
  const auto found = ranks_[rank].tensors.find(tensor);
  if (found == ranks_[rank].tensors.end()) return nullptr;
  const StoredTensor& stored = found->second.file->tensors()[found->second.index];
  return stored.elements() == 0 ? nullptr : &stored;
}

Holdings DumpedStep::holdings(const DumpedParameter& parameter, Role role) const {
  const std::string name = in_quotes(parameter.name);
  if (parameter.elements > stored_)
    refuse(fmt::format("{} has {} elements by its shape, more than all tensors together", name, parameter.elements));
  Holdings holdings;
  std::set<std::size_t> cut;
  for (const auto& placements : parameter.placements)
    for (const Placement& placement : placements[static_cast<std::size_t>(role)])
      if (placement.kind != Placement::replicate) cut.insert(placement.axis);
  std::map<std::vector<std::int64_t>, std::vector<int>> copies;  // by their coordinates on the axes that repeat it
  for (int rank = 0; rank < world(); ++rank) {
    const auto& placements = parameter.placements[rank][static_cast<std::size_t>(role)];
    std::vector<std::int64_t> at = coordinates(mesh, rank);
    const Region left = region(parameter.shape, placements, placements.size(), mesh, at);
    if (left.end > left.elements())
      refuse(fmt::format("the flat part of {} on rank {} ends at element {}, but other axes leave it {}", name, rank,
                         left.end, left.elements()));
    std::vector<std::int64_t> shape;
    for (const auto& [from, to] : left.box) shape.push_back(to - from);
    holdings.shapes.push_back(left.flat ? std::vector<std::int64_t>{left.end - left.begin} : shape);
    holdings.parts.push_back({rank, ranges_of(left, parameter.shape)});
    for (const std::size_t axis : cut) at[axis] = 0;
    copies[at].push_back(rank);
  }
  for (const auto& [at, ranks] : copies) {
    std::vector<std::tuple<std::int64_t, std::int64_t, int>> pieces;
    for (const int rank : ranks)
      for (const auto& [begin, end] : holdings.parts[rank].ranges) pieces.emplace_back(begin, end, rank);
    std::sort(pieces.begin(), pieces.end());
    pieces.emplace_back(parameter.elements, parameter.elements, -1);
    std::int64_t next = 0;
    int before = -1;
    for (const auto& [begin, end, rank] : pieces) {
      if (begin > next)
        refuse(fmt::format("the placements of {} leave its element {} to no rank", name,
                           element_text(parameter.shape, next)));
      if (begin < next)
        refuse(fmt::format("the placements of {} leave its element {} to ranks {} and {}", name,
                           element_text(parameter.shape, begin), before, rank));
      next = end;
      before = rank;
    }
    holdings.copies.push_back(ranks);
  }
  return holdings;
}

std::optional<Flat> DumpedStep::part(const std::string& tensor, int rank, const Holdings& holdings) const {
  const StoredTensor* stored = header(tensor, rank);
  if (stored == nullptr) return std::nullopt;
  const auto& shape = holdings.shapes[rank];
  if (holdings.parts[rank].ranges.empty() || stored->shape != shape)
    refuse(fmt::format("{} is of shape [{}] on rank {}, but its placements leave it {}", in_quotes(tensor),
                       fmt::join(stored->shape, ", "), rank,
                       holdings.parts[rank].ranges.empty() ? "nothing" : fmt::format("[{}]", fmt::join(shape, ", "))));
  const Tensor& where = ranks_[rank].tensors.at(tensor);
  return where.file->read(where.index).values();
}

Assembled DumpedStep::assembled(const DumpedParameter& parameter, const std::string& tensor,
                                const Holdings& holdings) const {
  const std::string name = tensor + "/" + parameter.name;
  Assembled whole;
  int first = -1;
  for (int rank = 0; rank < world(); ++rank) {
    const StoredTensor* stored = header(name, rank);
    if (stored == nullptr) continue;
    if (first < 0) {
      first = rank;
      whole.dtype = stored->dtype;
    }
    if (stored->dtype != whole.dtype)
      refuse(fmt::format("{} is {} on rank {} and {} on rank {}", in_quotes(name), whole.dtype, first, stored->dtype,
                         rank));
  }
  if (first < 0) return whole;
  for (int rank = 0; rank < world(); ++rank)
    if (!holdings.parts[rank].ranges.empty() && header(name, rank) == nullptr)
      refuse(fmt::format("rank {} has no {}, though its placements leave it {} elements and rank {} has its own", rank,
                         in_quotes(name), elements_of(holdings.parts[rank]), first));
  for (const std::vector<int>& copy : holdings.copies) {
    Assembled::Version version;
    for (const int rank : copy) {
      std::optional<Flat> values = part(name, rank, holdings);
      const auto& ranges = holdings.parts[rank].ranges;
      if (!values) continue;
      version.ranks.push_back(rank);
      if (ranges.size() == 1 && ranges[0].second - ranges[0].first == parameter.elements) {
        version.values = std::move(*values);
        continue;
      }
      version.values.resize(parameter.elements);
      const float* from = values->data();
      for (const auto& [begin, end] : ranges) {
        std::copy(from, from + (end - begin), version.values.data() + begin);
        from += end - begin;
      }
    }
    const auto same = std::find_if(whole.versions.begin(), whole.versions.end(),
                                   [&](const auto& other) { return same_bits(other.values, version.values); });
    if (same == whole.versions.end())
      whole.versions.push_back(std::move(version));
    else
      same->ranks.insert(same->ranks.end(), version.ranks.begin(), version.ranks.end());
  }
  return whole;
}

std::vector<Cut> DumpedStep::cuts(const DumpedParameter& parameter) const {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < parameter.placements[0][0].size(); ++i) {
    const Placement& placement = parameter.placements[0][0][i];
    if (placement.kind == Placement::replicate) continue;
    Cut cut{mesh[placement.axis].first, static_cast<Cut::Kind>(placement.kind), 0, {}};
    if (placement.kind == Placement::shard) cut.dim = static_cast<int>(placement.dim);
    std::set<std::int64_t> bounds;
    for (int rank = 0; rank < world() && placement.kind == Placement::shard; ++rank) {
      const Region left = region(parameter.shape, parameter.placements[0][0], i + 1, mesh, coordinates(mesh, rank));
      bounds.insert({left.box[cut.dim].first, left.box[cut.dim].second});
    }
    cut.bounds.assign(bounds.begin(), bounds.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace muonwalk::check
