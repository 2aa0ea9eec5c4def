// Which matrices, of what, by which Newton–Schulz: known recipes first, then everything that a bug may have made of
// them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/errors.hpp"
#include "src/numerics/bf16_rounding.hpp"
#include "tools/check/explanation.hpp"

namespace muonwalk::check {
namespace {

// Rows of each block (or columns, where it has more of them and `longer_side`), as groups of their own.
std::vector<Block> lines_of(const Cutting& cutting, bool longer_side) {
  std::vector<Block> lines;
  for (const Block& block : cutting.blocks) {
    if (longer_side && block.cols.size() > block.rows.size())
      for (const Index col : block.cols) lines.push_back({block.rows, {col}});
    else
      for (const Index row : block.rows) lines.push_back({{row}, block.cols});
  }
  return lines;
}

// After Newton–Schulz, each line is multiplied by a number of its own that nobody knows: more freedom, so a little is
// taken off. In a first step the number is known.
Explanation fitted(const Subject& s, const Flat& update, const Cutting& cutting, const Orthogonalizer& by,
                   const Input& input) {
  Explanation e{input.kind.empty() ? cutting.kind : input.kind, cutting.axis,
                input.kind.empty() ? cutting.how : input.how, "muon", by.recipe};
  e.settings = by.settings;
  e.coefficients = by.recipe != nullptr ? coefficients_name(by.settings) : "";
  e.steps = by.settings.steps, e.nesterov = input.nesterov, e.input = input;
  const std::vector<Block> groups = by.lines_scaled ? lines_of(cutting, by.longer_side) : cutting.blocks;
  e.lines_scaled = by.lines_scaled;
  e.fit.distance = 2;
  for (const Decays decays : {Decays::everywhere, Decays::where_signs_agree}) {
    Fit fit = fit_of(s.step, update, groups, decays);
    if (by.lines_scaled) {
      fit.distance = std::min(
          1.0, fit.distance / (1 - 1.0 / static_cast<double>(std::max<std::size_t>(2, update.size() / groups.size()))));
      double least = 1e300, most = -1e300;
      for (std::size_t i = 0; i < fit.beta.size(); ++i)
        if (fit.norm[i] > 0) least = std::min(least, fit.beta[i]), most = std::max(most, fit.beta[i]);
      if (!(least > 0) || most > 8 * least) continue;
    }
    const bool cautious = by.recipe != nullptr && by.recipe->settings.arithmetic.decay == Decay::cautious;
    const bool better = decays == Decays::everywhere || fit.distance < (cautious ? 1 : 0.7) * e.fit.distance;
    if (better) e.fit = fit, e.decays = decays;
  }
  for (const Block& block : groups)
    e.shapes.emplace_back(static_cast<Index>(block.rows.size()), static_cast<Index>(block.cols.size()));
  return e;
}

bool explains(const Explanation& e, double limit) { return e.fit.distance <= limit; }

// Blocks in the basis of their singular vectors.
struct Spectra {
  std::vector<Spectrum> blocks;
  double free_distance = 1;  // with whatever function of the singular values
  double alpha = 0;
};

Spectra spectra_of(const Subject& s, const Flat& input, const Cutting& cutting) {
  Spectra all;
  double w = s.step.of_weights, dw = 0, d = s.step.squares, freedom = 0;
  for (std::size_t i = 0; i < s.step.moved.size(); ++i)
    dw += static_cast<double>(s.step.moved[i]) * (*s.view.before)[i];
  const double whole_dw = dw;
  for (const Block& block : cutting.blocks) {
    all.blocks.push_back(
        spectrum_of(block.taken(input), block.taken(s.step.moved, true), block.taken(*s.view.before, true)));
    const Spectrum& spectrum = all.blocks.back();
    for (std::size_t i = 0; i < spectrum.values.size(); ++i) {
      d -= spectrum.step[i] * spectrum.step[i], w -= spectrum.weights[i] * spectrum.weights[i];
      dw -= spectrum.step[i] * spectrum.weights[i];
    }
    freedom += static_cast<double>(spectrum.values.size());
  }
  if (w > 1e-6 * s.step.of_weights) all.alpha = -dw / w, d -= dw * dw / w;
  const double update = s.step.squares + 2 * all.alpha * whole_dw + all.alpha * all.alpha * s.step.of_weights;
  const double share = 1 - std::min(0.9, freedom / static_cast<double>(input.size()));
  if (update > s.step.rounding)
    all.free_distance = std::sqrt(std::clamp((d / share - s.step.rounding) / (update - s.step.rounding), 0.0, 1.0));
  return all;
}

// How far a polynomial is from what is seen along the singular vectors, relative to it; β is free for each block.
// `epsilon` is added to the norm.
double spectral_distance(const Spectra& spectra, const Polynomials& polynomials, double epsilon) {
  double left = 0, whole = 0;
  for (const Spectrum& spectrum : spectra.blocks) {
    double of = 0, squares = 0, sum = 0;
    for (std::size_t i = 0; i < spectrum.values.size(); ++i) {
      const double seen = spectrum.step[i] + spectra.alpha * spectrum.weights[i];
      const double made = polynomials(spectrum.values[i] / (polynomials.cushion * spectrum.norm + epsilon));
      of += seen * made, squares += made * made, sum += seen * seen;
    }
    left += squares > 0 ? sum - of * of / squares : sum, whole += sum;
  }
  return whole > 0 && std::isfinite(left) ? std::sqrt(std::max(0.0, left) / whole) : 1;
}

// Slices, each divided by its own norm.
Flat divided_by_own_norm(const Flat& input, const Stack& stack, const Slices& slices) {
  Flat divided = input;
  for (std::size_t k = 0; k + 1 < slices.bounds.size(); ++k) {
    double squares = 0;
    const auto each = [&](const auto& act) {
      for (Index i = 0; i < stack.size(); ++i) {
        const Index at = slices.of_rows ? i / stack.cols % stack.rows : i % stack.cols;
        if (at >= slices.bounds[k] && at < slices.bounds[k + 1]) act(divided[static_cast<std::size_t>(i)]);
      }
    };
    each([&](float value) { squares += static_cast<double>(value) * value; });
    if (squares > 0) each([&](float& value) { value = static_cast<float>(value / std::sqrt(squares)); });
  }
  return divided;
}

struct Candidate {
  Cutting cutting;
  Input input;
  double score = 1;
  bool as_it_is = false;
  Flat made = {};  // empty: from the input
};

// The best polynomial for a candidate, then Newton–Schulz with it in all the roundings of known recipes.
std::vector<Explanation> tried(const Subject& s, const Candidate& candidate, const Habits& habits) {
  const Flat input = candidate.made.empty() ? candidate.input.made(s.view) : candidate.made;
  Spectra spectra = spectra_of(s, input, candidate.cutting);
  if (candidate.as_it_is)
    for (Spectrum& each : spectra.blocks) each.norm = 1;
  const Polynomials* best = nullptr;
  double nearest = 2, epsilon = 0;
  const auto look = [&](const Polynomials& one, double added, double margin) {
    const double distance = spectral_distance(spectra, one, added);
    if (distance < margin * nearest - 1e-4) best = &one, nearest = distance, epsilon = added;
  };
  const std::optional<int> asked = s.parameter.hyper.ns_steps;
  for (const bool expected : {true, false})
    for (const Polynomials& one : polynomials())
      if ((one.known && (asked ? one.steps == *asked : one.steps == 5)) == expected)
        look(one, 0, expected ? 1 : one.known ? 0.7 : 0.5);
  double norm = 1e300;
  for (const Spectrum& each : spectra.blocks)
    if (each.norm > 0) norm = std::min(norm, each.norm);
  for (double added = 1e-15; added < 1e-2; added *= 10)
    for (const Polynomials& one : polynomials())
      if (added > 0.01 * norm && one.known && one.steps == asked.value_or(5)) look(one, added, 0.6);

  std::vector<Explanation> all;
  for (const Orthogonalizer& one : orthogonalizers(best->steps))
    if (coefficients_name(one.settings) == best->coefficients && one.settings.steps == best->steps && epsilon == 0 &&
        !one.lines_scaled) {
      Orthogonalizer by = one;
      by.settings.threads = habits.threads;
      all.push_back(fitted(s, orthogonalized(input, candidate.cutting, by.settings, candidate.as_it_is),
                           candidate.cutting, by, candidate.input));
    }
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Orthogonalizer exact;
    exact.settings.precision = precision;
    exact.settings.threads = habits.threads;
    exact.settings.schedule = best->quintics, exact.settings.steps = best->steps;
    exact.settings.lines = IterationLines::one_call;
    exact.settings.normalization.cushion = best->cushion;
    exact.settings.normalization.epsilon = std::max(epsilon, 1e-30);
    exact.settings.normalization.round_first = false;
    all.push_back(fitted(s, orthogonalized(input, candidate.cutting, exact.settings, candidate.as_it_is),
                         candidate.cutting, exact, candidate.input));
    all.back().coefficients = best->coefficients;
    if (all.back().kind.empty() && !best->known)
      all.back().kind = "ns_coefficients", all.back().how = best->coefficients;
    if (all.back().kind.empty() && epsilon > 0)
      all.back().kind = "eps_swallows",
      all.back().how = fmt::format("{:.0e} is added to a norm of {:.2e}", epsilon, norm);
  }
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.fit.distance < y.fit.distance; });
  Explanation& first = all.front();
  // The right singular vectors and a function of the singular values that nobody has.
  const bool exact = first.settings.precision == Precision::fp32 && nearest > 0.01 && spectra.free_distance < 5e-4;
  const bool far =
      spectra.free_distance < 0.06 && nearest > 0.04 && first.fit.distance > std::max(0.05, 3 * spectra.free_distance);
  if (first.kind.empty() && (exact || far)) {
    first.kind = "ns_coefficients", first.how = "of no known set", first.coefficients.clear();
    first.fit.distance = spectra.free_distance;
  }
  all.resize(1);
  return all;
}

}  // namespace

Explanation nearest_recipe(const Subject& s, const Habits& habits) {
  const Cutting meant = meant_cutting(s.parameter);
  Explanation best;
  best.fit.distance = 2;
  const double sure = 0.006 + 0.35 * s.step.noise();
  const auto attempt = [&](const Orthogonalizer& one, const Input& input, const Flat& made) {
    Orthogonalizer by = one;
    by.settings.threads = habits.threads;
    const Explanation e = fitted(s, orthogonalized(made, meant, by.settings), meant, by, input);
    const bool plainer = !e.lines_scaled || e.fit.distance < 0.5 * best.fit.distance;
    if (e.fit.distance < best.fit.distance && plainer) best = e;
    return e.fit.distance;
  };
  for (const Input& input : s.moments.inputs) {
    if (!input.kind.empty()) continue;
    if (!habits.orthogonalizer || (input.nesterov && habits.nesterov && *input.nesterov != *habits.nesterov)) continue;
    attempt(*habits.orthogonalizer, input, input.made(s.view));
    if (explains(best, sure)) return best;
  }
  if (habits.orthogonalizer && best.fit.distance > 0.3) return best;  // no other recipe's rounding is so far off
  for (const Input& input : s.moments.inputs) {
    if (!input.kind.empty()) continue;
    const Flat made = input.made(s.view);
    std::map<std::string, double> in_fp32;
    for (const Orthogonalizer& one : orthogonalizers(s.parameter.hyper.ns_steps)) {
      const NewtonSchulzSettings& n = one.settings;
      const std::string twin = fmt::format("{} {} {} {} {}", coefficients_name(n), n.steps, n.normalization.cushion,
                                           n.normalization.equal_rows, one.lines_scaled);
      if (n.precision == Precision::fp32) {
        in_fp32[twin] = attempt(one, input, made);
      } else if (in_fp32[twin] < 0.6 || coefficients_name(n) == "cans") {  // roundings make less of a difference
        attempt(one, input, made);
      }
    }
  }
  return best;
}

double rounding_of(const Subject& s, const Explanation& e, const Habits& habits) {
  const Flat input = e.input.made(s.view);
  const Cutting meant = meant_cutting(s.parameter);
  Step between;
  between.before = s.view.before;
  double most = 0;
  NewtonSchulzSettings settings = e.settings;
  settings.threads = habits.threads, settings.precision = Precision::bf16;
  between.moved = orthogonalized(input, meant, settings);
  for (const float value : between.moved) between.squares += static_cast<double>(value) * value;
  for (const auto lines : {IterationLines::scaled_first, IterationLines::square_first, IterationLines::one_call}) {
    settings.lines = lines;
    most = std::max(most, fit_of(between, orthogonalized(input, meant, settings), meant.blocks).distance);
  }
  return most;
}

std::optional<Explanation> other_polynomials(const Subject& s, const Explanation& nearest, const Habits& habits) {
  Flat input = nearest.input.made(s.view);
  if (nearest.lines_scaled || nearest.settings.normalization.equal_rows) return std::nullopt;
  if (nearest.settings.precision == Precision::bf16 && nearest.settings.normalization.round_first)
    round_to_bf16(input.data(), static_cast<Index>(input.size()));
  const Candidate candidate{meant_cutting(s.parameter), nearest.input, 0, false, input};
  const Spectra spectra = spectra_of(s, input, candidate.cutting);
  double own = 1, other = 1;
  for (const Polynomials& one : polynomials()) {
    const double distance = spectral_distance(spectra, one, 0);
    const bool same = one.known && one.coefficients == nearest.coefficients && one.steps == nearest.steps;
    if (same)
      own = std::min(own, distance);
    else
      other = std::min(other, distance);
  }
  own = std::min(own, nearest.fit.distance);
  const bool nobodys =
      nearest.settings.precision == Precision::fp32 && own > 0.01 && spectra.free_distance < 5e-4 && other > 0.35 * own;
  if (own < 0.004 || (other > 0.35 * own && !nobodys)) return std::nullopt;
  Explanation found = tried(s, candidate, habits).front();
  if (nobodys) found.kind = "ns_coefficients", found.how = "of no known set";
  if (found.fit.distance > 1.2 * nearest.fit.distance) return std::nullopt;
  return found;
}

std::vector<Explanation> other_explanations(const Subject& s, Habits& habits) {
  std::vector<Candidate> candidates;
  const std::vector<Cutting> all = cuttings(s.parameter);
  const Stack stack(s.parameter.shape);
  // A quick look first, with coefficients that may not be the right ones: spectra are dearer.
  NewtonSchulzSettings quick =
      habits.orthogonalizer ? habits.orthogonalizer->settings : recipe_named("emerging").settings.newton_schulz;
  quick.precision = Precision::fp32, quick.threads = habits.threads, quick.normalization.equal_rows = false;
  const std::set<std::string> alike = habits.nearest[s.role];
  const auto name_of = [](const Candidate& c) { return c.cutting.kind + c.cutting.how + c.input.kind + c.input.how; };
  const auto consider = [&](Candidate candidate) {
    if (!alike.empty() && !candidate.cutting.kind.empty() && alike.count(name_of(candidate)) == 0) return;
    const Flat input = candidate.made.empty() ? candidate.input.made(s.view) : candidate.made;
    const Flat update = orthogonalized(input, candidate.cutting, quick, candidate.as_it_is);
    candidate.score = fit_of(s.step, update, candidate.cutting.blocks).distance;
    candidates.push_back(std::move(candidate));
  };
  for (const Input& input : s.moments.inputs) {
    if (input.rounds_otherwise) continue;
    const bool half = input.kind == "half_underflow";
    if (half) {
      float largest = 0;
      for (const float value : *s.view.grad) largest = std::max(largest, std::abs(value));
      if (largest > 1e-4f) continue;
    }
    if (!input.kind.empty()) {
      consider({all.front(), input});
      continue;
    }
    for (const Cutting& cutting : all) consider({cutting, input});
    for (const Slices& slices : slices_of(s.parameter)) {
      if (s.parameter.blocks.sizes.size() > 1) continue;
      Candidate local{all.front(), input};
      local.cutting.axis = slices.axis;
      local.input.kind = "local_norm", local.input.how = "each slice divided by its own norm";
      local.made = divided_by_own_norm(input.made(s.view), stack, slices);
      local.as_it_is = true;
      consider(std::move(local));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.score < y.score; });
  std::vector<Candidate> looked_at;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i >= 6 && !candidates[i].cutting.kind.empty()) continue;
    Candidate& candidate = candidates[i];
    const Flat input = candidate.made.empty() ? candidate.input.made(s.view) : candidate.made;
    candidate.score = spectra_of(s, input, candidate.cutting).free_distance;
    looked_at.push_back(std::move(candidate));
  }
  candidates = std::move(looked_at);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.score < y.score; });
  std::vector<Explanation> found;
  for (std::size_t i = 0; i < candidates.size() && i < 6; ++i) {
    habits.nearest[s.role].insert(name_of(candidates[i]));
    if (i > 1 && candidates[i].score > std::max(0.1, 4 * candidates.front().score)) break;
    for (Explanation& e : tried(s, candidates[i], habits)) {
      if (candidates[i].input.kind != "local_norm" && candidates[i].cutting.kind.empty()) e.axis.clear();
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.kind == e.kind; });
      if (same == found.end())
        found.push_back(e);
      else if (e.fit.distance < same->fit.distance)
        *same = e;
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.fit.distance < y.fit.distance; });
  return found;
}

std::vector<Explanation> elementwise_explanations(const Subject& s, const std::vector<std::pair<Index, Index>>& live) {
  std::vector<Explanation> found;
  const ParameterCase& p = s.parameter;
  const View& v = s.view;
  const auto consider = [&](const std::string& optimizer, const std::string& how, const Flat& update) {
    Explanation e{"", "", how, optimizer};
    e.fit = live.empty() ? fit_of(s.step, update) : fit_of(s.step, update, live);
    e.shapes = {{0, 0}};
    const Fit cautious = fit_of(s.step, update, Decays::where_signs_agree);
    if (cautious.distance < 0.5 * e.fit.distance) e.fit = cautious, e.decays = Decays::where_signs_agree;
    found.push_back(e);
  };
  const AdamwHyper& a = p.hyper.adamw;
  const double b1 = a.beta1.value_or(0.9), t = static_cast<double>(p.step);
  const auto at = [](const Flat* values, std::size_t i) {
    return values == nullptr ? 0.0 : static_cast<double>((*values)[i]);
  };
  if (v.grad != nullptr && (p.step == 1 || v.momentum_after != nullptr || v.momentum_before != nullptr) &&
      (p.step == 1 || v.second_after != nullptr || v.second_before != nullptr)) {
    std::vector<double> of_beta2 = {0.95, 0.999, 0.99};
    if (a.beta2 || v.second_after != nullptr) of_beta2 = {a.beta2.value_or(0.95)};
    std::vector<double> epsilons = {1e-8, 1e-10, 1e-6, 1e-15};
    if (a.epsilon) epsilons = {*a.epsilon};
    for (const double b2 : of_beta2)
      for (const double epsilon : epsilons) {
        Flat update(v.before->size());
        const double root = std::sqrt(1 - std::pow(b2, t)), mean = 1 - std::pow(b1, t);
        for (std::size_t i = 0; i < update.size(); ++i) {
          const double g = at(v.grad, i);
          const double m =
              v.momentum_after != nullptr ? at(v.momentum_after, i) : b1 * at(v.momentum_before, i) + (1 - b1) * g;
          const double u =
              v.second_after != nullptr ? at(v.second_after, i) : b2 * at(v.second_before, i) + (1 - b2) * g * g;
          const double below = std::sqrt(std::max(0.0, u)) / root + epsilon;
          update[i] = below > 0 ? static_cast<float>(m / mean / below) : 0;
        }
        consider("adamw", "as AdamW does", update);
        if (p.step == 1 && v.second_after == nullptr) break;  // β₂ cancels
      }
  }
  for (const Input& input : s.moments.inputs) {
    if (!input.kind.empty() || input.rounds_otherwise) continue;
    Flat made = input.made(v);
    consider("sgd", "the momentum itself", made);
    found.back().kind = "not_orthogonalized";
    for (float& value : made) value = value > 0 ? 1.0f : value < 0 ? -1.0f : 0.0f;
    consider("sign", "the sign of the momentum", made);
    found.back().kind = "sign_update";
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.fit.distance < y.fit.distance; });
  return found;
}

std::optional<Explanation> local_explanation(const Subject& s, const Habits& habits) {
  using Ranges = std::vector<std::pair<Index, Index>>;
  const Cutting meant = meant_cutting(s.parameter);
  const auto zero = [&](const Ranges& at) {
    for (const auto& [begin, end] : at)
      for (Index i = begin; i < end; ++i)
        if (s.step.moved[static_cast<std::size_t>(i)] != 0) return false;
    return true;
  };
  for (const auto* parts : {&s.parameter.parts, &s.parameter.moment_parts}) {
    std::vector<Ranges> all;
    std::vector<int> ranks;
    for (const Part& part : *parts) {
      Ranges at(part.ranges.begin(), part.ranges.end());
      if (!at.empty() && std::find(all.begin(), all.end(), at) == all.end())
        all.push_back(at), ranks.push_back(part.rank);
    }
    if (all.size() < 2 || all.size() > 256) continue;
    std::optional<Explanation> best;
    std::size_t most = 0;
    for (const Input& input : s.moments.inputs) {
      if (!input.kind.empty()) continue;
      const Flat made = input.made(s.view);
      std::vector<Orthogonalizer> by = {};
      if (habits.orthogonalizer)
        by = {*habits.orthogonalizer};
      else
        by = orthogonalizers(s.parameter.hyper.ns_steps);
      if (!habits.orthogonalizer)
        by.erase(
            std::remove_if(by.begin(), by.end(), [](const auto& o) { return o.settings.precision == Precision::bf16; }),
            by.end());
      for (Orthogonalizer& one : by) {
        if (one.lines_scaled || most == all.size()) continue;
        one.settings.threads = habits.threads;
        const Flat update = orthogonalized(made, meant, one.settings);
        const double limit = habits.orthogonalizer ? 1.5 * s.limit() : 0.12 + s.limit();
        std::vector<Fit> own;
        for (const Ranges& at : all) own.push_back(fit_of(s.step, update, at));
        std::string kind;
        std::vector<int> which;
        std::size_t explained = 0;
        double beta = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
          if (!zero(all[i]) && own[i].distance <= limit && own[i].mean_beta() > 0)
            ++explained, beta = own[i].mean_beta();
        const bool some = explained > 0;
        if (explained == all.size()) continue;  // sizes differ, not directions
        for (std::size_t i = 0; i < all.size(); ++i) {
          const auto says = [&](const char* what) {
            if (kind.empty() || kind == what) kind = what, which.push_back(ranks[i]), ++explained;
          };
          if (zero(all[i])) {
            if (some) says("stale_shard");
            continue;
          }
          if (own[i].distance <= limit) continue;
          bool other = false;
          for (std::size_t j = 0; j < all.size() && !other && all.size() <= 64; ++j) {
            if (j == i || all[i].size() != all[j].size()) continue;
            const Index shift = all[j].front().first - all[i].front().first;
            bool alike = true;
            for (std::size_t k = 0; k < all[i].size(); ++k)
              alike =
                  alike && all[j][k].first - all[i][k].first == shift && all[j][k].second - all[i][k].second == shift;
            if (alike && fit_of(s.step, update, all[i], shift).distance <= limit) other = true;
          }
          if (other) {
            says("shard_of_other_rank");
            continue;
          }
          std::vector<Index> shifts;
          for (Index k = 1; k <= 256; ++k) shifts.push_back(k);
          for (Index k = 1; k <= 64; ++k) shifts.push_back(k * s.parameter.shape.back());
          for (const Index shift : some ? shifts : std::vector<Index>{})
            for (const Index by_so_much : {shift, -shift}) {
              Ranges inner = all[i];  // what runs over its end may hold something else
              if (by_so_much > 0)
                inner.back().second -= shift;
              else
                inner.front().first += shift;
              if (other || inner.size() > 1 || inner.back().second - inner.front().first < 32) continue;
              other = fit_of(s.step, update, inner, by_so_much).distance <= limit;
            }
          if (other) says("padding_shifts");
        }
        if (kind.empty() || explained <= most) continue;
        most = explained;
        Orthogonalizer chosen = one;
        Explanation e = fitted(s, update, meant, chosen, input);
        e.kind = explained == all.size() ? kind : "";
        if (explained < all.size()) continue;
        e.how = "rank";
        for (std::size_t i = 0; i < which.size() && i < 8; ++i)
          e.how += (i > 0 ? ", " : which.size() > 1 ? "s " : " ") + std::to_string(which[i]);
        for (const Cut& cut : s.parameter.cuts)
          if (e.axis.empty() || cut.kind == Cut::flat) e.axis = cut.axis;
        if (parts == &s.parameter.moment_parts) e.axis = "dp";
        if (beta > 0)
          for (double& each : e.fit.beta) each = beta;
        best = e;
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace muonwalk::check
