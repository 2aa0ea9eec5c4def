#include "tools/check/cuttings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace muonwalk::check {
namespace {

using Set = std::vector<Index>;  // rows or columns that belong together, or where they begin
using Sets = std::vector<Set>;
using Sizes = std::vector<std::int64_t>;

Set strided(Index count, Index step = 1, Index from = 0) {
  Set all;
  for (Index i = 0; i < count; ++i) all.push_back(from + i * step);
  return all;
}

Set sums(const Set& slow, const Set& fast) {
  Set all;
  for (const Index a : slow)
    for (const Index b : fast) all.push_back(a + b);
  return all;
}

// Parts of these sizes; in `groups`, one after the other, each has its share of every one. None where they can't.
Sets parts_of(const Sizes& sizes, Index groups = 1) {
  Sets sets(sizes.size());
  Index at = 0;
  for (Index group = 0; group < groups; ++group)
    for (std::size_t part = 0; part < sizes.size(); ++part)
      for (Index i = 0; i < sizes[part] / groups; ++i) sets[part].push_back(at++);
  if (at != std::accumulate(sizes.begin(), sizes.end(), Index{0})) return {};
  sets.erase(std::remove(sets.begin(), sets.end(), Set()), sets.end());
  return sets;
}

Sets common(const Sets& some, const Sets& others) {
  Sets all;
  for (const Set& one : some)
    for (const Set& other : others) {
      Set both;
      std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
      if (!both.empty()) all.push_back(both);
    }
  return all;
}

const char* rows_or_columns(bool of_rows) { return of_rows ? "rows" : "columns"; }
bool even(const Sizes& sizes) {
  return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
}
bool meant_in_rows(const Described& p) {
  return p.blocks.sizes.empty() || p.blocks.dim != static_cast<int>(p.shape.size()) - 1;
}

// Whether an axis of the mesh, by its name, shards what data-parallel ranks repeat, as FSDP and ZeRO do.
bool is_data_axis(const std::string& axis) {
  const char* words[] = {"dp", "data", "shard", "zero", "replica", "batch"};
  return std::any_of(std::begin(words), std::end(words),
                     [&](const char* word) { return axis.find(word) != std::string::npos; });
}

// Cuttings, each once: under the name that is added first.
class Collection {
 public:
  explicit Collection(const Described& parameter) : s(parameter.shape) {}

  void add(const Claim& claim, std::vector<Block> blocks) {
    std::set<Sets> key;
    for (const Block& block : blocks) key.insert({block.rows, block.cols});
    if (!blocks.empty() && seen_.insert(key).second) all.push_back({claim, std::move(blocks)});
  }
  // These rows of each matrix of the stack, with all columns or these; or the other way round.
  void lines(const Claim& claim, bool of_rows, const Sets& sets, Sets others = {}) {
    if (others.empty()) others = {strided(of_rows ? s.cols : s.rows)};
    std::vector<Block> blocks;
    for (Index e = 0; e < s.count; ++e)
      for (const Set& rows : of_rows ? sets : others)
        for (const Set& cols : of_rows ? others : sets) {
          blocks.push_back({rows, cols});
          for (Index& row : blocks.back().rows) row = (row + e * s.rows) * s.cols;
        }
    add(claim, std::move(blocks));
  }
  // Parts of these sizes, one after the other in each of the groups.
  void parts(const char* kind, const char* axis, bool of_rows, Sizes sizes, Index groups = 1) {
    sizes.erase(std::remove(sizes.begin(), sizes.end(), 0), sizes.end());
    std::string how = even(sizes) ? fmt::format("in {} blocks of {}", sizes.size(), rows_or_columns(of_rows))
                                  : fmt::format("in parts of {} {}", fmt::join(sizes, ", "), rows_or_columns(of_rows));
    if (groups > 1) how += fmt::format(", interleaved in {} groups", groups);
    lines({kind, axis, how}, of_rows, parts_of(sizes, groups));
  }

  const Stack s;
  std::vector<Cutting> all;

 private:
  std::set<std::set<Sets>> seen_;
};

// What a rank has of a parameter, as it is cut along one axis.
void add_slices(Collection& into, const Described& p) {
  const Stack& s = into.s;
  for (const Slices& slices : slices_of(p)) {
    const Sets mine = parts_of(slices.sizes);
    const Index count = static_cast<Index>(mine.size());
    if (count < 2) continue;
    Claim claim{is_data_axis(slices.axis) ? "dp_slices" : "tp_slices", slices.axis,
                fmt::format("slice by slice of its {}, as {} cuts them", rows_or_columns(slices.of_rows), slices.axis)};
    if (s.count > 1) claim.kind = "expert_slabs", claim.axis = "experts";
    if (const Index whole = slices.of_rows ? s.rows : s.cols; s.count == 1 && even(slices.sizes)) {
      const Index each = whole / count, apart = slices.of_rows ? each * s.cols : each;
      const Set one = strided(s.rows, s.cols), other = strided(s.cols), first = strided(count, apart);
      into.add(
          {"joined_other_dim", slices.axis, "its slices of " + slices.axis + " joined along the other dimension"},
          {slices.of_rows ? Block{strided(each, s.cols), sums(first, other)} : Block{sums(first, one), strided(each)}});
      Cutting normed{{"local_norm", slices.axis, "each slice divided by its own norm"}, into.all.front().blocks};
      for (const Set& slice : mine)
        normed.normed.push_back(slices.of_rows ? Block{strided(each, s.cols, slice.front() * s.cols), other}
                                               : Block{one, slice});
      if (normed.blocks.size() == 1) into.all.push_back(normed);
    }
    // The slices themselves, or each slice's share of the parts: as the whole is cut, or as if it were a whole.
    const Sets meant = parts_of(p.blocks.sizes), local = parts_of(p.blocks.sizes, count);
    const bool along = slices.of_rows == meant_in_rows(p);
    for (const Sets& of : {Sets(), meant, local})
      into.lines(claim, slices.of_rows, along && !of.empty() ? common(mine, of) : mine, along ? Sets() : of);
    if (along)
      into.lines({"fused_split_misplaced", "blocks", "at rows that belong to one slice of " + slices.axis},
                 slices.of_rows, local);
  }
}

// What is meant in parts: whole, interleaved, or cut at other lines.
void add_fused(Collection& into, const Described& p) {
  const Sizes& sizes = p.blocks.sizes;
  if (sizes.size() < 2) return;
  const bool of_rows = meant_in_rows(p), two = sizes.size() == 2;
  const Index whole = of_rows ? into.s.rows : into.s.cols;
  into.lines({"fused_not_split", "blocks", "whole"}, true, {strided(into.s.rows)});
  Index divisor = 0;
  for (const std::int64_t size : sizes) divisor = std::gcd(divisor, size);
  for (Index groups = 2; groups <= divisor; ++groups) into.parts("fused_interleaved", "blocks", of_rows, sizes, groups);
  const Index step = divisor % 4 == 0 ? divisor / 4 : divisor;
  if (sizes.size() <= 3 && whole <= 32 * step)
    for (Index first = step; first < whole; first += step)
      for (Index second = two ? whole : first + step; second <= whole; second += step)
        into.parts("fused_split_misplaced", "blocks", of_rows, {first, second - first, whole - second});
}

// In equal blocks, or where no parts are meant, as what is fused would be cut.
void add_equal(Collection& into, const Described& p) {
  const Sizes& sizes = p.blocks.sizes;
  for (const bool of_rows : {true, false}) {
    const Index whole = of_rows ? into.s.rows : into.s.cols;
    for (Index count = 2; count <= 64 && count <= whole; ++count) {
      if (whole % count != 0) continue;
      const bool other_count = even(sizes) || static_cast<std::size_t>(count) != sizes.size();
      into.parts(into.s.count > 1 ? "expert_slabs"
                 : sizes.empty()  ? "split_not_fused"
                 : other_count    ? "head_count"
                                  : "fused_split_misplaced",
                 into.s.count > 1 ? "experts" : "heads", of_rows,
                 Sizes(static_cast<std::size_t>(count), whole / count));
    }
    if (!sizes.empty() || into.s.count > 1) continue;
    if (whole % 4 == 0)
      for (const Sizes& parts : {Sizes{whole / 2, whole / 4, whole / 4}, {whole / 4, whole / 4, whole / 2}})
        into.parts("split_not_fused", "blocks", of_rows, parts);
  }
}

// A stack in other ways than matrix by matrix.
void add_stack(Collection& into) {
  const auto [count, rows, cols] = into.s;
  const Index area = rows * cols;
  const Set rows_of = strided(rows, cols), cols_of = strided(cols), matrices = strided(count, area);
  if (count == 1) return;
  std::vector<Block> by_row, by_column;
  for (Index r = 0; r < rows; ++r) by_row.push_back({matrices, strided(cols, 1, r * cols)});
  for (Index c = 0; c < cols; ++c) by_column.push_back({matrices, strided(rows, cols, c)});
  const struct {
    const char *kind, *how;
    std::vector<Block> blocks;
  } ways[] = {{"experts_flattened", "as one matrix, expert below expert", {{strided(count * rows, cols), cols_of}}},
              {"experts_flattened", "as one matrix, expert beside expert", {{rows_of, sums(matrices, cols_of)}}},
              {"expert_axis_as_matrix", "with an expert as a row", {{matrices, strided(area)}}},
              {"expert_axis_as_matrix", "as matrices of experts × columns", by_row},
              {"expert_axis_as_matrix", "as matrices of experts × rows", by_column}};
  for (const auto& way : ways) into.add({way.kind, "experts", way.how}, way.blocks);
}

}  // namespace

Matrix Block::taken(const Flat& from) const {
  Matrix matrix(static_cast<Index>(rows.size()), static_cast<Index>(cols.size()));
  float* to = matrix.data();
  each([&](std::size_t i) { *to++ = from[i]; });
  return matrix;
}

Stack::Stack(const std::vector<std::int64_t>& shape) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i + 1 == shape.size() ? cols : i + 2 == shape.size() ? rows : count) *= shape[i];
}

std::vector<Slices> slices_of(const Described& parameter) {
  std::vector<Slices> all;
  const int dims = static_cast<int>(parameter.shape.size());
  for (const Cut& cut : parameter.cuts)
    if (cut.kind == Cut::shard && dims >= 2 && cut.dim >= dims - 2) {
      all.push_back({cut.axis, cut.dim == dims - 2, cut.bounds});
      Sizes& sizes = all.back().sizes;
      std::adjacent_difference(sizes.begin(), sizes.end(), sizes.begin());
      sizes.erase(sizes.begin());
    }
  return all;
}

Cutting rank_parts(const ParameterCase& parameter, bool of_moments) {
  const Stack s(parameter.shape);
  std::string axis = of_moments || parameter.cuts.empty() ? "dp" : parameter.cuts.front().axis;
  for (const Cut& cut : parameter.cuts)
    if (cut.kind == Cut::flat || is_data_axis(cut.axis)) axis = cut.axis;
  std::map<std::array<Index, 4>, Set> rows;  // by the first element and matrix, and by where columns begin and end
  for (const Part& part : of_moments ? parameter.moment_parts : parameter.parts)
    for (const auto& [begin, end] : part.ranges)
      for (Index at = begin, stop = 0; at < end; at = stop) {
        const Index first = at / s.cols * s.cols;
        stop = std::min<Index>(end, first + s.cols);
        Set& mine = rows[{part.ranges.front().first, first / (s.rows * s.cols), at - first, stop - first}];
        if (mine.empty() || mine.back() < first) mine.push_back(first);  // ranks that repeat a part are one
      }
  Cutting parts{{is_data_axis(axis) ? "dp_slices" : "tp_slices", axis, "part by part, as ranks hold it"}};
  for (const auto& [of, mine] : rows) parts.blocks.push_back({mine, strided(of[3] - of[2], 1, of[2])});
  if (parts.blocks.size() > 1024) parts.blocks.clear();
  return parts;
}

Cutting meant_cutting(const Described& parameter) {
  const bool of_rows = meant_in_rows(parameter);
  const std::vector<std::int64_t>& sizes = parameter.blocks.sizes;
  Collection into(parameter);
  into.lines({}, of_rows, sizes.empty() ? Sets{strided(into.s.rows)} : parts_of(sizes));
  return into.all.front();
}

std::vector<Cutting> cuttings(const ParameterCase& parameter) {
  Collection into(parameter);
  into.add({}, meant_cutting(parameter).blocks);
  if (const std::vector<Block> meant = into.all.front().blocks; meant.size() == 1 && into.s.rows == into.s.cols)
    into.all.push_back({{"update_transposed", "", "transposed"}, meant, {{meant[0].cols, meant[0].rows}}});
  add_slices(into, parameter);
  for (const bool of_moments : {false, true}) {
    const Cutting parts = rank_parts(parameter, of_moments);
    if (parts.blocks.size() > 1) into.add(parts, parts.blocks);
  }
  add_fused(into, parameter);
  add_equal(into, parameter);
  add_stack(into);
  return std::move(into.all);
}

}  // namespace muonwalk::check
