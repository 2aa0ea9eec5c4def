// What all parameters are together: the laws of α and β over their shapes, and what deviates from them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/text/names.hpp"
#include "src/text/units.hpp"
#include "tools/check/judge.hpp"

namespace muonwalk::check {
namespace {

// What an update of rows × cols is multiplied by.
struct ScaleLaw {
  Scale scale;
  const char* text;
  double operator()(double rows, double cols) const {
    const Shape shape{static_cast<Index>(rows), static_cast<Index>(cols)};
    return shape_scale(shape, scale) * (scale == Scale::matched_rms ? 0.2 : 1);
  }
};
constexpr ScaleLaw kLaws[] = {{Scale::tall, "√max(1, A/B)"},
                              {Scale::matched_rms, "0.2 √max(A, B)"},
                              {Scale::largest, "√max(A, B)"},
                              {Scale::ratio, "√(A/B)"},
                              {Scale::none, "1"}};

// Matrices of one shape that a parameter has, and how far their updates went.
struct SizeRow {
  Evidence* of = nullptr;
  double rows = 0, cols = 0;
  double seen = 0;  // by which the update was scaled, besides the learning rate
  double norm = 0;  // of the update, without the learning rate
  double tolerance = 0;
};

// Those that AdamW's bias correction of another step would give, or none at all.
std::vector<std::pair<std::string, double>> wrong_corrections(const Evidence& e) {
  const double b1 = e.hyper.adamw.beta1.value_or(0.9), b2 = e.hyper.adamw.beta2.value_or(0.95);
  const auto correction = [&](double t) { return std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t)); };
  const double now = correction(static_cast<double>(e.step));
  std::vector<std::pair<std::string, double>> all = {{"step_counter", 1 / now}};
  for (double t = 1; t <= static_cast<double>(e.step) + 256 && e.noise < 2e-3; ++t)
    all.emplace_back("step_counter", correction(t) / now);
  return all;
}

// The factors that bugs would give in place of the law's.
std::vector<std::pair<std::string, double>> wrong_factors(const ScaleLaw& law, const SizeRow& row) {
  if (row.of->by->optimizer == "adamw") return wrong_corrections(*row.of);
  const double r = row.rows, c = row.cols, right = law(r, c);
  const double rms = law.scale == Scale::matched_rms ? 0.2 : 1;
  std::vector<std::pair<std::string, double>> all = {{"scale_missing", 1},
                                                     {"scale_missing", rms},
                                                     {"scale_flipped", law(c, r)},
                                                     {"scale_twice", right * right},
                                                     {"scale_twice", right * right / rms}};
  const Stack stack(row.of->shape);
  if (!row.of->blocks.sizes.empty())
    all.emplace_back("scale_of_fused", law(static_cast<double>(stack.rows), static_cast<double>(stack.cols)));
  std::vector<double> multiples = {4, 8, 16, 32, 64, 128, 256};
  for (const Slices& slices : slices_of(*row.of)) {
    const double parts = static_cast<double>(slices.sizes.size());
    all.emplace_back("scale_tp_local", slices.of_rows ? law(r / parts, c) : law(r, c / parts));
    multiples.push_back(parts);
  }
  for (const double multiple : multiples) {
    const double padded_r = std::ceil(r / multiple) * multiple, padded_c = std::ceil(c / multiple) * multiple;
    if (padded_r > 2 * r || padded_c > 2 * c) continue;
    for (const double factor : {law(padded_r, c), law(r, padded_c), law(padded_r, padded_c)})
      all.emplace_back("scale_padded", factor);
  }
  return all;
}

bool alike(double value, double wanted, double tolerance) { return std::abs(value - wanted) <= tolerance * wanted; }

int badness(Verdict v) { return v == Verdict::differs ? 3 : v == Verdict::unknown ? 2 : v == Verdict::clean ? 1 : 0; }

// How a law and a rate (by which hyper's learning rate is multiplied) explain all rows.
struct SizeReading {
  const ScaleLaw* law = nullptr;
  double rate = 1;
  std::vector<std::vector<std::string>> kinds = {};  // that explain a row; nothing where it's right, "" where none does
  double cost = 1e300;
};

class Reading {
 public:
  explicit Reading(std::vector<Evidence> all) : all_(std::move(all)) {}

  DumpVerdict verdict() {
    for (Evidence& e : all_) {
      in_some_layers(e);
      for (const Claim& claim : e.deviations) found(claim, e);
    }
    // What is nearest and near, but not alone, is believed where others are surely so.
    for (Evidence& e : all_)
      if (!e.sure && e.likely && e.told.verdict == Verdict::unknown && finding_of(e.by->kind, false) != nullptr)
        e.sure = true, e.told.reason.clear(), found(*e.by, e);
    for (Evidence& e : all_)
      for (const Evidence& other : all_)
        if (has_update_of(e, other) && has_update_of(other, e))
          e.told.reason.clear(), found({"updates_swapped", "", "its update is that of " + in_quotes(other.name)}, e);
    for (const char* optimizer : {"muon", "adamw"}) sizes(optimizer);
    for (Evidence& e : all_) decay(e);
    return told();
  }

 private:
  Finding* finding_of(const std::string& kind, bool made) {
    for (Finding& finding : verdict_.findings)
      if (finding.kind == kind) return &finding;
    return made ? &verdict_.findings.emplace_back(Finding{kind, "", {}, ""}) : nullptr;
  }
  static void add_once(const std::string& name, std::vector<std::string>& into) {
    if (std::find(into.begin(), into.end(), name) == into.end()) into.push_back(name);
  }
  void found(const Claim& claim, Evidence& e) {
    Finding& finding = *finding_of(claim.kind, true);
    if (finding.axis.empty()) finding.axis = claim.axis;
    if (finding.sentence.empty()) finding.sentence = claim.how;
    add_once(e.name, finding.parameters);
    e.told.verdict = Verdict::differs;
    if (e.told.reason.empty()) e.told.reason = claim.how;
  }

  static bool has_update_of(const Evidence& e, const Evidence& other) {
    if (e.sampled[0].empty() || other.sampled[0].empty()) return false;
    if (e.shape != other.shape || e.step != other.step || e.name == other.name) return false;
    const Fit fit = fit_of(step_between(e.sampled[0], e.sampled[1], ""), other.sampled[2]);
    return fit.distance < 0.5 && fit.mean_beta() > 0;
  }

  static std::optional<double> lr_of(const Evidence& e) {
    return e.by->optimizer == "adamw" ? e.hyper.adamw.lr : e.hyper.lr;
  }
  static std::optional<double> decay_of(const Evidence& e) {
    return e.by->optimizer == "adamw" ? e.hyper.adamw.weight_decay : e.hyper.weight_decay;
  }
  static bool well(const Evidence& e) { return e.sure && e.by->kind.empty(); }
  static bool clean_direction(const Evidence& e) {
    static const std::string harmless[] = {"momentum_coefficient", "momentum_overwritten", "gradient_scaled",
                                           "one_rank_gradient", "gradient_not_reduced"};
    return well(e) &&
           (e.deviations.empty() || (e.deviations.size() == 1 && std::count(std::begin(harmless), std::end(harmless),
                                                                            e.deviations.front().kind) > 0));
  }

  // Blocks that a bug made in some layers, while others of the same role and shape are as they are meant.
  void in_some_layers(Evidence& e) {
    static const std::string kinds[] = {"tp_slices",       "dp_slices",       "head_count",
                                        "split_not_fused", "fused_not_split", "expert_slabs"};
    const bool others_are_well = std::any_of(all_.begin(), all_.end(), [&](const Evidence& other) {
      return other.role == e.role && other.shape == e.shape && well(other) && other.blocks.sizes == e.blocks.sizes;
    });
    for (Claim& claim : e.deviations)
      if (others_are_well && std::count(std::begin(kinds), std::end(kinds), claim.kind) > 0)
        claim.kind = "blocks_in_some_layers", claim.how += ", and others of its role are not";
  }

  // Without a learning rate in hyper, they hold up to a common factor.
  std::vector<SizeRow> size_rows(const std::string& optimizer, bool& known) {
    std::vector<SizeRow> rows;
    for (Evidence& e : all_) {
      if (!clean_direction(e) || e.by->optimizer != optimizer || e.by->by.lines.used) continue;
      known = known && lr_of(e).has_value();
      const double distance = e.by->fit.distance, tolerance = distance < 1e-3 ? 3e-3 : distance < 0.025 ? 0.012 : 0.04;
      std::map<std::pair<double, double>, SizeRow> by_shape;
      for (const Fit::Group& of : e.by->fit.groups) {
        SizeRow& row = by_shape[{of.rows, of.cols}];
        const double squares = of.norm * of.norm;
        row = {&e, of.rows, of.cols, row.seen + of.beta * squares, row.norm + squares, tolerance + e.noise};
      }
      for (auto& [shape, row] : by_shape)
        if (row.norm > 0) row.seen /= row.norm, row.norm = row.seen * std::sqrt(row.norm), rows.push_back(row);
    }
    for (SizeRow& row : rows)
      if (known) row.seen /= *lr_of(*row.of), row.norm /= *lr_of(*row.of);
    return rows;
  }

  static SizeReading read(const ScaleLaw& law, double rate, const std::vector<SizeRow>& rows, bool known) {
    // The law of the recipe whose directions they are, where several hold; one without a factor only if it always does.
    const Recipe* recipe = rows.front().of->by->by.recipe;
    const bool expected = recipe != nullptr && law.scale == recipe->settings.arithmetic.scale;
    // Or, before that, the one whose rate is in the decay as well.
    const Evidence& first = *rows.front().of;
    const double decays = rate * lr_of(first).value_or(0) * decay_of(first).value_or(0);
    const bool confirmed = decays > 0 && alike(first.by->fit.alpha, decays, 0.03);
    const double count = static_cast<double>(rows.size()), likely = (expected ? 4 : 0) + (confirmed ? 5 : 0);
    SizeReading reading{&law, rate, {}, (known && rate != 1 ? 999 : 0) - likely / count};
    for (const SizeRow& row : rows) {
      std::vector<std::string>& kinds = reading.kinds.emplace_back();
      const double seen = row.seen / rate;
      if (alike(seen, law(row.rows, row.cols), row.tolerance)) continue;
      for (const auto& [kind, factor] : wrong_factors(law, row))
        if (alike(seen, factor, row.tolerance)) add_once(kind, kinds);
      if (kinds.empty()) kinds = {""};
      reading.cost += (kinds.front().empty() ? 1000 : 0) + (law.scale == Scale::none ? 11.0 : 10.0) / count;
    }
    return reading;
  }

  // A kind for each row that is wrong: of several, the one that explains most rows, and would have changed fewest of
  // the others. Empty where two do, or none.
  static std::vector<std::string> chosen(const SizeReading& by, const std::vector<SizeRow>& rows) {
    std::map<std::string, double> weights;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::map<std::string, bool> keeps;  // whether the row would be as it is
      for (const auto& [kind, factor] : wrong_factors(*by.law, rows[r]))
        keeps[kind] = keeps[kind] || alike(rows[r].seen / by.rate, factor, rows[r].tolerance);
      for (const auto& [kind, as_it_is] : keeps) weights[kind] -= as_it_is ? 0 : 1e-6;
      for (const std::string& kind : by.kinds[r]) weights[kind] += 1;
    }
    std::vector<std::string> all;
    for (const std::vector<std::string>& kinds : by.kinds) {
      std::string& best = all.emplace_back();
      double most = 0;
      for (const std::string& kind : kinds) {
        if (weights[kind] == most && kind != "scale_padded") best.clear();  // padding explains much
        if (weights[kind] > most) best = kind, most = weights[kind];
      }
    }
    return all;
  }

  // The law and the rate that leave least to explain.
  void sizes(const std::string& optimizer) {
    bool known = true;
    const std::vector<SizeRow> rows = size_rows(optimizer, known);
    if (rows.empty()) return;
    std::vector<SizeReading> all;  // the best one by each law
    for (const ScaleLaw& law : kLaws) {
      SizeReading& mine = all.emplace_back();
      std::vector<double> rates = {1};
      for (const SizeRow& row : rows) rates.push_back(row.seen / law(row.rows, row.cols));
      for (const double rate : rates)
        if (SizeReading reading = read(law, rate, rows, known);
            rate > 0 && reading.cost < mine.cost && (optimizer == "muon" || law.scale == Scale::none))
          mine = std::move(reading);
    }
    const SizeReading& best = *std::min_element(
        all.begin(), all.end(), [](const SizeReading& a, const SizeReading& b) { return a.cost < b.cost; });
    if (known && optimizer == "muon" && best.cost > 900 && clipped(rows)) return;
    std::vector<std::string> kinds = chosen(best, rows);
    for (const SizeReading& other :
         all) {  // without a learning rate, another law may say nearly as well that it is another bug
      if (known || other.cost > best.cost + 20.0 / static_cast<double>(rows.size())) continue;
      const std::vector<std::string> others = chosen(other, rows);
      for (std::size_t r = 0; r < rows.size(); ++r)
        if (kinds[r] != others[r]) kinds[r].clear();
    }
    std::vector<SizeRow> odd;
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (!best.kinds[r].empty() && best.kinds[r].front().empty()) odd.push_back(rows[r]);
    const bool some_clipped = known && optimizer == "muon" && !odd.empty() && clipped(odd);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const SizeRow& row = rows[r];
      Evidence& e = *row.of;
      e.told.beta_law = best.law->text, e.rate = best.rate;
      if (best.kinds[r].empty()) {
        if (known && best.rate != 1)
          found({"lr_mismatch", "",
                 fmt::format("its learning rate is {:.4g}, where hyper says {:.4g}", best.rate * *lr_of(e), *lr_of(e))},
                e);
        continue;
      }
      if (some_clipped && best.kinds[r].front().empty()) continue;
      Claim claim{
          kinds[r], "",
          fmt::format("its update is scaled by {:.4f}, where {} of {:.0f} × {:.0f} is {:.4f}", row.seen / best.rate,
                      best.law->text, row.rows, row.cols, (*best.law)(row.rows, row.cols))};
      if (claim.kind == "scale_tp_local") claim.axis = slices_of(e).front().axis;
      found(claim, e);
    }
  }

  // An update that is clipped by its norm has a norm that depends on no shape.
  bool clipped(const std::vector<SizeRow>& rows) {
    std::map<Evidence*, double> squares;
    for (const SizeRow& row : rows) squares[row.of] += row.norm * row.norm;
    const double first = squares.begin()->second;
    for (const auto& [e, square] : squares)
      if (!alike(square, first, 0.06) || (squares.size() < 3 && !alike(first, 1, 0.04))) return false;
    for (const auto& [e, square] : squares)
      found({"update_clipped", "",
             fmt::format("the norm of its update is {:.4f} times the learning rate", std::sqrt(square))},
            *e);
    return true;
  }

  void decay(Evidence& e) {
    const bool adamw = e.by && e.by->optimizer == "adamw", muon = e.by && e.by->optimizer == "muon";
    if (!clean_direction(e) || (!adamw && !muon)) return;
    const std::optional<double> lr = lr_of(e);
    const std::optional<double> decay = decay_of(e);
    const double alpha = e.by->fit.alpha, error = 4 * e.by->fit.alpha_error + 1e-9;
    std::string& law = e.told.alpha_law;
    law = std::abs(alpha) < error ? "none" : "fitted";
    if (!decay || !lr || e.by->by.lines.used) return;
    const Stack stack(e.shape);
    double factor = 1;
    for (const ScaleLaw& of : kLaws)
      if (e.told.beta_law == of.text) factor = of(static_cast<double>(stack.rows), static_cast<double>(stack.cols));
    const double wanted = *lr * *decay;
    const bool cautious = e.by->decays == Decays::where_signs_agree, vector = stack.count * stack.rows == 1;
    const struct {
      bool possible;
      double value;
      const char *kind, *law;
    } rows[] = {{true, wanted, "clean", wanted == 0 ? "none" : "lr · decay"},
                {true, wanted * e.rate, "clean", "lr · decay"},
                {!e.decay_visible || (wanted != 0 && wanted < 2 * error), alpha, "clean", ""},
                {cautious, wanted * factor, "clean", "lr · decay · scale"},
                {wanted == 0, alpha, vector ? "decay_on_gains" : "", "decays"},
                {true, 0, "decay_missing", "none"},
                {true, 2 * wanted, "decay_twice", "twice lr · decay"},
                {true, wanted * factor, "decay_by_scaled_lr", "lr · decay · scale"},
                {true, 2 * wanted * e.rate, "decay_twice", "twice lr · decay"},
                {true, alpha, "", "another"}};
    for (const auto& row : rows) {
      if (!row.possible || std::abs(alpha - row.value) > error + 0.03 * std::abs(row.value)) continue;
      law = row.law;
      if (row.kind != std::string("clean"))
        found({row.kind, "", fmt::format("it decays by {:.3g} ({}), where lr · decay is {:.3g}", alpha, law, wanted)},
              e);
      return;
    }
  }

  // The class that has the polynomials, the roundings and the law of sizes that were found.
  static std::string recipe_name(const Evidence& e) {
    const Orthogonalizer& by = e.by->by;
    for (const Recipe& recipe : recipes()) {
      Orthogonalizer other{&recipe, recipe.settings.newton_schulz, recipe.settings.second_moment};
      other.settings.precision = by.settings.precision, other.settings.steps = by.settings.steps;
      for (const ScaleLaw& law : kLaws)
        if (other.key(true) == by.key(true) && law.scale == recipe.settings.arithmetic.scale &&
            e.told.beta_law == law.text)
          return recipe.name;
    }
    return by.recipe->name;
  }

  DumpVerdict told() {
    for (Evidence& e : all_) {
      ParameterVerdict& p = e.told;
      p.name = e.name;
      if (e.by) p.optimizer = e.by->optimizer, p.distance = e.by->fit.distance;
      if (e.sure) p.alpha = e.by->fit.alpha, p.beta = e.by->fit.mean_beta();
      if (p.optimizer == "muon") p.recipe = recipe_name(e);
      if (e.sure && p.optimizer == "muon") add_recipe(e);
      const auto same = std::find_if(verdict_.parameters.begin(), verdict_.parameters.end(),
                                     [&](const ParameterVerdict& other) { return other.name == p.name; });
      if (same == verdict_.parameters.end())
        verdict_.parameters.push_back(p);
      else if (badness(p.verdict) > badness(same->verdict))
        *same = p;
    }
    for (Finding& finding : verdict_.findings) {
      const std::string bug = bug_text(finding.kind);
      finding.sentence = fmt::format(
          "{}: {} ({} of {}).", bug.empty() ? "Something deviates that no known bug explains" : bug, finding.sentence,
          finding.parameters.size(), count_text(static_cast<std::int64_t>(verdict_.parameters.size()), "parameter"));
    }
    verdict_.verdict = Verdict::unjudgeable;
    for (const ParameterVerdict& p : verdict_.parameters)
      if (badness(p.verdict) > badness(verdict_.verdict)) verdict_.verdict = p.verdict;
    if (verdict_.verdict == Verdict::unjudgeable)
      verdict_.reason = verdict_.parameters.empty()
                            ? "the dump has no parameters"
                            : "nothing in the dump can be judged: " + verdict_.parameters.front().reason;
    return verdict_;
  }

  void add_recipe(const Evidence& e) {
    std::vector<RecipeFound>& all = verdict_.recipes;
    const std::string& coefficients = e.by->by.recipe->coefficients;
    auto same = std::find_if(all.begin(), all.end(), [&](const RecipeFound& other) {
      return other.recipe == e.told.recipe && other.coefficients == coefficients &&
             other.steps == e.by->by.settings.steps;
    });
    if (same == all.end())
      same = all.insert(same, {e.told.recipe, coefficients, e.by->by.settings.steps, e.by->input.nesterov, {}});
    add_once(e.name, same->parameters);
  }

  std::vector<Evidence> all_;
  DumpVerdict verdict_;
};

}  // namespace

DumpVerdict Judge::verdict() const { return Reading(all_).verdict(); }

}  // namespace muonwalk::check
