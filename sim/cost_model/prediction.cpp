#include "sim/cost_model/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string with_prefix(double number, const std::string& unit) {
  if (number == 0) return "0 " + unit;
  struct Prefix {
    double size;
    const char* name;
  };
  static const Prefix kLarge[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  static const Prefix kSmall[] = {{1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}};
  const double size = std::abs(number);
  if (size >= 1000)
    for (const Prefix& prefix : kLarge)
      if (size >= prefix.size) return fmt::format("{:.4g} {}{}", number / prefix.size, prefix.name, unit);
  if (size < 1 && unit == "s")
    for (const Prefix& prefix : kSmall)
      if (size >= prefix.size || &prefix == &kSmall[2])
        return fmt::format("{:.4g} {}{}", number / prefix.size, prefix.name, unit);
  return fmt::format("{:.4g} {}", number, unit);
}

std::string input_text(const TermInput& input) {
  std::string text = fmt::format("{} = {}", input.name, amount_text(input.value, input.unit));
  if (input.source[0] != '\0') text += fmt::format(" ({})", input.source);
  if (input.extrapolated)
    text += fmt::format(", outside of what was measured: the nearest point, at {}",
                        amount_text(input.nearest_at, input.unit));
  return text;
}

}  // namespace

std::string amount_text(double number, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.6g}", number) : with_prefix(number, unit);
}

bool Term::extrapolated() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const TermInput& input) { return input.extrapolated; });
}

double total(const std::vector<Term>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const Term& term) { return sum + term.amount; });
}

bool any_extrapolated(const std::vector<Term>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.extrapolated(); });
}

std::string explain(const std::vector<Term>& terms, const char* unit) {
  const double all = total(terms);
  std::string text;
  for (const Term& term : terms) {
    text += fmt::format("{}  {}{}\n", pad_right(term.name, 44), pad_left(with_prefix(term.amount, unit), 12),
                        all > 0 ? pad_left(percent_text(term.amount / all), 10) : "");
    for (const std::string& line : paragraph(fmt::format("= {}", term.formula), 4, 6)) text += line + "\n";
    for (const TermInput& input : term.inputs)
      for (const std::string& line : paragraph(input_text(input), 6, 8)) text += line + "\n";
  }
  return text + fmt::format("{}  {}\n", pad_right("all", 44), pad_left(with_prefix(all, unit), 12));
}

}  // namespace muonwalk::sim
