#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lessons/lesson_12_matched_rms/tables.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string line_text(const std::string& about, const MuonSettings& settings) {
  return std::find_if(recipe_lines().begin(), recipe_lines().end(),
                      [&](const RecipeLine& line) { return line.about == about; })
      ->text(settings);
}

std::string defaults_table() {
  Table table({{"by default"},
               {"lr", Side::right},
               {"μ", Side::right},
               {"decay", Side::right},
               {"Nesterov"},
               {"divides by"},
               {"coefficients"},
               {"scale"}});
  std::set<int> steps;
  std::string moments;
  for (const Recipe& recipe : recipes()) {
    const MuonSettings& s = recipe.settings;
    table.row({recipe.name, fmt::format("{:g}", s.lr), fmt::format("{:g}", s.momentum),
               fmt::format("{:g}", s.weight_decay),
               fmt::format("{}{}", s.nesterov ? "on" : "off", recipe.has_nesterov ? "" : ", fixed"),
               line_text("divides by", s), recipe.coefficients, line_text("scale", s)});
    steps.insert(s.newton_schulz.steps);
    if (s.second_moment.used) moments += fmt::format(", {} (β₂ {:g})", recipe.name, s.second_moment.beta2);
  }
  return table.text() + fmt::format("\nSteps of Newton–Schulz: {}. With a second moment as well: {}.",
                                    fmt::join(steps, ", "), moments.substr(2));
}

std::string classes_text() {
  std::string text;
  std::string last;
  for (const Recipe& recipe : recipes()) {
    if (recipe.source != last)
      text += "\n" + lines_text(paragraph(fmt::format("{:16} {}", recipe.name, recipe.source), 2, 19));
    last = recipe.source;
  }
  return "Their order of operations was read in" + text;
}

std::string coefficients_table() {
  Table table({{"coefficients"}, {"a", Digits{4}}, {"b", Digits{4}}, {"c", Digits{4}}, {"steps"}, {"and then"}});
  for (const CoefficientSet& set : coefficient_sets()) {
    std::size_t begin = 0;
    while (begin < set.quintics.size()) {
      const Quintic& q = set.quintics[begin];
      std::size_t end = begin + 1;  // of those that are the same
      while (end < set.quintics.size() && set.quintics[end].a == q.a) ++end;
      table.row({begin == 0 ? set.name : "", static_cast<double>(q.a), static_cast<double>(q.b),
                 static_cast<double>(q.c),
                 end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}–{}", begin + 1, end),
                 end == set.quintics.size() ? after_last_text(set.after) : ""});
      begin = end;
    }
  }
  return table.text();
}

MuonSettings with_steps(const std::string& recipe, int steps, Precision precision) {
  MuonSettings settings = for_tables(recipe_named(recipe).settings);
  if (steps > 0) take_coefficients(settings.newton_schulz, recipe_named(recipe).coefficients, steps);
  settings.newton_schulz.precision = precision;
  return settings;
}

// "0.51 to 0.65"
std::string values_text(const Matrix& x, const std::string& recipe, int steps) {
  const std::vector<double> all =
      singular_values(newton_schulz(x, with_steps(recipe, steps, Precision::fp32).newton_schulz));
  return fmt::format("{:.2f} to {:.2f}", all.back(), all.front());
}

std::string surprises_text(std::uint64_t seed) {
  const Matrix x = noise({64, 160}, seed, 0);
  const auto direction = [&](const std::string& recipe) {
    return newton_schulz(x, with_steps(recipe, 0, Precision::bf16).newton_schulz);
  };
  const Matrix dion = direction("dion"), simple = direction("emerging-simple");
  const double relative = distance(direction("nanochat"), dion) / frobenius_norm(dion);
  const auto off_float32 = [&](bool gram) {
    NewtonSchulzSettings settings = with_steps("gram", 0, Precision::fp32).newton_schulz;
    settings.gram = false;
    const Matrix expected = newton_schulz(x, settings);
    settings.gram = gram, settings.precision = Precision::bf16;
    return distance(newton_schulz(x, settings), expected) / frobenius_norm(expected);
  };
  const bool same = distance(direction("emerging-deepseekv4"), simple) == 0;
  const std::vector<std::string> all = {
      fmt::format("deepseekv4 with its default of five steps is {} simple, {}: its own two tuples come after eight",
                  same ? "the same as" : "not", same ? "bit for bit" : "against what was published"),
      fmt::format("aol was made for four steps; five are the default and begin again: singular values of {}, and {} "
                  "after four",
                  values_text(x, "emerging-aol", 5), values_text(x, "emerging-aol", 4)),
      fmt::format("quintic begins again as well, so that seven steps leave {}, and five {}",
                  values_text(x, "emerging", 7), values_text(x, "emerging", 5)),
      fmt::format("polar_express takes five of its eight tuples by default: {}; all eight: {}",
                  values_text(x, "emerging-polar-express", 5), values_text(x, "emerging-polar-express", 8)),
      fmt::format(
          "dion and nanochat have the same tuples and come out {:.0f} % apart, in bf16: one divides by 1.02 ‖X‖ and "
          "the other by 1.01 ‖X‖, after it has made the rows equal",
          100 * relative),
      "compiled and eager code of one class are apart as well: 1.2 % (dion-quintic) to 7.7 % (nanochat) of the way of "
      "three steps, with torch.compile of PyTorch 2.13.0 on a CPU; the recipes are the eager ones",
      fmt::format("gram iterates on X Xᵀ, with fewer products and more rounding: in bf16 it comes out {:.0f} % from "
                  "float32, and on X itself {:.0f} %. Its class takes float16, which no rank here does",
                  100 * off_float32(true), 100 * off_float32(false)),
      "torch.optim.Muon: its docstring writes m = μ m + g and an ε that is added; its code takes the mean (lerp), and "
      "the larger of norm and ε",
      "nanochat's class has no defaults; its training script passes a decay of 0.28 that falls to zero, and a momentum "
      "that rises from 0.85 to 0.97 and falls to 0.9. Moonlight's script says that lr 0.02 is good, and takes 0.001",
      "Megatron-LM has momentum 0.9 on its command line and 0.95 in its config, and Nesterov off in both, while the "
      "Megatron class's own default is on"};
  std::string text = "What may surprise, on a random 64 × 160 where it is measured:";
  for (const std::string& each : all) text += "\n" + lines_text(paragraph("- " + each, 2, 4));
  return text;
}

}  // namespace

std::string recipe_tables(std::uint64_t seed) {
  return defaults_table() + "\n" + classes_text() + "\n\n" + coefficients_table() + "\n\n" + surprises_text(seed) +
         "\n";
}

}  // namespace muonwalk::sim
