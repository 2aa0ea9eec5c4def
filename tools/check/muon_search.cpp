// Which matrices, of what, by which Newton–Schulz: known recipes first, then what a bug may have made of them.

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "tools/check/explanation.hpp"

namespace muonwalk::check {
namespace {

// Rows of each block (or columns, where it has more of them and `longer_side`), as groups of their own.
std::vector<Block> lines_of(const Cutting& cutting, bool longer_side) {
  std::vector<Block> lines;
  for (const Block& block : cutting.blocks) {
    const bool of_cols = longer_side && block.cols.size() > block.rows.size();
    for (const Index line : of_cols ? block.cols : block.rows)
      lines.push_back(of_cols ? Block{block.rows, {line}} : Block{{line}, block.cols});
  }
  return lines;
}

// After Newton–Schulz, each line may be multiplied by a number of its own that nobody knows: more freedom, so a little
// is taken off. In a first step the number is known.
Explanation fitted(const Subject& s, const Flat& update, const Cutting& cutting, const Orthogonalizer& by,
                   const Input& input) {
  Explanation e{input.kind.empty() ? Claim(cutting) : Claim(input), "muon", by, input};
  const int steps = by.settings.steps, asked = s.parameter.hyper.ns_steps.value_or(steps);
  if (e.kind.empty() && by.recipe->has_steps && asked != steps)
    e.kind = "ns_steps", e.how = fmt::format("{} steps, where hyper says {}", steps, asked);
  const std::vector<Block> groups = by.lines.used ? lines_of(cutting, by.lines.longer_side) : cutting.blocks;
  for (const Decays decays : {Decays::everywhere, Decays::where_signs_agree}) {
    Fit fit = fit_of(s.step, update, groups, decays);
    if (by.lines.used) {
      const double each = static_cast<double>(update.size()) / static_cast<double>(groups.size());
      fit.distance = std::min(1.0, fit.distance / (1 - 1 / std::max(2.0, each)));
      double least = 1e300, most = -1e300;
      for (const Fit::Group& of : fit.groups)
        if (of.norm > 0) least = std::min(least, of.beta), most = std::max(most, of.beta);
      if (!(least > 0) || most > 8 * least) continue;
    }
    const bool cautious = by.recipe->settings.arithmetic.decay == Decay::cautious;
    if (decays == Decays::everywhere || fit.distance < (cautious ? 1 : 0.7) * e.fit.distance)
      e.fit = fit, e.decays = decays;
  }
  return e;
}

// The nearest of several ways to orthogonalize, or `best` where that is nearer.
Explanation nearer(const Subject& s, const Cutting& cutting, const Input& input,
                   const std::vector<Orthogonalizer>& ways, Explanation best = {}) {
  std::map<std::string, double> in_fp32;  // only what comes near there is looked at in bf16, which is slower
  double least = 0.4;
  for (const Orthogonalizer& one : ways) {
    double& exact = in_fp32.emplace(one.key(false), 0).first->second;
    const bool bf16 = one.settings.precision == Precision::bf16;
    const bool far = exact > 0.15 && (exact > 1.5 * least || !cutting.kind.empty());
    if (bf16 && far && one.recipe->coefficients != "cans") continue;
    const Explanation e = fitted(s, s.orthogonalized(input, cutting, one), cutting, one, input);
    if (!bf16) exact = e.fit.distance, least = std::min(least, exact);
    if (e.fit.distance < (one.lines.used ? 0.5 : 1) * best.fit.distance) best = e;
    if (!bf16 && e.fit.distance < 1e-3) break;  // others are percents away, and only roundings could be nearer
  }
  return best;
}

}  // namespace

std::string Orthogonalizer::key(bool roundings) const {
  const Normalization& n = settings.normalization;
  std::string text = fmt::format("{} {} {} {} {} {}", recipe->coefficients, settings.steps, n.cushion, n.equal_rows,
                                 lines.used, lines.longer_side);
  if (roundings && settings.gram) text += " gram";
  if (roundings && settings.precision == Precision::bf16)
    text += fmt::format(" bf16 {} {} {} {}", static_cast<int>(settings.lines), n.round_first, settings.from_the_right,
                        n.floor);
  return text;
}

std::vector<Orthogonalizer> Subject::ways(bool more_steps) const {
  std::vector<int> steps = {0};  // the class's own
  if (parameter.hyper.ns_steps) steps = {*parameter.hyper.ns_steps, 0};
  for (int count = 3; more_steps && count <= 12; ++count) steps.push_back(count);
  std::vector<Orthogonalizer> all;
  std::set<std::string> seen;
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Recipe& recipe : recipes())
      for (const int count : steps) try {
          Orthogonalizer one{&recipe, recipe.settings.newton_schulz, recipe.settings.second_moment};
          one.settings.precision = precision, one.settings.threads = habits.threads;
          one.settings.products = Products::chain;  // its code is made for each kind of processor
          if (count > 0) take_coefficients(one.settings, recipe.coefficients, count);
          if (seen.insert(one.key(true) + precision_name(precision)).second) all.push_back(one);
        } catch (const UsageError&) {  // they don't reach so far
        }
  return all;
}

Flat Subject::orthogonalized(const Input& input, const Cutting& cutting, const Orthogonalizer& by) const {
  Flat made = input.made(view), update(made.size());
  NewtonSchulzSettings settings = by.settings;
  for (const Block& part : cutting.normed) {
    const double norm = std::max(norm_of(part.taken(made).flat()), 1e-30);
    part.each([&](std::size_t i) { made[i] = static_cast<float>(made[i] / norm); });
  }
  if (!cutting.normed.empty()) settings.normalization.cushion /= std::sqrt(static_cast<double>(cutting.normed.size()));
  for (std::size_t b = 0; b < cutting.blocks.size(); ++b) {
    const Matrix x = cutting.blocks[b].taken(made);
    settings.threads = x.size() < 256 * 256 ? 1 : by.settings.threads;  // threads wait longer for each other than that
    const Matrix o = newton_schulz(x, settings);
    const float* from = o.data();
    (cutting.lands.empty() ? cutting.blocks : cutting.lands)[b].each([&](std::size_t i) { update[i] = *from++; });
  }
  return update;
}

void sort(std::vector<Explanation>& explanations) {
  std::stable_sort(explanations.begin(), explanations.end(),
                   [](const auto& x, const auto& y) { return x.fit.distance < y.fit.distance; });
}

Explanation nearest_recipe(const Subject& s) {
  Explanation best;
  const std::optional<Orthogonalizer>& habit = s.habits.orthogonalizer;
  double& reached = s.habits.reached[s.role];
  for (const Input& input : s.moments.inputs) {
    const bool other = s.habits.nesterov && input.nesterov && *input.nesterov != *s.habits.nesterov;
    if (habit && input.kind.empty() && !other) best = nearer(s, s.meant, input, {*habit}, best);
    // As near as the best of all ways came to a matrix of its kind; another recipe is at least 3 % off.
    if (best.fit.distance <= std::max(s.step.within(0.006), std::min(1.25 * reached, 0.015))) return best;
  }
  if (habit && best.fit.distance > 0.3) return best;  // no other recipe's rounding is so far off
  for (const Input& input : s.moments.inputs)
    if (input.kind.empty()) best = nearer(s, s.meant, input, s.ways(), best);
  reached = best.fit.distance;
  return best;
}

std::vector<Explanation> other_explanations(const Subject& s) {
  struct Candidate {
    double distance;
    const Cutting* cutting;
    const Input* input;
    bool operator<(const Candidate& other) const { return distance < other.distance; }
    std::string name() const { return cutting->kind + cutting->how + input->kind + input->how; }
  };
  std::vector<Candidate> candidates;
  // A quick look first, with coefficients that may not be the right ones.
  const std::optional<Orthogonalizer>& habit = s.habits.orthogonalizer;
  Orthogonalizer quick{&recipe_named("emerging"), recipe_named("emerging").settings.newton_schulz};
  if (habit) quick.settings = habit->settings;
  quick.settings.precision = Precision::fp32, quick.settings.threads = s.habits.threads;
  quick.settings.normalization.equal_rows = false;
  const auto [role, fresh] = s.habits.nearest.emplace(s.role, std::set<std::string>());
  std::set<std::string>& nearest = role->second;
  if (!fresh && nearest.empty()) return {};  // of what was alike, nothing explained any
  const std::vector<Cutting> all = cuttings(s.parameter);
  for (const Input& input : s.moments.inputs)
    for (const Cutting& cutting : all) {
      if (input.rounds_otherwise || (!input.kind.empty() && !cutting.kind.empty())) break;
      Candidate candidate{0, &cutting, &input};
      if (!nearest.empty() && !cutting.kind.empty() && nearest.count(candidate.name()) == 0) continue;
      candidate.distance = fit_of(s.step, s.orthogonalized(input, cutting, quick), cutting.blocks).distance;
      candidates.push_back(candidate);
    }
  std::stable_sort(candidates.begin(), candidates.end());
  std::vector<Explanation> found;
  for (const Candidate& of : candidates) {
    if (found.size() >= 6 && !of.cutting->kind.empty()) continue;
    nearest.insert(of.name());
    found.push_back(nearer(s, *of.cutting, *of.input, habit ? std::vector{*habit} : s.ways()));
  }
  sort(found);
  // A program has one number of steps: it is looked for in the first matrix that nothing else explains.
  for (const Input& input : s.moments.inputs)
    if (input.kind.empty() && found.front().fit.distance > s.limit() && s.habits.nearest.size() == 1)
      found.push_back(nearer(s, s.meant, input, s.ways(true)));
  sort(found);
  if (!found.empty() && found.front().fit.distance > 0.15) nearest.clear();
  return found;
}

}  // namespace muonwalk::check
