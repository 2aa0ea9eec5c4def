#include "tests/lessons/bug_excerpt.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/ranks/run_program.hpp"

namespace muonwalk::testing {

namespace {

// For each line of `after`, whether it is part of the longest common subsequence with `before`.
std::vector<bool> lines_in_both(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  const std::size_t rows = before.size(), columns = after.size();
  std::vector<std::vector<int>> longest(rows + 1, std::vector<int>(columns + 1));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      longest[i][j] =
          before[i] == after[j] ? 1 + longest[i + 1][j + 1] : std::max(longest[i + 1][j], longest[i][j + 1]);
  std::vector<bool> both(columns);
  for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
    if (before[i] == after[j]) {
      both[j] = true;
      ++i, ++j;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number of a line and where it ends. Bits, "0x3f800000", are read as the float that they are.
struct Number {
  std::size_t end;
  double value;
};

Number number_at(const std::string& line, std::size_t begin) {
  std::size_t end = begin;
  if (line.compare(begin, 2, "0x") == 0) {
    end = std::min(line.find_first_not_of("0123456789abcdef", begin + 2), line.size());
    const std::string digits = line.substr(begin, end - begin);
    const auto bits = static_cast<std::uint32_t>(std::strtoul(digits.c_str(), nullptr, 16));
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return {end, value};
  }
  std::string text;
  for (; end < line.size(); ++end) {
    const char c = line[end];
    const bool exponent = (c == 'e' || line[end - (end > begin)] == 'e') && end > begin;
    if (!is_digit(c) && c != '.' && c != ',' && !exponent) break;
    if (c != ',') text += c;
  }
  return {end, std::strtod(text.c_str(), nullptr)};
}

// Lines whose numbers may differ between processors.
bool depends_on_processor(const std::string& line) {
  for (const char* words : {"  the rank holds ", "  the reference has ", " elements differ "})
    if (line.find(words) != std::string::npos) return true;
  return false;
}

bool near(const std::string& a, const Number& left, const std::string& b, const Number& right) {
  const double larger = std::max(std::fabs(left.value), std::fabs(right.value));
  if (a.compare(left.end, 4, " ULP") == 0 && b.compare(right.end, 4, " ULP") == 0)
    return std::min(left.value, right.value) * 2 >= larger;
  return std::fabs(left.value - right.value) <= 0.01 * larger;
}

bool same_line(const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (!depends_on_processor(a)) return false;
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const Number left = number_at(a, i), right = number_at(b, j);
      if (!near(a, left, b, right)) return false;
      i = left.end, j = right.end;
    } else if (a[i] == ' ' && b[j] == ' ') {
      // A number that is longer by a digit has one blank less beside it.
      i = std::min(a.find_first_not_of(' ', i), a.size());
      j = std::min(b.find_first_not_of(' ', j), b.size());
    } else if (a[i++] != b[j++]) {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

}  // namespace

std::string bug_excerpt(const std::string& without_bug, const std::string& with_bug) {
  const std::vector<std::string> lines = lines_of(with_bug);
  const std::vector<bool> both = lines_in_both(lines_of(without_bug), lines);
  std::vector<bool> kept(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (both[i] || lines[i].empty()) continue;
    kept[i] = true;
    std::size_t head = i;
    while (head > 0 && lines[head][0] == ' ') --head;
    kept[head] = true;
  }
  if (!lines.empty()) kept.back() = true;

  std::string excerpt;
  bool left_out = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (kept[i]) excerpt += (left_out ? "…\n" : "") + lines[i] + "\n";
    left_out = !kept[i];
  }
  return excerpt;
}

bool same_on_any_processor(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = lines_of(a), right = lines_of(b);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!same_line(left[i], right[i])) return false;
  return true;
}

}  // namespace muonwalk::testing
