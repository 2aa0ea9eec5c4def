#include "tools/check/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "src/numerics/products.hpp"

namespace muonwalk::check {
namespace {

View view_of(const ParameterCase& p, std::optional<int> rank = {}) {
  const auto of = [&](const Assembled& tensor) -> const Flat* {
    for (const Assembled::Version& version : tensor.versions)
      if (rank && std::count(version.ranks.begin(), version.ranks.end(), *rank) > 0) return &version.values;
    return tensor.there() ? &tensor.values() : nullptr;
  };
  return {of(p.before),         of(p.after),         of(p.grad),        of(p.momentum_before),
          of(p.momentum_after), of(p.second_before), of(p.second_after)};
}

bool finite(const Flat* values) {
  return values == nullptr || std::all_of(values->begin(), values->end(), [](float v) { return std::isfinite(v); });
}
double largest_of(const Flat* values) {
  double largest = 0;
  for (std::size_t i = 0; values != nullptr && i < values->size(); ++i)
    largest = std::max(largest, std::abs(double{(*values)[i]}));
  return largest;
}

// The axis of the mesh along which ranks repeat the parameter: the first that doesn't cut it.
std::string axis_of_copies(const Described& p) {
  for (const auto& [name, size] : p.mesh)
    if (size > 1 && std::none_of(p.cuts.begin(), p.cuts.end(), [&](const Cut& cut) { return cut.axis == name; }))
      return name;
  return "dp";
}

// A parameter of which one version of each tensor is looked at.
class Examination {
 public:
  // `quick`: known recipes alone.
  Examination(const ParameterCase& p, View view, Habits& habits, bool quick)
      : p_(p), v_(view), habits_(habits), quick_(quick) {
    static_cast<Described&>(e_) = p;
    for (const char c : p.name)
      if (!std::isdigit(static_cast<unsigned char>(c))) e_.role += c;
  }

  Evidence look() {
    if (!settled()) {
      const Stack stack(p_.shape);
      matrix_ = p_.shape.size() >= 2 && stack.rows > 1 && stack.cols > 1;
      moments_ = moments_of(p_, v_, p_.meant == Meant::adamw || !matrix_);
      e_.deviations = moments_.deviations, e_.lawful = moments_.lawful;
      direction();
      if (e_.by && e_.sure) conclude();
    }
    return std::move(e_);
  }

 private:
  bool say(Verdict verdict, const std::string& reason) {
    e_.told.verdict = verdict, e_.told.reason = reason;
    return true;
  }
  bool deviates(const Claim& claim) {
    e_.deviations.push_back(claim);
    return say(Verdict::differs, claim.how);
  }

  // What needs no direction. True where nothing else has to be looked at.
  bool settled() {
    if (v_.before == nullptr || v_.after == nullptr) return say(Verdict::unjudgeable, "it has no weights");
    if (!finite(v_.before) || !finite(v_.grad) || !finite(v_.momentum_before))
      return say(Verdict::unjudgeable, "NaN or infinity was there before the step");
    const double largest = largest_of(v_.grad);
    const bool overflows = v_.grad != nullptr && norm_of(*v_.grad) > 65504, underflows = largest > 0 && largest < 6e-8;
    const auto by_half = [&](const char* otherwise, const std::string& how) {
      return deviates({overflows    ? "half_overflow"
                       : underflows ? "half_underflow"
                                    : otherwise,
                       "",
                       how + (overflows || underflows ? fmt::format("; the gradient reaches {:.3g}", largest) : "")});
    };
    if (!finite(v_.after) || !finite(v_.momentum_after)) {
      const char* how = "NaN or infinity appears in the step";
      return overflows ? by_half("", how) : say(Verdict::differs, how);
    }
    step_ = step_between(*v_.before, *v_.after, p_.after.dtype);
    e_.noise = step_.noise() * (step_.moved.size() < 1024 ? 1 : 0.1);
    const bool moved = step_.squares > 0;
    if (p_.meant == Meant::none)
      return moved ? deviates({"frozen_moved", "", "it is meant to stay, and moved"}) : say(Verdict::clean, "");
    const double decayed = -step_.along_weights / std::max(step_.of_weights, 1e-300);
    const bool only_decayed =
        decayed > 0 && decayed < 0.5 &&
        step_.squares + decayed * step_.along_weights <= std::max(9 * step_.rounding, 1e-8 * step_.squares);
    if (largest == 0 && (v_.grad == nullptr || largest_of(v_.momentum_before) == 0)) {
      if (!moved || (only_decayed && v_.grad != nullptr)) return say(Verdict::clean, "");
      return say(Verdict::unjudgeable, "it moved without a gradient");
    }
    const bool coarse = p_.after.dtype != "F32";
    if (!moved && coarse && !visible())
      return say(Verdict::unjudgeable,
                 "no weight moved, but a step may be smaller than a last bit of " + p_.after.dtype);
    if (!moved) return by_half("never_stepped", "it did not move, though its gradient isn't small");
    if (only_decayed)
      return by_half("only_decayed", fmt::format("it was multiplied by 1 − {:.3g}, and not updated", decayed));
    if (step_.noise() > 0.5 && !p_.of_masters && coarse)
      return say(Verdict::unjudgeable, "rounding the weights to " + p_.after.dtype + " is as large as the step");
    return false;
  }

  // Whether a step of the learning rate that hyper gives can be seen in weights of this dtype.
  bool visible() const {
    const bool adamw = p_.meant == Meant::adamw;
    const std::optional<double> lr = adamw ? p_.hyper.adamw.lr : p_.hyper.lr;
    const Stack stack(p_.shape);
    const double least = adamw ? 1 : 1 / std::sqrt(static_cast<double>(std::max(stack.rows, stack.cols)));
    return lr && *lr * least > 2 * std::sqrt(12 * step_.rounding / static_cast<double>(v_.before->size()));
  }

  void take(const Explanation& by, bool sure = true) { e_.by = by, e_.sure = sure; }

  void direction() {
    const Subject s{fmt::format("{} {}", e_.role, fmt::join(p_.shape, " ")), p_, v_, step_, moments_, habits_};
    const bool adamw_first = p_.meant == Meant::adamw || !matrix_;
    std::vector<Explanation> plain;
    if (adamw_first) plain = elementwise_explanations(s);
    if (adamw_first && elementwise(plain, true)) return;
    if (adamw_first && matrix_) moments_ = moments_of(p_, v_, false);  // of whatever else it was
    if (adamw_first && matrix_) e_.deviations.clear();
    const auto local = [&] {
      const std::optional<Explanation> found = quick_ ? std::nullopt : local_explanation(s);
      if (found) take(*found);
      return found.has_value();
    };
    if (!matrix_) {
      if (local()) return;
      if (!plain.empty()) take(plain.front(), false);
      const bool blind = std::none_of(plain.begin(), plain.end(), [](const auto& e) { return e.optimizer == "adamw"; });
      say(blind ? Verdict::unjudgeable : Verdict::unknown,
          blind ? "a later step of AdamW can't be judged without both moments"
                : "no known optimizer explains its direction");
      return;
    }
    const Explanation nearest = moments_.known ? nearest_recipe(s) : Explanation();
    if (nearest.fit.distance <= s.limit()) {
      take(nearest);
      habits_.orthogonalizer = nearest.by, habits_.nesterov = nearest.input.nesterov;
      return;
    }
    if (!adamw_first) plain = elementwise_explanations(s);
    if (!adamw_first && elementwise(plain, false)) return;
    if (moments_.known && local()) return;
    if (quick_) return;
    std::vector<Explanation> others = other_explanations(s);
    if (nearest.fit.distance < 2) others.push_back(nearest);
    sort(others);
    choose(others, plain);
    if (e_.sure && !habits_.orthogonalizer) habits_.orthogonalizer = e_.by->by;
    // Where momentum itself comes nearer, nothing was orthogonalized, by whatever coefficients.
    const bool orthogonal = plain.empty() || nearest.fit.distance < plain.front().fit.distance;
    if (!e_.sure && moments_.known && !s.moments.inputs.empty()) unexplained(s, nearest, orthogonal);
  }

  // It may have another one's update, which is told when all are seen; or its own with other singular values. Then
  // D Oᵀ and Dᵀ O are symmetric, where O is another function of the same singular values.
  void unexplained(const Subject& s, const Explanation& nearest, bool orthogonal) {
    const Orthogonalizer by = habits_.orthogonalizer.value_or(s.ways().front());
    const Flat update = s.orthogonalized(s.moments.inputs.front(), s.meant, by);
    for (std::size_t i = 0; i < update.size(); i += update.size() / 1024 + 1) {
      const float values[] = {(*v_.before)[i], (*v_.after)[i], update[i]};
      for (std::size_t k = 0; k < 3; ++k) e_.sampled[k].push_back(values[k]);
    }
    const Stack stack(p_.shape);
    const bool small = norm_of(nearest.input.made(v_)) < 1e-4;  // then ε may be the reason; below a tenth, arithmetic
    if (!orthogonal || nearest.fit.distance > 0.6 || nearest.fit.distance < 0.1 || small ||
        std::max(stack.rows, stack.cols) > 2048)
      return;
    const Flat of = s.orthogonalized(nearest.input, s.meant, nearest.by);
    Flat moved = step_.moved;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(nearest.fit.alpha) * (*v_.before)[i];
    double apart = 0, all = 0;
    for (const Block& block : s.meant.blocks)
      for (const bool turned : {false, true}) {
        const Matrix d = block.taken(moved), o = block.taken(of);
        Matrix product;
        multiply(turned ? d.transposed() : d, turned ? o : o.transposed(), product, habits_.threads);
        for (Index i = 0; i < product.rows(); ++i)
          for (Index j = 0; j < product.cols(); ++j)
            apart += std::pow(double{product(i, j)} - product(j, i), 2), all += std::pow(2.0 * product(i, j), 2);
      }
    if (std::sqrt(apart / all) < 0.2 * nearest.fit.distance)
      deviates(
          {"ns_coefficients", "", "its singular vectors are right, and its singular values those of no known set"});
  }

  // Takes the nearest of what is not orthogonalized, if it is near. AdamW in its first step is a sign: what is meant
  // decides, then whether there is a second moment.
  bool elementwise(const std::vector<Explanation>& plain, bool adamw_first) {
    const double strict = 0.01 + std::max(0.35 * step_.noise(), e_.noise) + (p_.grad.dtype == "F32" ? 0 : 0.02);
    if (plain.empty() || plain.front().fit.distance > strict) return false;
    const auto adamws = std::find_if(plain.begin(), plain.end(), [](const auto& e) { return e.optimizer == "adamw"; });
    const bool like_adamw =
        adamws != plain.end() && adamws->fit.distance < std::max(1.5 * plain.front().fit.distance, 1e-3);
    Explanation first = like_adamw && (adamw_first || v_.second_after != nullptr) ? *adamws : plain.front();
    const bool adamw = first.optimizer == "adamw";
    if (adamw_first && !adamw) return false;
    if (first.kind == "sign_update" && p_.step == 1 && like_adamw && v_.momentum_after == nullptr)
      return say(Verdict::unknown, "a first step of AdamW and the sign of the gradient are the same");
    if (adamw && !adamw_first) {
      e_.deviations = moments_of(p_, v_, true).deviations;
      if (p_.meant == Meant::muon) first.kind = "stepped_by_adamw";
    }
    take(first);
    return true;
  }

  // The nearest wins if it is near, and nearer than those that would be called something else.
  void choose(const std::vector<Explanation>& all, const std::vector<Explanation>& plain) {
    const char* blind = "a later step can't be judged without momentum";
    if (all.empty()) return static_cast<void>(say(Verdict::unjudgeable, blind));
    // A known recipe within the roundings of a matrix of low rank is believed, unless a bug comes twice as near.
    const double clean = step_.within(0.05);
    const auto right = std::find_if(all.begin(), all.end(), [](const Explanation& e) { return e.kind.empty(); });
    const bool believed =
        right != all.end() && right->fit.distance <= clean && right->fit.distance < 2 * all.front().fit.distance;
    const Explanation& first = believed ? *right : all.front();
    const Explanation* second = plain.empty() ? nullptr : &plain.front();
    for (const Explanation& other : all)
      if (other.kind != first.kind && (second == nullptr || other.fit.distance < second->fit.distance)) second = &other;
    const double distance = first.fit.distance, apart = second == nullptr ? 1 : second->fit.distance;
    const double allowed = first.kind.empty() ? clean : step_.within(0.045);
    e_.likely = distance <= allowed;
    take(first, e_.likely && (first.kind.empty() || apart > std::max(2 * distance, distance + 0.02)));
    if (e_.sure) return;
    if (!moments_.known)
      e_.by.reset(), say(Verdict::unjudgeable, blind);
    else
      say(Verdict::unknown,
          fmt::format("nothing explains its direction: the nearest is {} ({:.1f} % off), then {} ({:.1f} %)",
                      name_of(&first), 100 * distance, name_of(second), 100 * apart));
  }
  static std::string name_of(const Explanation* e) {
    return e == nullptr ? "nothing" : e->kind.empty() ? "a known recipe" : e->kind + " (" + e->how + ")";
  }

  void conclude() {
    Explanation& by = *e_.by;
    e_.decay_visible = by.fit.alpha_error > 0 && (p_.after.dtype == "F32" || by.fit.alpha > 1.0 / 128);
    say(Verdict::clean, "");
    const bool muon = by.optimizer == "muon";
    if (p_.meant == Meant::adamw && muon)
      static_cast<Claim&>(by) = {"stepped_by_muon", "", "it is meant for AdamW, and was orthogonalized"};
    else if (by.kind.empty() && by.fit.mean_beta() < 0)
      static_cast<Claim&>(by) = {"sign_flipped", "", "the update is added"};
    else if (by.kind.empty() && muon && swallowed(by))
      static_cast<Claim&>(by) = {"eps_swallows", "", "ε is not small beside the norm of what is orthogonalized"};
    if (!by.kind.empty()) deviates(by);
    // The momentum tells of what weights alone don't show; one deviation of it is enough.
    if (muon && !moments_.lawful && e_.deviations.empty() && by.input.of[2] == 0)
      e_.deviations.push_back({"momentum_overwritten", "", "the stored momentum is not what its law gives"});
    if (by.kind.empty() && !e_.deviations.empty()) say(Verdict::differs, e_.deviations.back().how);
  }

  bool swallowed(const Explanation& by) const {
    const double norm = norm_of(meant_cutting(p_).blocks.front().taken(by.input.made(v_)).flat());
    return norm > 0 && by.by.settings.normalization.epsilon > 0.03 * norm;
  }

  const ParameterCase& p_;
  const View v_;
  Habits& habits_;
  const bool quick_;
  Evidence e_;
  Step step_;
  Moments moments_;
  bool matrix_ = false;
};

// Looks at one parameter of one step.
Evidence evidence_of(const ParameterCase& p, Habits& habits) {
  const auto with = [&](Evidence e, const Claim& claim) {
    e.deviations = {claim}, e.told.verdict = Verdict::differs, e.told.reason = claim.how;
    return e;
  };
  if (p.grad.versions.size() < 2) return Examination(p, view_of(p), habits, false).look();
  // Ranks were handed gradients of their own. Either the optimizer reduces them, or one of them was used, or each rank
  // steps with its own.
  const auto well = [](const Evidence& e) { return e.sure && e.by->kind.empty() && e.deviations.empty() && e.lawful; };
  const auto& after = p.after.versions;
  const auto own = [&](const auto& version) {
    return Examination(p, view_of(p, version.ranks.front()), habits, true).look();
  };
  if (after.size() > 1 && std::all_of(after.begin(), after.end(), [&](const auto& version) {
        const Evidence e = own(version);
        return e.sure && e.by->kind.empty();
      }))
    return with(own(after.front()),
                {"gradient_not_reduced", axis_of_copies(p), "each rank steps with its own gradient"});
  Flat mean(p.grad.values().size());
  for (const Assembled::Version& version : p.grad.versions)
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += version.values[i] / static_cast<float>(p.grad.versions.size());
  View view = view_of(p);
  view.grad = &mean;
  const Evidence of_mean = Examination(p, view, habits, true).look();
  if (well(of_mean)) return of_mean;
  for (const Assembled::Version& version : p.grad.versions) {
    View one = view_of(p);
    one.grad = &version.values;
    if (p.step > 1 && !p.momentum_after.there()) break;
    const Evidence e = Examination(p, one, habits, true).look();
    if (well(e))
      return with(e, {"one_rank_gradient", axis_of_copies(p),
                      fmt::format("the gradient of rank {} is used by all", version.ranks.front())});
  }
  return Examination(p, view, habits, false).look();
}

}  // namespace

void Judge::add(const ParameterCase& parameter) { all_.push_back(evidence_of(parameter, habits_)); }

}  // namespace muonwalk::check
