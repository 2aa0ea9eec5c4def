#include "src/layout/parameter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr Index kLargestSuggestion = 64;  // a TP group rarely leaves one machine
constexpr std::size_t kSuggestions = 4;

// The divisors of `length` nearest to what was asked, in order: "1, 2, 4 or 5". There is one, since 1 divides all.
std::string divisors_near(Index length, Index asked) {
  std::vector<Index> divisors;
  for (Index d = 1; d <= std::min(length, kLargestSuggestion); ++d) {
    if (length % d == 0) divisors.push_back(d);
  }
  std::stable_sort(divisors.begin(), divisors.end(),
                   [&](Index a, Index b) { return std::abs(a - asked) < std::abs(b - asked); });
  if (divisors.size() > kSuggestions) divisors.resize(kSuggestions);
  std::sort(divisors.begin(), divisors.end());

  std::vector<std::string> words;
  for (const Index each : divisors) words.push_back(std::to_string(each));
  return alternatives(words);
}

// An equal share of `length` rows or columns.
Index share(const Parameter& parameter, Index length, const char* one, const char* many, int tp) {
  if (length % tp == 0) return length / tp;
  throw UsageError(fmt::format("--tp {} does not divide the {} {} of parameter {}; try --tp {}", tp, length,
                               length == 1 ? one : many, in_quotes(parameter.name), divisors_near(length, tp)));
}

}  // namespace

const char* split_name(SplitDim dim) {
  switch (dim) {
    case SplitDim::none:
      return "none";
    case SplitDim::rows:
      return "rows";
    case SplitDim::columns:
      return "columns";
  }
  throw std::invalid_argument("unknown split dimension");
}

Shape tp_shape(const Parameter& parameter, int tp) {
  if (tp < 1)
    throw UsageError(fmt::format("--tp {} is less than 1, but a TP group has at least one rank; try --tp 1", tp));
  const Shape full = parameter.shape;
  switch (parameter.tp_split_dim) {
    case SplitDim::rows:
      return {share(parameter, full.rows, "row", "rows", tp), full.cols};
    case SplitDim::columns:
      return {full.rows, share(parameter, full.cols, "column", "columns", tp)};
    case SplitDim::none:
      break;
  }
  return full;
}

Range intersection(Range a, Range b) {
  const Range shared{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return shared.empty() ? Range{a.begin, a.begin} : shared;
}

std::string range_text(Range range) {
  if (range.empty()) return "nothing";
  if (range.size() == 1) return std::to_string(range.begin);
  return fmt::format("{}–{}", range.begin, range.end - 1);
}

Range tp_range(const Parameter& parameter, int tp, int tp_rank) {
  const Shape slice = tp_shape(parameter, tp);
  if (tp_rank < 0 || tp_rank >= tp) throw std::out_of_range(fmt::format("TP rank {} is not in 0..{}", tp_rank, tp - 1));
  if (parameter.tp_split_dim == SplitDim::none) return {0, slice.rows};
  const Index length = parameter.tp_split_dim == SplitDim::rows ? slice.rows : slice.cols;
  return {length * tp_rank, length * (tp_rank + 1)};
}

}  // namespace muonwalk
