#include "tools/scale/term.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

std::string with_prefix(double number, const std::string& unit) {
  constexpr int kDigits = 4;
  return unit == "s" && number != 0 && std::abs(number) < 1000 ? seconds_text(number, kDigits)
                                                               : prefixed_text(number, unit, kDigits);
}

std::string input_text(const TermInput& input) {
  std::string text = fmt::format("{} = {}", input.name, amount_text(input.value, input.unit));
  if (input.source[0] != '\0') text += fmt::format(" ({})", input.source);
  if (input.high > input.low)
    text += fmt::format(", from {} to {}", amount_text(input.low, input.unit), amount_text(input.high, input.unit));
  if (input.nearest_at)
    text += fmt::format(", outside of what was measured: the nearest point, at {}",
                        amount_text(*input.nearest_at, input.unit));
  return text;
}

using Form = Formula::Form;

std::string bracketed(const Formula& formula, bool brackets) {
  const std::string text = formula.text.empty() ? fmt::format("{:g}", formula.value) : formula.text;
  return brackets ? "(" + text + ")" : text;
}

void add_input(std::vector<TermInput>& inputs, const TermInput& more) {
  const auto same = [&more](const TermInput& each) { return std::string_view(each.name) == more.name; };
  if (std::none_of(inputs.begin(), inputs.end(), same)) inputs.push_back(more);
}

Formula joined(const Formula& a, const char* sign, const Formula& b, Form form, double value) {
  Formula result(value);
  if (a.inputs.empty() && b.inputs.empty()) return result;
  const bool product = form == Form::product, divides = std::string_view(sign) == "/";
  const bool right =
      b.form == Form::sum ? product || std::string_view(sign) == "−" : divides && b.form == Form::product;
  result.text = bracketed(a, product && a.form == Form::sum) + " " + sign + " " + bracketed(b, right);
  result.inputs = a.inputs;
  result.form = form;
  for (const TermInput& each : b.inputs) add_input(result.inputs, each);
  return result;
}

}  // namespace

Formula operator*(const Formula& a, const Formula& b) { return joined(a, "·", b, Form::product, a.value * b.value); }
Formula operator/(const Formula& a, const Formula& b) { return joined(a, "/", b, Form::product, a.value / b.value); }
Formula operator+(const Formula& a, const Formula& b) { return joined(a, "+", b, Form::sum, a.value + b.value); }
Formula operator-(const Formula& a, const Formula& b) { return joined(a, "−", b, Form::sum, a.value - b.value); }

Formula at_least_0(Formula formula) {
  formula.value = std::max(0.0, formula.value);
  if (!formula.inputs.empty()) formula.text = "max(0, " + formula.text + ")";
  formula.form = Form::atom;
  return formula;
}

Formula with(Formula formula, const TermInput& more) {
  if (!formula.inputs.empty()) add_input(formula.inputs, more);
  return formula;
}

Term term_of(const TermKind& kind, Formula formula, double bytes_sent) {
  Term term{&kind, formula.value, std::move(formula.text), std::move(formula.inputs), bytes_sent};
  if (bytes_sent > 0) term.inputs.push_back({"bytes sent", bytes_sent, "B", "by one rank, as a ring sends them"});
  return term;
}

std::string amount_text(double number, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.6g}", number) : with_prefix(number, unit);
}

bool Term::extrapolated() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const TermInput& input) { return input.nearest_at.has_value() || input.elsewhere; });
}

std::pair<double, double> Term::band() const {
  for (const TermInput& input : inputs)
    if (input.high > 0) return {amount * input.value / input.high, amount * input.value / input.low};
  return {amount, amount};
}

std::pair<double, double> total_band(const std::vector<Term>& terms) {
  std::pair<double, double> sum{0, 0};
  for (const Term& term : terms) {
    const auto [least, most] = term.band();
    sum.first += least;
    sum.second += most;
  }
  return sum;
}

double total(const std::vector<Term>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const Term& term) { return sum + term.amount; });
}

bool any_extrapolated(const std::vector<Term>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.extrapolated(); });
}

std::vector<std::string> explain(const std::vector<Term>& terms, const char* unit) {
  const double all = total(terms);
  std::vector<std::string> lines;
  for (const Term& term : terms) {
    lines.push_back(fmt::format("{}  {}{}", pad_right(term.kind->name, 44),
                                pad_left(with_prefix(term.amount, unit), 12),
                                all > 0 ? pad_left(percent_text(term.amount / all), 10) : ""));
    append(lines, paragraph(fmt::format("= {}", term.formula), 4, 6));
    for (const TermInput& input : term.inputs) append(lines, paragraph(input_text(input), 6, 8));
  }
  lines.push_back(fmt::format("{}  {}", pad_right("all", 44), pad_left(with_prefix(all, unit), 12)));
  return lines;
}

}  // namespace muonwalk::sim
