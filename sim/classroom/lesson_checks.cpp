#include "sim/classroom/lesson_checks.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/text/text.hpp"

namespace muonwalk::sim {

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
