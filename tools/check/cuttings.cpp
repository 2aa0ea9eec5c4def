#include "tools/check/cuttings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "src/text/units.hpp"

namespace muonwalk::check {
namespace {

using Set = std::vector<Index>;  // rows or columns that belong together
using Sets = std::vector<Set>;

Set range_set(Index begin, Index end, Index step = 1) {
  Set all;
  for (Index i = begin; i < end; i += step) all.push_back(i);
  return all;
}

// From where each part begins, and the end.
Sets sets_between(const Set& bounds) {
  Sets sets;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    if (bounds[i + 1] > bounds[i]) sets.push_back(range_set(bounds[i], bounds[i + 1]));
  return sets;
}

Set bounds_of(const std::vector<std::int64_t>& sizes) {
  Set bounds = {0};
  for (const std::int64_t size : sizes) bounds.push_back(bounds.back() + size);
  return bounds;
}

Sets equal_sets(Index whole, Index count) {
  Set bounds;
  for (Index i = 0; i <= count; ++i) bounds.push_back(i * (whole / count));
  return sets_between(bounds);
}

// Every one of `count` parts takes `sizes[part] / groups` in each of the groups, one after the other.
Sets interleaved_sets(const std::vector<std::int64_t>& sizes, Index groups) {
  Sets sets(sizes.size());
  Index at = 0;
  for (Index group = 0; group < groups; ++group)
    for (std::size_t part = 0; part < sizes.size(); ++part)
      for (Index i = 0; i < sizes[part] / groups; ++i) sets[part].push_back(at++);
  return sets;
}

Set times(Set set, Index factor, Index plus = 0) {
  for (Index& each : set) each = each * factor + plus;
  return set;
}

class Collection {
 public:
  explicit Collection(const ParameterCase& parameter) : stack_(parameter.shape) {}

  void add(const std::string& kind, const std::string& axis, const std::string& how, std::vector<Block> blocks) {
    std::set<std::vector<Index>> key;
    for (const Block& block : blocks) {
      std::vector<Index> places = block.rows;
      for (const auto* more : {&block.cols, &block.out_rows, &block.out_cols}) {
        places.push_back(-1);
        places.insert(places.end(), more->begin(), more->end());
      }
      key.insert(places);
    }
    if (!blocks.empty() && seen_.insert(key).second) all.push_back({kind, axis, how, std::move(blocks)});
  }

  // These rows and columns of each matrix of the stack.
  void add(const std::string& kind, const std::string& axis, const std::string& how, const Sets& rows,
           const Sets& cols) {
    std::vector<Block> blocks;
    for (Index e = 0; e < stack_.count; ++e)
      for (const Set& r : rows)
        for (const Set& c : cols) blocks.push_back({times(r, stack_.cols, e * stack_.rows * stack_.cols), c});
    add(kind, axis, how, std::move(blocks));
  }
  // These of its rows, or of its columns.
  void add(const std::string& kind, const std::string& axis, const std::string& how, bool of_rows, const Sets& sets) {
    if (sets.empty()) return;
    const Sets others = {range_set(0, of_rows ? stack_.cols : stack_.rows)};
    add(kind, axis, how, of_rows ? sets : others, of_rows ? others : sets);
  }

  std::vector<Cutting> all;

 private:
  const Stack stack_;
  std::set<std::set<std::vector<Index>>> seen_;
};

bool meant_in_rows(const ParameterCase& p) { return p.blocks.dim != static_cast<int>(p.shape.size()) - 1; }

// The sets of rows, or of columns, that are meant.
Sets meant_sets(const ParameterCase& p, const Stack& stack) {
  if (p.blocks.sizes.empty()) return {range_set(0, stack.rows)};
  return sets_between(bounds_of(p.blocks.sizes));
}

const char* rows_or_columns(bool of_rows) { return of_rows ? "rows" : "columns"; }

// The rows and columns that a rank's part is, if it is a block of one matrix.
std::vector<Block> part_blocks(const std::vector<Part>& parts, const Stack& stack) {
  std::map<Set, Block> blocks;  // by rows and columns
  for (const Part& part : parts) {
    std::map<std::pair<Index, Index>, std::map<Index, Set>> rows;  // by columns, by matrix
    for (auto [begin, end] : part.ranges)
      for (Index at = begin; at < end;) {
        const Index row = at / stack.cols, stop = std::min<Index>(end, (row + 1) * stack.cols);
        rows[{at - row * stack.cols, stop - row * stack.cols}][row / stack.rows].push_back(row);
        at = stop;
      }
    for (const auto& [cols, by_matrix] : rows)
      for (const auto& [matrix, of] : by_matrix) {
        Set key = of;
        key.push_back(cols.first);
        blocks[key] = {times(of, stack.cols), range_set(cols.first, cols.second)};
      }
  }
  std::vector<Block> all;
  for (auto& [key, block] : blocks) all.push_back(std::move(block));
  return all;
}

void add_slices(Collection& into, const ParameterCase& p, const Stack& stack) {
  const Sets meant = meant_sets(p, stack);
  for (const Slices& slices : slices_of(p)) {
    const bool stack_slab = stack.count > 1;
    const std::string kind = stack_slab ? "expert_slabs" : is_data_axis(slices.axis) ? "dp_slices" : "tp_slices";
    const std::string axis = stack_slab ? "experts" : slices.axis;
    const std::string how =
        fmt::format("slice by slice of its {}, as {} cuts them", rows_or_columns(slices.of_rows), slices.axis);
    const Sets sets = sets_between(slices.bounds);
    if (sets.size() < 2) continue;
    into.add(kind, axis, how, slices.of_rows, sets);
    if (p.blocks.sizes.empty()) continue;
    if (slices.of_rows != meant_in_rows(p)) {  // each slice of each part
      into.add(kind, axis, how, slices.of_rows ? sets : meant, slices.of_rows ? meant : sets);
      continue;
    }
    Sets both;
    for (const Set& slice : sets)
      for (const Set& part : meant) {
        both.emplace_back();
        std::set_intersection(slice.begin(), slice.end(), part.begin(), part.end(), std::back_inserter(both.back()));
        if (both.back().empty()) both.pop_back();
      }
    into.add(kind, axis, how, slices.of_rows, both);
    Sets locally;  // each slice is cut as the whole should be
    for (const Set& slice : sets) {
      Set bounds = {0};
      for (const std::int64_t size : p.blocks.sizes)
        bounds.push_back(bounds.back() + size / static_cast<Index>(sets.size()));
      if (bounds.back() != static_cast<Index>(slice.size())) break;
      for (const Set& part : sets_between(bounds)) locally.push_back(times(part, 1, slice.front()));
    }
    into.add(kind, axis, how, slices.of_rows, locally);
    if (!locally.empty()) {  // the parts of all slices together
      Sets joined(p.blocks.sizes.size());
      for (std::size_t i = 0; i < locally.size(); ++i)
        joined[i % joined.size()].insert(joined[i % joined.size()].end(), locally[i].begin(), locally[i].end());
      into.add("fused_split_misplaced", "blocks", "at rows that belong to one slice of " + slices.axis, slices.of_rows,
               joined);
    }
  }
  for (const auto* parts : {&p.parts, &p.moment_parts}) {
    std::string axis;
    for (const Cut& cut : p.cuts)
      if (axis.empty() || cut.kind == Cut::flat || is_data_axis(cut.axis)) axis = cut.axis;
    if (axis.empty() && parts == &p.moment_parts) axis = "dp";
    const std::vector<Block> blocks = part_blocks(*parts, stack);
    if (blocks.size() > 1 && blocks.size() <= 1024)
      into.add(is_data_axis(axis) ? "dp_slices" : "tp_slices", axis, "part by part, as ranks hold it", blocks);
  }
}

void add_joined(Collection& into, const ParameterCase& p, const Stack& stack) {
  if (stack.count > 1) return;
  for (const Slices& slices : slices_of(p)) {
    const Index count = static_cast<Index>(slices.bounds.size()) - 1;
    const Index whole = slices.of_rows ? stack.rows : stack.cols, each = count > 0 ? whole / count : 0;
    if (count < 2 || whole % count != 0) continue;
    Block block;
    if (slices.of_rows) {
      block.rows = times(range_set(0, each), stack.cols);
      for (Index s = 0; s < count; ++s)
        for (Index c = 0; c < stack.cols; ++c) block.cols.push_back(s * each * stack.cols + c);
    } else {
      block.cols = range_set(0, each);
      for (Index s = 0; s < count; ++s)
        for (Index r = 0; r < stack.rows; ++r) block.rows.push_back(r * stack.cols + s * each);
    }
    into.add("joined_other_dim", slices.axis,
             fmt::format("as its slices of {} side by side along its {}", rows_or_columns(slices.of_rows),
                         rows_or_columns(!slices.of_rows)),
             {block});
  }
}

void add_fused(Collection& into, const ParameterCase& p, const Stack& stack) {
  const std::vector<std::int64_t>& sizes = p.blocks.sizes;
  if (sizes.size() < 2) return;
  const bool of_rows = meant_in_rows(p);
  const Index whole = of_rows ? stack.rows : stack.cols;
  into.add("fused_not_split", "blocks", "whole", true, {range_set(0, stack.rows)});

  Index common = 0;
  for (const std::int64_t size : sizes) common = std::gcd(common, size);
  for (Index groups = 2; groups <= common; ++groups)
    if (common % groups == 0)
      into.add("fused_interleaved", "blocks", fmt::format("as if its parts lay interleaved in {} groups", groups),
               of_rows, interleaved_sets(sizes, groups));

  const auto misplaced = [&](const Set& bounds) {
    std::string text;
    for (std::size_t i = 1; i + 1 < bounds.size(); ++i) text += (i > 1 ? ", " : "") + std::to_string(bounds[i]);
    into.add("fused_split_misplaced", "blocks", fmt::format("cut at its {} {}", rows_or_columns(of_rows), text),
             of_rows, sets_between(bounds));
  };
  const Set right = bounds_of(sizes);
  const Index step = common % 4 == 0 ? common / 4 : common;
  if (sizes.size() <= 3 && whole / step <= 32)
    for (Index first = step; first < whole; first += step)
      for (Index second = sizes.size() == 2 ? whole : first + step; second < whole + (sizes.size() == 2);
           second += step)
        misplaced(sizes.size() == 2 ? Set{0, first, whole} : Set{0, first, second, whole});
  if (sizes.size() <= 4) {
    std::vector<std::int64_t> order = sizes;
    std::sort(order.begin(), order.end());
    do misplaced(bounds_of(order));
    while (std::next_permutation(order.begin(), order.end()));
    if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end() &&
        whole % static_cast<Index>(sizes.size()) == 0) {
      Set bounds;
      for (std::size_t i = 0; i <= sizes.size(); ++i)
        bounds.push_back(whole / static_cast<Index>(sizes.size()) * static_cast<Index>(i));
      misplaced(bounds);
    }
    for (std::size_t left_out = 1; left_out < sizes.size() && sizes.size() > 2; ++left_out) {
      Set bounds = right;
      bounds.erase(bounds.begin() + static_cast<std::ptrdiff_t>(left_out));
      misplaced(bounds);
    }
    for (Index shift = 1; shift <= whole / 4; shift *= 2)
      for (const Index by : {shift, -shift})
        for (std::size_t only = 0; only < sizes.size(); ++only) {  // all boundaries, or one of them
          Set bounds = right;
          for (std::size_t i = 1; i + 1 < bounds.size(); ++i)
            if (only == 0 || only == i) bounds[i] = std::clamp<Index>(bounds[i] + by, 0, whole);
          if (std::is_sorted(bounds.begin(), bounds.end())) misplaced(bounds);
        }
  }
}

void add_equal(Collection& into, const ParameterCase& p, const Stack& stack) {
  const std::vector<std::int64_t>& sizes = p.blocks.sizes;
  const bool even = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
  for (const bool of_rows : {true, false}) {
    const Index whole = of_rows ? stack.rows : stack.cols;
    for (Index count = 2; count <= 64 && count <= whole; ++count) {
      if (whole % count != 0) continue;
      std::string kind = "split_not_fused", axis = "heads";
      if (stack.count > 1)
        kind = "expert_slabs", axis = "experts";
      else if (!sizes.empty())
        kind = even || static_cast<std::size_t>(count) != sizes.size() ? "head_count" : "fused_split_misplaced";
      into.add(kind, axis, fmt::format("in {} blocks of {}", count, rows_or_columns(of_rows)), of_rows,
               equal_sets(whole, count));
    }
    if (!sizes.empty() || stack.count > 1) continue;
    for (const Index count : {2, 3, 4})
      for (Index groups = 2; groups <= whole / count; groups *= 2)
        if (whole % (count * groups) == 0)
          into.add("split_not_fused", "blocks",
                   fmt::format("in {} interleaved parts of its {}", count, rows_or_columns(of_rows)), of_rows,
                   interleaved_sets(std::vector<std::int64_t>(static_cast<std::size_t>(count), whole / count), groups));
    if (whole % 4 == 0)
      for (const std::vector<std::int64_t>& parts :
           {std::vector<std::int64_t>{whole / 2, whole / 4, whole / 4}, {whole / 4, whole / 4, whole / 2}})
        into.add("split_not_fused", "blocks",
                 fmt::format("in parts of {}, {} and {} {}", parts[0], parts[1], parts[2], rows_or_columns(of_rows)),
                 of_rows, sets_between(bounds_of(parts)));
  }
}

void add_stack(Collection& into, const Stack& s) {
  const auto whole_of = [](Index count, Index step) { return times(range_set(0, count), step); };
  const Index area = s.rows * s.cols;
  if (s.count > 1) {
    into.add("experts_flattened", "experts", "as one matrix, expert below expert",
             {{whole_of(s.count * s.rows, s.cols), range_set(0, s.cols)}});
    Block beside{whole_of(s.rows, s.cols), {}};
    for (Index e = 0; e < s.count; ++e)
      for (Index c = 0; c < s.cols; ++c) beside.cols.push_back(e * area + c);
    into.add("experts_flattened", "experts", "as one matrix, expert beside expert", {beside});
    into.add("expert_axis_as_matrix", "experts", "with an expert as a row",
             {{whole_of(s.count, area), range_set(0, area)}});
    std::vector<Block> by_row, by_column;
    for (Index r = 0; r < s.rows; ++r)
      by_row.push_back({whole_of(s.count, area), times(range_set(0, s.cols), 1, r * s.cols)});
    for (Index c = 0; c < s.cols; ++c)
      by_column.push_back({whole_of(s.count, area), times(range_set(0, s.rows), s.cols, c)});
    into.add("expert_axis_as_matrix", "experts", "as matrices of experts × columns", by_row);
    into.add("expert_axis_as_matrix", "experts", "as matrices of experts × rows", by_column);
  }
  std::vector<Block> turned;
  for (Index e = 0; e < s.count; ++e)
    turned.push_back({times(range_set(0, s.rows), s.cols, e * area), range_set(0, s.cols),
                      times(range_set(0, s.rows), 1, e * area), times(range_set(0, s.cols), s.rows)});
  into.add("update_transposed", "", "and the result transposed", turned);
}

}  // namespace

Matrix Block::taken(const Flat& from, bool out) const {
  const auto& r = out && !out_rows.empty() ? out_rows : rows;
  const auto& c = out && !out_cols.empty() ? out_cols : cols;
  Matrix matrix(static_cast<Index>(r.size()), static_cast<Index>(c.size()));
  float* to = matrix.data();
  for (const Index i : r)
    for (const Index j : c) *to++ = from[static_cast<std::size_t>(i + j)];
  return matrix;
}

void Block::put(const Matrix& matrix, Flat& into) const {
  const float* from = matrix.data();
  for (const Index i : out_rows.empty() ? rows : out_rows)
    for (const Index j : out_cols.empty() ? cols : out_cols) into[static_cast<std::size_t>(i + j)] = *from++;
}

Stack::Stack(const std::vector<std::int64_t>& shape) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i + 1 == shape.size() ? cols : i + 2 == shape.size() ? rows : count) *= shape[i];
}

bool is_data_axis(const std::string& axis) {
  for (const char* word : {"tp", "tensor", "model", "etp", "mp"})
    if (axis == word) return false;
  for (const char* word : {"dp", "data", "shard", "zero", "replica", "batch"})
    if (axis.find(word) != std::string::npos) return true;
  return false;
}

std::vector<Slices> slices_of(const ParameterCase& parameter) {
  std::vector<Slices> all;
  const int dims = static_cast<int>(parameter.shape.size());
  for (const Cut& cut : parameter.cuts)
    if (cut.kind == Cut::shard && dims >= 2 && cut.dim >= dims - 2)
      all.push_back({cut.axis, cut.dim == dims - 2, cut.bounds});
  return all;
}

Cutting meant_cutting(const ParameterCase& parameter) {
  const Stack stack(parameter.shape);
  Collection into(parameter);
  into.add("", "", "", parameter.blocks.sizes.empty() || meant_in_rows(parameter), meant_sets(parameter, stack));
  return into.all.front();
}

std::vector<Cutting> cuttings(const ParameterCase& parameter) {
  const Stack stack(parameter.shape);
  Collection into(parameter);
  const Cutting meant = meant_cutting(parameter);
  into.add("", "", "", meant.blocks);
  add_slices(into, parameter, stack);
  add_joined(into, parameter, stack);
  add_fused(into, parameter, stack);
  add_equal(into, parameter, stack);
  add_stack(into, stack);
  return std::move(into.all);
}

}  // namespace muonwalk::check
