#include "sim/classroom/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "src/numerics/bfloat16.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The place of a float on the number line: consecutive floats have consecutive places.
std::int64_t place_of(float value) {
  const std::uint32_t bits = float_bits(value);
  return (bits >> 31) != 0 ? -static_cast<std::int64_t>(bits & 0x7FFFFFFFu) : static_cast<std::int64_t>(bits);
}

std::vector<std::string> describe(const std::string& rank, const NamedMatrix& held, const NamedMatrix& expected,
                                  Index at) {
  const float here = held.matrix.flat()[static_cast<std::size_t>(at)];
  const float there = expected.matrix.flat()[static_cast<std::size_t>(at)];
  const long long ulp = ulp_distance(here, there);
  return {fmt::format("first difference: {}, {} row {} column {}", rank, visible_name(held.name),
                      expected.first_row + at / held.matrix.cols(), expected.first_col + at % held.matrix.cols()),
          fmt::format("  the rank holds      {}", float_text(here)),
          fmt::format("  the reference has   {}   {}", float_text(there),
                      ulp < 0 ? "one of them is not a number" : fmt::format("{} ULP apart", ulp))};
}

}  // namespace

std::vector<NamedMatrix> named(Matrix matrix, const std::string& name) {
  std::vector<NamedMatrix> matrices(1);
  matrices[0].name = name;
  matrices[0].matrix = std::move(matrix);
  return matrices;
}

std::vector<NamedMatrix> named(Flat values, const std::string& name) {
  const Index count = static_cast<Index>(values.size());
  return named(Matrix(1, count, std::move(values)), name);
}

std::string float_text(float value) { return fmt::format("{:<16.9g} 0x{:08x}", value, float_bits(value)); }

long long ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return -1;
  return std::llabs(place_of(a) - place_of(b));
}

void compare(const std::string& rank, const std::vector<NamedMatrix>& held, const std::vector<NamedMatrix>& expected,
             Comparison& comparison) {
  const auto found = [&](std::vector<std::string> words) {
    if (comparison.first.empty()) comparison.first = std::move(words);
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Matrix& wanted = expected[i].matrix;
    comparison.elements += wanted.size();
    if (i >= held.size() || held[i].name != expected[i].name) {
      comparison.different += wanted.size();
      const std::string name = visible_name(expected[i].name);
      found({i < held.size() && held.size() >= expected.size()
                 ? fmt::format("first difference: {} holds {} where {} belongs", rank, visible_name(held[i].name), name)
                 : fmt::format("first difference: {} does not hold {}", rank, name)});
      continue;
    }
    const Matrix& here = held[i].matrix;
    if (here.rows() != wanted.rows() || here.cols() != wanted.cols()) {
      comparison.different += wanted.size();
      found({fmt::format("first difference: {}, the shape of {}", rank, visible_name(expected[i].name)),
             fmt::format("  the rank holds      {}", shape_text(here.rows(), here.cols())),
             fmt::format("  the reference has   {}", shape_text(wanted.rows(), wanted.cols()))});
      continue;
    }
    if (wanted.empty() || std::memcmp(here.data(), wanted.data(), static_cast<std::size_t>(wanted.bytes())) == 0)
      continue;
    for (Index at = 0; at < wanted.size(); ++at) {
      if (float_bits(here.data()[at]) == float_bits(wanted.data()[at])) continue;
      ++comparison.different;
      if (comparison.first.empty()) found(describe(rank, held[i], expected[i], at));
    }
  }
  if (held.size() > expected.size()) {
    comparison.different += held[expected.size()].matrix.size();
    found({fmt::format("first difference: {} holds {}, which the reference does not know", rank,
                       visible_name(held[expected.size()].name))});
  }
}

std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected) {
  for (const auto& [name, number] : expected) {
    const auto found = read.find(name);
    if (found == read.end()) return fmt::format("{}: not read, should be {}", visible_name(name), number_text(number));
    if (found->second != number)
      return fmt::format("{}: read {}, should be {}", visible_name(name), number_text(found->second),
                         number_text(number));
  }
  for (const auto& [name, number] : read)
    if (expected.count(name) == 0)
      return fmt::format("{}: read {}, should not be there", visible_name(name), number_text(number));
  return "";
}

void LessonChecks::print_line(const std::string& what, const std::string& found, bool good) {
  for (const std::string& line :
       aligned_lines("check   " + what, fmt::format("{}   {}", found, good ? paint_.good("✔") : paint_.bad("✘"))))
    print_(line);
}

// What a comparison has found, with the first difference.
void LessonChecks::print_result(const std::string& what, const Comparison& comparison) {
  const bool one = grid_.size() == 1, equal = comparison.equal();
  const char* verb = equal ? (one ? "equals" : "equal") : (one ? "differs from" : "differ from");
  print_line(fmt::format("{}: {} {} the reference", what, count_text(grid_.size(), "rank"), verb),
             equal ? fmt::format("{} {}, bit for bit", number_text(comparison.elements),
                                 comparison.elements == 1 ? "element" : "elements")
                   : fmt::format("{} of {} elements differ", number_text(comparison.different),
                                 number_text(comparison.elements)),
             equal);
  for (const std::string& line : comparison.first) print_("        " + line);
}

void LessonChecks::check(const std::string& what, const Comparison& comparison) {
  if (!comparison.equal()) fail();
  print_result(what, comparison);
}

void LessonChecks::quiet_check(const std::string& what, const Comparison& comparison) {
  ++quiet_;
  of_quiet_.elements += comparison.elements;
  of_quiet_.different += comparison.different;
  if (comparison.equal()) return;
  fail();
  ++failed_quiet_;
  if (of_quiet_.equal()) print_result(what, comparison);  // at once: what follows may not come to its end
  if (of_quiet_.equal()) of_quiet_.first = comparison.first;
}

void LessonChecks::sum_up(const std::string& what) {
  const Comparison all = std::exchange(of_quiet_, {});
  const int checks = std::exchange(quiet_, 0), failed = std::exchange(failed_quiet_, 0);
  if (checks == 0)
    check(what, {0, 0, {"there was nothing to sum up: no check was made"}});
  else if (all.equal())
    print_result(what, all);
  else
    print_line(fmt::format("{}: {} of {} differ from the reference", what, failed, checks),
               fmt::format("{} of {} elements differ", number_text(all.different), number_text(all.elements)), false);
}

void LessonChecks::numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected) {
  const std::string difference =
      expected.empty() ? "there is nothing to compare with" : first_difference(read, expected);
  const bool equal = difference.empty();
  if (!equal) fail();
  print_line(
      what,
      equal ? fmt::format("{} numbers, all equal", number_text(static_cast<long long>(expected.size()))) : "not equal",
      equal);
  if (equal) return;
  for (const std::string& line : wrap_text("first difference: " + difference, 2, output_columns() - 8))
    print_("        " + line);
}

}  // namespace muonwalk::sim
