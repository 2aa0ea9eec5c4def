#include "sim/classroom/likeness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "sim/classroom/comparison.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/bfloat16.hpp"

namespace muonwalk::sim {
namespace {

// Two answers that differ by no more than this, element by element, were added in another order.
constexpr long long kLastBits = 64;  // ULP
// Up to so many elements, something that was shifted is looked for.
constexpr Index kLargestShift = 64;

// A NaN that no arithmetic makes.
const float kGuard = float_from_bits(0x7fc0beefu);

// "row 3", "rows 2–5".
std::string rows_text(const char* one, Index first, Index last) {
  return first == last ? fmt::format("{} {}", one, first) : fmt::format("{}s {}–{}", one, first, last);
}

bool contiguous(const std::vector<Index>& which) {
  return !which.empty() && which.back() - which.front() + 1 == static_cast<Index>(which.size());
}

// A matrix as its rows, or its columns.
struct Lines {
  const char* one;            // "row"
  std::vector<Flat> of_held;  // one entry per line
  std::vector<Flat> of_wanted;
};

Lines lines_of(const Matrix& held, const Matrix& wanted, SplitDim dim) {
  Lines lines{dim == SplitDim::rows ? "row" : "column", {}, {}};
  const Index count = dim == SplitDim::rows ? wanted.rows() : wanted.cols();
  for (Index i = 0; i < count; ++i) {
    lines.of_held.push_back(tp_slice(held, dim, static_cast<int>(count), static_cast<int>(i)).flat());
    lines.of_wanted.push_back(tp_slice(wanted, dim, static_cast<int>(count), static_cast<int>(i)).flat());
  }
  return lines;
}

// "Rows 4–7 are zeros; all else is right."
std::string zero_lines(const Lines& lines) {
  std::vector<Index> zeros;
  for (std::size_t i = 0; i < lines.of_held.size(); ++i) {
    if (same_bits(lines.of_held[i], lines.of_wanted[i])) continue;
    if (!all_zero(lines.of_held[i])) return "";
    zeros.push_back(static_cast<Index>(i));
  }
  if (!contiguous(zeros)) return "";
  std::string words = rows_text(lines.one, zeros.front(), zeros.back());
  words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return fmt::format("{} {} zero{}; all else is right.", words, zeros.size() == 1 ? "is" : "are",
                     zeros.size() == 1 ? "" : "s");
}

// Slice number i of n, along the rows or the columns.
Flat slice_of(const Matrix& matrix, SplitDim dim, int n, int i) { return tp_slice(matrix, dim, n, i).flat(); }

// "Slice 1 (columns 4–7) is zeros", "slice 0 where slice 1 belongs".
std::string slices_mixed_up(const Matrix& held, const Matrix& wanted, SplitDim dim, int n) {
  const Index along = dim == SplitDim::rows ? wanted.rows() : wanted.cols();
  if (n < 2 || along % n != 0) return "";
  std::vector<std::string> found;
  for (int i = 0; i < n; ++i) {
    const Flat mine = slice_of(held, dim, n, i);
    if (same_bits(mine, slice_of(wanted, dim, n, i))) continue;
    const std::string where =
        rows_text(dim == SplitDim::rows ? "row" : "column", along / n * i, along / n * (i + 1) - 1);
    if (all_zero(mine)) {
      found.push_back(fmt::format("there are zeros where slice {} belongs ({})", i, where));
      continue;
    }
    int other = -1;
    for (int k = 0; k < n && other < 0; ++k)
      if (same_bits(mine, slice_of(wanted, dim, n, k))) other = k;
    if (other < 0) return "";
    found.push_back(fmt::format("slice {} lies where slice {} belongs ({})", other, i, where));
  }
  if (found.empty()) return "";
  std::string words = found[0];
  words[0] = static_cast<char>(words[0] - 'a' + 'A');
  if (found.size() == 2) words += fmt::format(", and {}", found[1]);
  if (found.size() > 2) words += fmt::format(", and {} more slices are not where they belong", found.size() - 1);
  return words + ".";
}

std::string joined_along_the_other(const Matrix& held, const Matrix& wanted, int n) {
  if (n < 2 || held.size() != wanted.size()) return "";
  Flat below;  // the slices one after the other, as an all-gather leaves them
  for (int i = 0; i < n && wanted.cols() % n == 0; ++i)
    for (const float value : slice_of(wanted, SplitDim::columns, n, i)) below.push_back(value);
  if (same_bits(held.flat(), below))
    return fmt::format("The {} slices lie one below the other, as if they were rows; they are columns.", n);
  if (wanted.rows() % n != 0) return "";
  const Matrix sideways = join_slices(wanted.flat(), {wanted.rows() / n, wanted.cols()}, SplitDim::columns, n);
  if (same_bits(held.flat(), sideways.flat()))
    return fmt::format("The {} slices lie side by side, as if they were columns; they are rows.", n);
  return "";
}

// The lines of each slice are dealt out in turn: line 0 of every slice, then line 1 of every slice.
std::string interleaved(const Lines& lines, std::size_t n) {
  const std::size_t count = lines.of_held.size();
  if (n < 2 || count % n != 0 || count == n) return "";
  for (std::size_t i = 0; i < count; ++i)
    if (!same_bits(lines.of_held[i], lines.of_wanted[i % n * (count / n) + i / n])) return "";
  return fmt::format("The {0}s of the {1} slices take turns; those of one slice belong side by side.", lines.one, n);
}

// Each slice as it is where what lies row by row is taken for something that lies column by column.
std::string read_by_columns(const Matrix& held, const Matrix& wanted, Index n) {
  const Index rows = wanted.rows(), width = wanted.cols() / n;
  if (width * n != wanted.cols()) return "";
  for (Index k = 0; k < wanted.size(); ++k) {
    const Index i = k / wanted.cols(), j = k % wanted.cols(), at = j % width * rows + i;  // `at`: of its slice
    if (held(i, j) != wanted(at / width, j / width * width + at % width)) return "";
  }
  return "It was read column by column; it lies row by row in memory.";
}

// The same values in the same order, begun too early or too late. What fell off at an end, or came in there, is not
// compared; but at least three quarters of the values have to be left, and not all of them equal.
std::string shifted(const Flat& held, const Flat& wanted) {
  const Index size = static_cast<Index>(wanted.size());
  if (held.size() != wanted.size() || size < 2) return "";
  if (std::all_of(wanted.begin(), wanted.end(), [&](float value) { return value == wanted[0]; })) return "";
  for (Index k = 1; k <= std::min(kLargestShift, size / 4); ++k) {
    const std::size_t bytes = static_cast<std::size_t>(size - k) * sizeof(float);
    const char* elements = k == 1 ? "element" : "elements";
    if (std::memcmp(held.data(), wanted.data() + k, bytes) == 0)
      return fmt::format("All values lie {} {} too early: what should come first is missing.", k, elements);
    if (std::memcmp(held.data() + k, wanted.data(), bytes) == 0)
      return fmt::format("All values lie {} {} too late.", k, elements);
  }
  return "";
}

// "Every element is 4 times too large."
std::string scaled(const Flat& held, const Flat& wanted) {
  std::optional<double> found;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (wanted[i] == 0 || !std::isfinite(held[i])) {
      if (held[i] != wanted[i]) return "";
      continue;
    }
    const double here = static_cast<double>(held[i]) / static_cast<double>(wanted[i]);
    if (!found) found = here;
    if (std::fabs(here - *found) > 1e-6 * std::fabs(*found)) return "";
  }
  const double factor = found.value_or(0);
  if (factor == -1) return "Every element has the wrong sign.";
  // A product of several roundings still counts as 4 times as large; anything odd is not a likeness.
  const double times = std::fabs(factor) >= 1 ? factor : 1 / factor;
  if (factor == 0 || std::fabs(times - std::round(times)) > 1e-5 || std::fabs(times) < 1.5) return "";
  return fmt::format("Every element is {:.0f} times too {}.", times, std::fabs(factor) >= 1 ? "large" : "small");
}

std::string nearly_right(const Flat& held, const Flat& wanted) {
  long long most = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const long long apart = ulp_distance(held[i], wanted[i]);
    // Next to zero, a distance in ULP says little.
    if (apart < 0 || apart > kLastBits) return "";
    most = std::max(most, apart);
  }
  if (most == 0) return "It differs in the sign of a zero alone.";
  return fmt::format(
      "Only last bits differ, by {} ULP at most: the same numbers, added or multiplied in another order or precision.",
      most);
}

}  // namespace

void guard_end(Flat& values) {
  const std::size_t size = values.size();
  values.resize(4 * size + 64, kGuard);
  values.resize(size);  // the memory behind it stays as it is
}

std::string likeness(const Matrix& held, const Matrix& wanted, int slices, const std::vector<Look>& looks) {
  if (held.empty() && !wanted.empty()) return "It is empty.";
  for (const Look& look : looks)
    if (same_bits(held.flat(), look.matrix.flat()) && !same_bits(held.flat(), wanted.flat()))
      return fmt::format("It is {}.", look.what);

  if (!held.empty() && all_zero(held.flat()) && !all_zero(wanted.flat())) return "All of it is zeros.";
  const bool shapes_equal = held.rows() == wanted.rows() && held.cols() == wanted.cols();
  if (!shapes_equal) {
    if (same_bits(held.flat(), wanted.flat()))
      return fmt::format("The values are right and in the right order; only the shape is not {}.",
                         shape_text(wanted.rows(), wanted.cols()));
    if (held.rows() == wanted.cols() && same_bits(held.flat(), wanted.transposed().flat()))
      return "It is the transpose.";
    return joined_along_the_other(held, wanted, slices);
  }

  if (std::any_of(held.flat().begin(), held.flat().end(), [](float value) { return same_bits({value}, {kGuard}); }))
    return "Some of it lies behind the end of what you were given.";
  const auto all_finite = [](const Flat& values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  };
  if (!all_finite(held.flat()) && all_finite(wanted.flat()))
    return "Some of it is infinite or not a number (NaN): there was a division by zero, a root of a negative number, a "
           "number that grew too large, or memory that nobody had written.";

  for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
    const std::string words = slices_mixed_up(held, wanted, dim, slices);
    if (!words.empty()) return words;
  }
  const Lines rows = lines_of(held, wanted, SplitDim::rows), columns = lines_of(held, wanted, SplitDim::columns);
  for (const std::string& words : {zero_lines(rows), zero_lines(columns)})
    if (!words.empty()) return words;
  if (same_bits(held.flat(), wanted.transposed().flat()))
    return wanted.rows() == wanted.cols() ? "It is the transpose."
                                          : "It was written column by column; a matrix lies row by row in memory.";
  const auto n = static_cast<std::size_t>(slices);
  for (const std::string& words : {interleaved(columns, n), interleaved(rows, n), read_by_columns(held, wanted, slices),
                                   joined_along_the_other(held, wanted, slices), shifted(held.flat(), wanted.flat()),
                                   scaled(held.flat(), wanted.flat()), nearly_right(held.flat(), wanted.flat())})
    if (!words.empty()) return words;
  return "";
}

}  // namespace muonwalk::sim
