// What all parameters are together: the laws of α and β over their shapes, and what deviates from them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "src/text/names.hpp"
#include "src/text/units.hpp"
#include "tools/check/evidence.hpp"

namespace muonwalk::check {
namespace {

// What an update of rows × cols is multiplied by.
struct ScaleLaw {
  Scale scale;
  const char* text;
  double operator()(double rows, double cols) const {
    switch (scale) {
      case Scale::tall:
        return std::sqrt(std::max(1.0, rows / cols));
      case Scale::ratio:
        return std::sqrt(rows / cols);
      case Scale::largest:
        return std::sqrt(std::max(rows, cols));
      case Scale::matched_rms:
        return 0.2 * std::sqrt(std::max(rows, cols));
      default:
        return 1;
    }
  }
};
constexpr ScaleLaw kLaws[] = {{Scale::tall, "√max(1, A/B)"},
                              {Scale::matched_rms, "0.2 √max(A, B)"},
                              {Scale::largest, "√max(A, B)"},
                              {Scale::ratio, "√(A/B)"},
                              {Scale::none, "1"}};

// A matrix that was orthogonalized on its own, and how far its update went.
struct SizeRow {
  std::size_t evidence = 0;
  double rows = 0, cols = 0;  // of the matrix
  double beta = 0, norm = 0;  // norm: of the orthogonal matrix
  double tolerance = 0.01;
};

using Factors = std::vector<double>;
// The factors that a bug would give in place of the law's.
struct ScaleBug {
  const char* kind;
  Factors (*factors)(const ScaleLaw& law, const SizeRow& row, const Evidence& of);
};

Factors padded_factors(const ScaleLaw& law, const SizeRow& row, const Evidence& of) {
  Factors all;
  std::vector<double> to = {4, 8, 16, 32, 64, 128, 256};
  for (const Slices& slices : of.slices) to.push_back(static_cast<double>(slices.bounds.size() - 1));
  for (const double multiple : to) {
    const double rows = std::ceil(row.rows / multiple) * multiple, cols = std::ceil(row.cols / multiple) * multiple;
    if (rows <= 2 * row.rows) all.push_back(law(rows, row.cols));
    if (cols <= 2 * row.cols) all.push_back(law(row.rows, cols));
    if (rows <= 2 * row.rows && cols <= 2 * row.cols) all.push_back(law(rows, cols));
  }
  return all;
}

Factors local_factors(const ScaleLaw& law, const SizeRow& row, const Evidence& of) {
  Factors all;
  for (const Slices& slices : of.slices) {
    const double parts = static_cast<double>(slices.bounds.size() - 1);
    all.push_back(slices.of_rows ? law(row.rows / parts, row.cols) : law(row.rows, row.cols / parts));
  }
  return all;
}

const ScaleBug kScaleBugs[] = {
    {"scale_missing",
     [](const ScaleLaw& law, const SizeRow&, const Evidence&) {
       return law.scale == Scale::matched_rms ? Factors{1, 0.2} : Factors{1};
     }},
    {"scale_tp_local", local_factors},
    {"scale_flipped",
     [](const ScaleLaw& law, const SizeRow& row, const Evidence&) { return Factors{law(row.cols, row.rows)}; }},
    {"scale_of_fused",
     [](const ScaleLaw& law, const SizeRow&, const Evidence& of) {
       const Stack stack(of.shape);
       return of.blocks.sizes.size() < 2
                  ? Factors{}
                  : Factors{law(static_cast<double>(stack.rows), static_cast<double>(stack.cols))};
     }},
    {"scale_twice",
     [](const ScaleLaw& law, const SizeRow& row, const Evidence&) {
       const double f = law(row.rows, row.cols);
       return law.scale == Scale::matched_rms ? Factors{f * f, 5 * f * f} : Factors{f * f};
     }},
    {"scale_padded", padded_factors},
};

bool alike(double value, double wanted, double tolerance) { return std::abs(value - wanted) <= tolerance * wanted; }

// How a law and a rate (by which hyper's learning rate is multiplied) explain all rows.
struct SizeReading {
  const ScaleLaw* law = nullptr;
  double rate = 1;
  std::vector<std::set<std::string>> kinds;  // of each row: none: the law holds; several: any of these
  std::size_t deviating = 0, unexplained = 0;
};

SizeReading read_sizes(const ScaleLaw& law, double rate, const std::vector<SizeRow>& rows,
                       const std::vector<Evidence>& all, const std::function<double(const SizeRow&)>& lr) {
  SizeReading reading{&law, rate, {}, 0, 0};
  for (const SizeRow& row : rows) {
    const double seen = row.beta / (rate * lr(row)), wanted = law(row.rows, row.cols);
    reading.kinds.emplace_back();
    if (alike(seen, wanted, row.tolerance)) continue;
    ++reading.deviating;
    for (const ScaleBug& bug : kScaleBugs)
      for (const double factor : bug.factors(law, row, all[row.evidence]))
        if (alike(seen, factor, row.tolerance)) reading.kinds.back().insert(bug.kind);
    if (reading.kinds.back().empty()) ++reading.unexplained;
  }
  return reading;
}

class Reading {
 public:
  explicit Reading(std::vector<Evidence> all)
      : all_(std::move(all)), beta_law_(all_.size()), alpha_law_(all_.size()), rate_(all_.size(), 1) {}

  DumpVerdict verdict() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Evidence& e = all_[i];
      for (const Deviation& deviation : e.deviations) found(deviation.kind, deviation.axis, i, deviation.how);
    }
    corroborated();
    nobodys_coefficients();
    swapped();
    in_some_layers();
    sizes();
    adamw_sizes();
    decays();
    return told();
  }

 private:
  // By kind, and by axis where there is none.
  void found(const std::string& kind, const std::string& axis, std::size_t i, const std::string& how) {
    auto& finding = findings_[kind];
    if (finding.axis.empty()) finding.axis = axis;
    finding.of.insert(i);
    finding.hows[how].insert(i);
  }

  bool clean_direction(std::size_t i) const {
    const Evidence& e = all_[i];
    if (!e.sure || !e.by->kind.empty() || e.deviations.size() > 1) return false;
    static const std::set<std::string> harmless = {"momentum_coefficient", "momentum_overwritten", "gradient_scaled",
                                                   "one_rank_gradient",    "gradient_not_reduced", "stale_shard"};
    return e.deviations.empty() || harmless.count(e.deviations.front().kind) > 0;
  }

  // What is nearest and near, but not alone, is believed where others are surely so.
  void corroborated() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Evidence& e = all_[i];
      if (e.sure || !e.likely || e.verdict != Verdict::unknown || findings_.count(e.by->kind) == 0) continue;
      e.sure = true, e.reason = e.by->how;
      found(e.by->kind, e.by->axis, i, e.by->how);
    }
  }

  // Coefficients belong to a program: one matrix among many has none of its own, but unusual roundings.
  void nobodys_coefficients() {
    const auto at = findings_.find("ns_coefficients");
    if (at == findings_.end()) return;
    std::size_t right = 0;
    for (const Evidence& e : all_) right += e.sure && e.by->kind.empty() && e.by->optimizer == "muon";
    if (right < 8 * at->second.of.size()) return;
    for (const std::size_t i : at->second.of) {
      all_[i].sure = false, all_[i].verdict = Verdict::unknown;
      all_[i].reason = "its singular values are those of no known coefficients, and all others' are";
    }
    findings_.erase(at);
  }

  void swapped() {
    const auto distance = [](const Evidence& mine, const Evidence& other) {
      FitSums sums;
      sums.next_group();
      for (std::size_t i = 0; i < mine.moved.sums().size(); ++i)
        sums.add(mine.moved.sums()[i], mine.weights.sums()[i], other.update.sums()[i]);
      const Fit fit = sums.fit(0);
      return fit.beta.front() > 0 ? fit.distance : 1;
    };
    for (std::size_t i = 0; i < all_.size(); ++i)
      for (std::size_t j = 0; j < all_.size(); ++j) {
        const Evidence &mine = all_[i], &other = all_[j];
        if (i == j || mine.sure || mine.moved.empty() || other.update.empty() || mine.shape != other.shape ||
            mine.step != other.step)
          continue;
        if (distance(mine, other) < 0.35 && distance(mine, mine) > 0.6) {
          found("updates_swapped", "", i, "it has the update of " + in_quotes(other.name));
          all_[i].verdict = Verdict::differs, all_[i].reason = "it has the update of " + in_quotes(other.name);
        }
      }
  }

  // Blocks that a bug made in some layers, while others of the same role and shape are whole.
  void in_some_layers() {
    for (const char* kind :
         {"tp_slices", "dp_slices", "head_count", "split_not_fused", "fused_not_split", "expert_slabs"}) {
      if (findings_.count(kind) == 0) continue;
      std::vector<std::size_t> moved;
      for (const std::size_t i : findings_[kind].of)
        for (std::size_t j = 0; j < all_.size(); ++j)
          if (all_[j].role == all_[i].role && all_[j].shape == all_[i].shape && all_[j].step == all_[i].step &&
              all_[j].sure && all_[j].by->kind.empty() && all_[j].blocks.sizes == all_[i].blocks.sizes) {
            moved.push_back(i);
            break;
          }
      for (const std::size_t i : moved) {
        const std::string axis = findings_[kind].axis;
        findings_[kind].of.erase(i);
        found("blocks_in_some_layers", axis, i, all_[i].by->how + ", and others of its role are not");
      }
      if (findings_[kind].of.empty()) findings_.erase(kind);
    }
  }

  void sizes() {
    std::vector<SizeRow> rows;
    bool known = true;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Evidence& e = all_[i];
      if (!clean_direction(i) || e.by->optimizer != "muon" || e.meant == Meant::adamw) continue;
      const Explanation& by = *e.by;
      known = known && e.hyper.lr.has_value();
      const double tolerance = by.fit.distance < 1e-3                            ? 3e-3
                               : by.recipe != nullptr && by.fit.distance < 0.025 ? 0.012
                                                                                 : 0.04;
      if (by.lines_scaled) {
        double update = 0, norm = 0;
        for (std::size_t g = 0; g < by.fit.beta.size(); ++g)
          update += std::pow(by.fit.beta[g] * by.fit.norm[g], 2), norm += std::pow(by.fit.norm[g], 2);
        const Stack stack(e.shape);
        if (stack.count > 1 || !e.blocks.sizes.empty()) continue;
        const double r = static_cast<double>(stack.rows), c = static_cast<double>(stack.cols);
        const bool unit = by.recipe != nullptr && by.recipe->settings.second_moment.unit_norm;
        rows.push_back({i, r, c, std::sqrt(update / (unit ? std::min(r, c) : norm)), std::sqrt(norm), 0.03});
        continue;
      }
      std::map<std::pair<Index, Index>, SizeRow> by_shape;
      for (std::size_t g = 0; g < by.fit.beta.size(); ++g) {
        if (by.fit.norm[g] <= 0) continue;
        SizeRow& row = by_shape[by.shapes[g]];
        const double weight = by.fit.norm[g] * by.fit.norm[g];
        row = {i,
               static_cast<double>(by.shapes[g].first),
               static_cast<double>(by.shapes[g].second),
               row.beta + weight * by.fit.beta[g],
               row.norm + weight,
               tolerance + e.noise};
      }
      for (auto& [shape, row] : by_shape) row.beta /= row.norm, row.norm = std::sqrt(row.norm), rows.push_back(row);
    }
    if (rows.empty()) return;
    const auto lr = [&](const SizeRow& row) { return known ? *all_[row.evidence].hyper.lr : 1.0; };

    // The laws, those of the recipes that were found first.
    std::vector<const ScaleLaw*> laws;
    for (const ScaleLaw& law : kLaws) laws.push_back(&law);
    std::map<Scale, int> votes;
    for (const SizeRow& row : rows)
      if (const Recipe* recipe = all_[row.evidence].by->recipe) ++votes[recipe->settings.arithmetic.scale];
    std::stable_sort(laws.begin(), laws.end(),
                     [&](const auto* x, const auto* y) { return votes[x->scale] > votes[y->scale]; });
    std::optional<SizeReading> best;
    const auto consider = [&](SizeReading reading) {
      const auto cost = [&](const SizeReading& r) {
        return r.unexplained * 1000 + r.deviating * 10 +
               (r.law->scale == Scale::none && r.deviating < rows.size() ? 1 : 0);
      };
      if (!best || cost(reading) < cost(*best)) best = std::move(reading);
    };
    if (known)
      for (const ScaleLaw* law : laws) consider(read_sizes(*law, 1, rows, all_, lr));
    const bool holds = best && best->unexplained == 0;
    if (!holds) {
      std::optional<SizeReading> kept = best;
      best.reset();
      for (const ScaleLaw* law : laws)
        for (const SizeRow& row : rows)
          consider(read_sizes(*law, row.beta / lr(row) / (*law)(row.rows, row.cols), rows, all_, lr));
      if (known && best->deviating > 0 && kept && kept->unexplained <= best->unexplained) best = kept;
    }
    if (known && !holds && clipped(rows, *best, lr)) return;
    const bool other_rate = known && best->rate != 1;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::size_t i = rows[r].evidence;
      beta_law_[i] = best->law->text;
      rate_[i] = best->rate;
      const std::set<std::string>& kinds = best->kinds[r];
      if (alike(rows[r].beta / (best->rate * lr(rows[r])), (*best->law)(rows[r].rows, rows[r].cols),
                rows[r].tolerance)) {
        if (other_rate)
          found("lr_mismatch", "", i,
                fmt::format("its learning rate is {:.4g}, where hyper says {:.4g}", best->rate * lr(rows[r]),
                            lr(rows[r])));
        continue;
      }
      const double seen = rows[r].beta / (best->rate * lr(rows[r]));
      const std::string how =
          fmt::format("its update is scaled by {:.4f}, where {} of {:.0f} × {:.0f} is {:.4f}", seen, best->law->text,
                      rows[r].rows, rows[r].cols, (*best->law)(rows[r].rows, rows[r].cols));
      // Of several kinds, that which explains most of the others.
      std::string kind;
      std::size_t most = 0;
      for (const ScaleBug& bug : kScaleBugs) {
        if (kinds.count(bug.kind) == 0) continue;
        const std::size_t of = static_cast<std::size_t>(std::count_if(
            best->kinds.begin(), best->kinds.end(), [&](const auto& k) { return k.count(bug.kind) > 0; }));
        if (of > most) kind = bug.kind, most = of;
      }
      if (kind.empty()) {
        double same = 0;
        for (std::size_t o = 0; o < rows.size(); ++o)
          if (best->kinds[o].empty() &&
              alike(rows[o].beta / lr(rows[o]) / (*best->law)(rows[o].rows, rows[o].cols) / best->rate,
                    seen / (*best->law)(rows[r].rows, rows[r].cols), 2 * rows[o].tolerance))
            ++same;
        kind = known && best->unexplained >= 1 && same >= static_cast<double>(best->unexplained) ? "lr_mismatch" : "";
      }
      found(kind, kind == "scale_tp_local" ? all_[i].slices.front().axis : "", i, how);
    }
  }

  // An update that is clipped by its norm, or by that of all of them, has a norm that depends on no shape.
  bool clipped(const std::vector<SizeRow>& rows, const SizeReading& reading,
               const std::function<double(const SizeRow&)>& lr) {
    double squares = 0;
    bool each = true, same_law = reading.deviating == 0;
    std::map<std::size_t, double> of;
    for (const SizeRow& row : rows) of[row.evidence] += std::pow(row.beta / lr(row) * row.norm, 2);
    const double first = std::sqrt(of.begin()->second);
    for (const auto& [i, square] : of) squares += square, each = each && alike(std::sqrt(square), first, 0.03);
    const bool one = alike(std::sqrt(squares), 1, 0.02), each_one = each && alike(first, 1, 0.02);
    if (!(each_one || (each && of.size() > 2 && reading.deviating > 0) || (same_law && one))) return false;
    for (const auto& [i, square] : of) {
      beta_law_[i] = each ? "1/‖O‖" : "clipped";
      found(
          "update_clipped", "", i,
          each ? fmt::format("the norm of its update is {:.4f} times the learning rate, whatever its shape",
                             std::sqrt(square))
               : fmt::format("the norm of all updates together is {:.4f} times the learning rate", std::sqrt(squares)));
    }
    return true;
  }

  void adamw_sizes() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Evidence& e = all_[i];
      if (!e.sure || e.by->optimizer != "adamw" || !e.by->kind.empty()) continue;
      beta_law_[i] = "lr";
      const AdamwHyper& a = e.hyper.adamw;
      if (!a.lr) continue;
      const double seen = e.by->fit.mean_beta() / *a.lr;
      if (alike(seen, 1, 0.01 + e.noise)) continue;
      const double b1 = a.beta1.value_or(0.9), b2 = a.beta2.value_or(0.95);
      const auto correction = [&](double t) {
        return t == 0 ? 1 : std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
      };
      double step = -1;
      std::vector<double> steps = {0, 256};
      for (double t = 1; t <= std::min(20.0, static_cast<double>(e.step) + 2); ++t) steps.push_back(t);
      for (const double t : {-2, -1, 1, 2}) steps.push_back(std::max(1.0, static_cast<double>(e.step) + t));
      for (const double t : steps)
        if (step < 0 && e.noise < 2e-3 && alike(seen, correction(t) / correction(static_cast<double>(e.step)), 4e-3))
          step = t;
      rate_[i] = seen;
      if (step >= 0) {
        rate_[i] = 1;
        found("step_counter", "", i,
              step == 0 ? "it has no bias correction"
                        : fmt::format("its bias correction is that of step {:.0f}, in step {}", step, e.step));
      } else {
        found("lr_mismatch", "", i,
              fmt::format("its learning rate is {:.4g}, where hyper says {:.4g}", seen * *a.lr, *a.lr));
      }
    }
  }

  void decays() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Evidence& e = all_[i];
      if (!clean_direction(i)) continue;
      const bool adamw = e.by->optimizer == "adamw";
      if (!adamw && e.by->optimizer != "muon") continue;
      const std::optional<double> lr = adamw ? e.hyper.adamw.lr : e.hyper.lr;
      const std::optional<double> decay = adamw ? e.hyper.adamw.weight_decay : e.hyper.weight_decay;
      const Fit& fit = e.by->fit;
      const double error = 4 * fit.alpha_error + 1e-9;
      if (!decay || !lr) {
        alpha_law_[i] = std::abs(fit.alpha) < error ? "none" : "fitted";
        continue;
      }
      const double wanted = *lr * *decay;
      const Stack stack(e.shape);
      double factor = 1;
      for (const ScaleLaw& law : kLaws)
        if (beta_law_[i] == law.text) factor = law(static_cast<double>(stack.rows), static_cast<double>(stack.cols));
      const auto is = [&](double value) { return std::abs(fit.alpha - value) <= error + 0.03 * std::abs(value); };
      const bool coarse = !e.decay_visible;
      if (is(wanted) || is(wanted * rate_[i]) || coarse) {
        alpha_law_[i] = wanted == 0 ? "none" : coarse && !is(wanted) ? "" : "lr · decay";
      } else if (e.by->decays == Decays::where_signs_agree && is(wanted * factor)) {
        alpha_law_[i] = "lr · decay · scale";
      } else if (wanted == 0) {
        alpha_law_[i] = "decays";
        found(e.shape.size() < 2 || stack.size() == stack.cols ? "decay_on_gains" : "", "", i,
              fmt::format("it decays by {:.3g}, and is meant not to", fit.alpha));
      } else if (wanted < 2 * error) {
        continue;  // not to be seen
      } else if (is(0)) {
        alpha_law_[i] = "none";
        found("decay_missing", "", i, fmt::format("it does not decay, where hyper says {:.3g}", wanted));
      } else if (is(2 * wanted)) {
        alpha_law_[i] = "twice lr · decay";
        found("decay_twice", "", i, fmt::format("it decays by {:.3g}, twice lr · decay", fit.alpha));
      } else if (!adamw && is(wanted * factor)) {
        alpha_law_[i] = "lr · decay · scale";
        found("decay_by_scaled_lr", "", i,
              fmt::format("it decays by {:.3g}, which is lr · decay times {:.3f}", fit.alpha, factor));
      } else if (is(2 * wanted * rate_[i])) {
        found("decay_twice", "", i, fmt::format("it decays by {:.3g}, twice lr · decay", fit.alpha));
      } else {
        alpha_law_[i] = "another";
        found("", "", i, fmt::format("it decays by {:.3g}, where lr · decay is {:.3g}", fit.alpha, wanted));
      }
    }
  }

  std::string recipe_name(std::size_t i) const {
    const Explanation& by = *all_[i].by;
    if (by.recipe == nullptr) return "";
    for (const Recipe& recipe : recipes()) {
      const NewtonSchulzSettings &x = recipe.settings.newton_schulz, &y = by.settings;
      const bool same_rounding = y.precision == Precision::fp32 ||
                                 (x.lines == y.lines && x.normalization.round_first == y.normalization.round_first &&
                                  x.normalization.floor == y.normalization.floor);
      if (recipe.coefficients != by.recipe->coefficients || recipe.settings.second_moment.used != by.lines_scaled ||
          !same_rounding || x.normalization.cushion != y.normalization.cushion ||
          x.normalization.equal_rows != y.normalization.equal_rows)
        continue;
      for (const ScaleLaw& law : kLaws)
        if (law.scale == recipe.settings.arithmetic.scale && beta_law_[i] == law.text) return recipe.name;
    }
    return by.recipe->name;
  }

  DumpVerdict told() {
    DumpVerdict verdict;
    std::map<std::string, std::size_t> place;
    std::set<std::string> names;
    for (const Evidence& e : all_) names.insert(e.name);
    count_ = names.size();
    const auto worse = [](Verdict v) {
      return v == Verdict::differs ? 3 : v == Verdict::unknown ? 2 : v == Verdict::clean ? 1 : 0;
    };
    for (const auto& [kind, finding] : findings_)
      for (const std::size_t i : finding.of) all_[i].verdict = Verdict::differs;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Evidence& e = all_[i];
      ParameterVerdict p;
      p.name = e.name, p.verdict = e.verdict, p.reason = e.reason;
      for (const auto& [kind, finding] : findings_)
        for (const auto& [how, of] : finding.hows)
          if (of.count(i) > 0 && p.reason.empty()) p.reason = how;
      if (e.by) {
        p.optimizer = e.by->optimizer;
        if (e.by->optimizer == "muon") p.recipe = recipe_name(i);
        p.distance = e.by->fit.distance;
        if (e.sure) p.alpha = e.by->fit.alpha, p.beta = e.by->fit.mean_beta();
        p.alpha_law = alpha_law_[i], p.beta_law = beta_law_[i];
        if (e.sure && e.by->optimizer == "muon") {
          const std::string name = p.recipe.empty() ? "a recipe of its own" : p.recipe;
          const auto same = std::find_if(verdict.recipes.begin(), verdict.recipes.end(), [&](const RecipeFound& r) {
            return r.recipe == name && r.coefficients == e.by->coefficients && r.steps == e.by->steps;
          });
          RecipeFound& into = same != verdict.recipes.end()
                                  ? *same
                                  : verdict.recipes.emplace_back(
                                        RecipeFound{name, e.by->coefficients, e.by->steps, e.by->nesterov, {}});
          if (!into.nesterov) into.nesterov = e.by->nesterov;
          if (std::find(into.parameters.begin(), into.parameters.end(), e.name) == into.parameters.end())
            into.parameters.push_back(e.name);
        }
      }
      const auto [at, fresh] = place.emplace(e.name, verdict.parameters.size());
      if (fresh)
        verdict.parameters.push_back(p);
      else if (worse(p.verdict) > worse(verdict.parameters[at->second].verdict))
        verdict.parameters[at->second] = p;
    }
    for (const auto& [kind, finding] : findings_) {
      Finding f{kind, finding.axis, {}, ""};
      for (const std::size_t i : finding.of)
        if (std::find(f.parameters.begin(), f.parameters.end(), all_[i].name) == f.parameters.end())
          f.parameters.push_back(all_[i].name);
      std::string how;
      std::size_t most = 0;
      for (const auto& [each, of] : finding.hows)
        if (of.size() > most) how = each, most = of.size();
      f.sentence = sentence(kind, how, f.parameters);
      verdict.findings.push_back(f);
    }
    int worst = 0;
    for (const ParameterVerdict& p : verdict.parameters) worst = std::max(worst, worse(p.verdict));
    verdict.verdict = worst == 3   ? Verdict::differs
                      : worst == 2 ? Verdict::unknown
                      : worst == 1 ? Verdict::clean
                                   : Verdict::unjudgeable;
    if (verdict.verdict == Verdict::unjudgeable)
      verdict.reason = verdict.parameters.empty()
                           ? "the dump has no parameters"
                           : "nothing in the dump can be judged: " + verdict.parameters.front().reason;
    return verdict;
  }

  std::string sentence(const std::string& kind, const std::string& how, const std::vector<std::string>& names) const {
    const std::string bug = bug_text(kind);
    return fmt::format("{}: {} ({} of {}).", bug.empty() ? "Something deviates that no known bug explains" : bug, how,
                       names.size(), count_text(static_cast<std::int64_t>(count_), "parameter"));
  }

  struct Found {
    std::string axis;
    std::set<std::size_t> of;
    std::map<std::string, std::set<std::size_t>> hows;
  };
  std::vector<Evidence> all_;
  std::map<std::string, Found> findings_;
  std::vector<std::string> beta_law_, alpha_law_;
  std::vector<double> rate_;
  std::size_t count_ = 0;  // of parameters
};

}  // namespace

DumpVerdict verdict_of(std::vector<Evidence> all) { return Reading(std::move(all)).verdict(); }

}  // namespace muonwalk::check
