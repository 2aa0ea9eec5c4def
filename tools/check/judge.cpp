#include "tools/check/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "src/text/units.hpp"
#include "tools/check/evidence.hpp"

namespace muonwalk::check {
namespace {

const Flat* values_of(const Assembled& tensor, std::optional<int> rank = {}) {
  if (!tensor.there()) return nullptr;
  for (const Assembled::Version& version : tensor.versions)
    if (rank && std::find(version.ranks.begin(), version.ranks.end(), *rank) != version.ranks.end())
      return &version.values;
  return &tensor.values();
}

View view_of(const ParameterCase& p, std::optional<int> rank = {}) {
  return {values_of(p.before, rank),          values_of(p.after, rank),          values_of(p.grad, rank),
          values_of(p.momentum_before, rank), values_of(p.momentum_after, rank), values_of(p.second_before, rank),
          values_of(p.second_after, rank)};
}

bool finite(const Flat* values) {
  return values == nullptr || std::all_of(values->begin(), values->end(), [](float v) { return std::isfinite(v); });
}
double norm_of(const Flat& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}
float largest_of(const Flat& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// The axis of the mesh along which ranks of one version differ from those of another: the first whose coordinate alone
// tells them apart.
std::string axis_between(const ParameterCase& p, const Assembled& tensor) {
  if (tensor.versions.size() < 2 || p.mesh.empty()) return "dp";
  const auto place = [&](int rank) {
    std::vector<int> at(p.mesh.size());
    for (std::size_t i = p.mesh.size(); i-- > 0;) at[i] = rank % p.mesh[i].second, rank /= p.mesh[i].second;
    return at;
  };
  for (std::size_t axis = 0; axis < p.mesh.size(); ++axis) {
    std::map<int, std::size_t> version_at;
    bool tells = true;
    for (std::size_t v = 0; v < tensor.versions.size(); ++v)
      for (const int rank : tensor.versions[v].ranks)
        tells = tells && version_at.emplace(place(rank)[axis], v).first->second == v;
    if (tells) return p.mesh[axis].first;
  }
  return p.mesh.front().first;
}

// A parameter of which one version of each tensor is looked at.
class Examination {
 public:
  Examination(const ParameterCase& p, View view, Habits& habits) : p_(p), v_(view), habits_(habits) {
    e_.name = p.name, e_.shape = p.shape, e_.meant = p.meant, e_.blocks = p.blocks, e_.hyper = p.hyper;
    e_.step = p.step, e_.slices = slices_of(p);
    for (const char c : p.name)
      if (!std::isdigit(static_cast<unsigned char>(c))) e_.role += c;
  }

  Evidence look() {
    if (v_.momentum_after != nullptr) e_.momentum_norm = norm_of(*v_.momentum_after);
    if (!e_.by && !settled()) {
      matrix_ = p_.shape.size() >= 2 && Stack(p_.shape).rows > 1 && Stack(p_.shape).cols > 1;
      const bool adamw = p_.meant == Meant::adamw || !matrix_;
      moments_ = moments_of(p_, v_, adamw);
      e_.deviations = moments_.deviations;
      find_live();
      direction();
      if (e_.by && e_.sure) conclude();
    }
    return std::move(e_);
  }

 private:
  void say(Verdict verdict, const std::string& reason) { e_.verdict = verdict, e_.reason = reason; }
  void deviates(const std::string& kind, const std::string& how, const std::string& axis = "") {
    e_.deviations.push_back({kind, axis, how});
    say(Verdict::differs, how);
  }

  // What needs no direction. True where nothing else has to be looked at.
  bool settled() {
    if (v_.before == nullptr || v_.after == nullptr) return say(Verdict::unjudgeable, "it has no weights"), true;
    if (!finite(v_.before) || !finite(v_.grad) || !finite(v_.momentum_before))
      return say(Verdict::unjudgeable, "NaN or infinity was there before the step"), true;
    const float largest = v_.grad == nullptr ? 0 : largest_of(*v_.grad);
    const bool overflows = v_.grad != nullptr && (largest > 65504 || norm_of(*v_.grad) > 65504);
    const bool underflows = v_.grad != nullptr && largest > 0 && largest < 6e-8f;
    if (!finite(v_.after) || !finite(v_.momentum_after)) {
      if (overflows)
        deviates("half_overflow", fmt::format("the gradient reaches {:.3g}, half precision 65504", largest));
      else
        say(Verdict::differs, "NaN or infinity appears in the step");
      return true;
    }
    step_ = step_between(*v_.before, *v_.after, p_.after.dtype);
    e_.noise = step_.noise() * (step_.moved.size() < 1024 ? 1 : 0.1);
    const bool moved = step_.squares > 0;
    if (p_.meant == Meant::none) {
      say(Verdict::clean, "");
      if (moved) deviates("frozen_moved", "it is meant to stay, and moved");
      return true;
    }
    if (v_.grad == nullptr || (largest == 0 && (v_.momentum_before == nullptr || norm_of(*v_.momentum_before) == 0))) {
      say(moved ? Verdict::unjudgeable : Verdict::clean, moved ? "it moved without a gradient" : "it has no gradient");
      if (moved && only_decayed() && v_.grad != nullptr) say(Verdict::clean, "");
      return true;
    }
    const auto by_half = [&](const char* otherwise, const std::string& how) {
      if (overflows)
        deviates("half_overflow", fmt::format("{}; the gradient reaches {:.3g}", how, largest));
      else if (underflows)
        deviates("half_underflow", fmt::format("{}; no element of the gradient is above {:.1e}", how, largest));
      else
        deviates(otherwise, how);
    };
    if (!moved) {
      if (p_.after.dtype != "F32" && !visible())
        return say(Verdict::unjudgeable,
                   "no weight moved, but a step may be smaller than a last bit of " + p_.after.dtype),
               true;
      by_half("never_stepped", "it did not move, though its gradient isn't small");
      return true;
    }
    if (only_decayed()) {
      by_half("only_decayed", fmt::format("it was multiplied by 1 − {:.3g}, and not updated", alone_.alpha));
      return true;
    }
    if (step_.noise() > 0.5 && !p_.of_masters && p_.after.dtype != "F32")
      return say(Verdict::unjudgeable, "rounding the weights to " + p_.after.dtype + " is as large as the step"), true;
    return false;
  }

  void find_live() {
    bool stale = false;
    for (const Part& part : p_.parts) {
      bool zero = !part.ranges.empty();
      for (const auto& [begin, end] : part.ranges)
        for (Index i = begin; i < end; ++i) zero = zero && step_.moved[static_cast<std::size_t>(i)] == 0;
      stale = stale || zero;
      if (!zero) live_.insert(live_.end(), part.ranges.begin(), part.ranges.end());
    }
    if (!stale || live_.empty()) live_.clear();
  }

  // Whether a step of the learning rate that hyper gives can be seen in weights of this dtype.
  bool visible() const {
    const std::optional<double> lr = p_.meant == Meant::adamw ? p_.hyper.adamw.lr : p_.hyper.lr;
    if (!lr) return false;
    const double least = p_.meant == Meant::adamw
                             ? 1
                             : 1 / std::sqrt(static_cast<double>(std::max(Stack(p_.shape).rows, Stack(p_.shape).cols)));
    return *lr * least > 2 * std::sqrt(12 * step_.rounding / static_cast<double>(v_.before->size()));
  }

  bool only_decayed() {
    FitSums sums;
    for (std::size_t i = 0; i < step_.moved.size(); ++i) {
      if (i == 0) sums.next_group();
      sums.add(step_.moved[i], 0, (*v_.before)[i]);
    }
    alone_ = sums.fit(0, false);
    alone_.alpha = alone_.beta.empty() ? 0 : alone_.beta.front();
    double left = 0;
    for (std::size_t i = 0; i < step_.moved.size(); ++i) {
      const double rest = step_.moved[i] + alone_.alpha * (*v_.before)[i];
      left += rest * rest;
    }
    return alone_.alpha > 0 && alone_.alpha < 0.5 && left <= std::max(9 * step_.rounding, 1e-8 * step_.squares);
  }

  void take(const Explanation& by, bool sure) { e_.by = by, e_.sure = sure; }

  void direction() {
    const Subject subject{fmt::format("{} {}", e_.role, fmt::join(p_.shape, " ")), p_, v_, step_, moments_};
    const double limit = subject.limit();
    const double strict = 0.01 + std::max(0.35 * step_.noise(), e_.noise) + (p_.grad.dtype == "F32" ? 0 : 0.02);
    std::vector<Explanation> plain = elementwise_explanations(subject, live_);
    const bool adamw_first = p_.meant == Meant::adamw || !matrix_;
    const auto try_plain = [&] {
      if (plain.empty() || plain.front().fit.distance > strict) return false;
      // AdamW in its first step is a sign: what is meant decides, then the second moment, then the learning rate.
      Explanation first = plain.front();
      for (const Explanation& other : plain)
        if (other.optimizer == "adamw" && other.fit.distance < std::max(1.5 * first.fit.distance, 1e-3) &&
            (adamw_first || v_.second_after != nullptr || by_adamw_rate(other)))
          first = other;
      if (first.optimizer == "adamw" && !adamw_first && p_.meant == Meant::muon) first.kind = "stepped_by_adamw";
      if (adamw_first && first.optimizer != "adamw") {
        e_.next = first;
        return false;
      }
      if (first.kind == "sign_update" && p_.step == 1 &&
          std::any_of(plain.begin(), plain.end(),
                      [&](const auto& o) {
                        return o.optimizer == "adamw" && o.fit.distance < std::max(1.5 * first.fit.distance, 1e-3);
                      }) &&
          v_.momentum_after == nullptr && !p_.hyper.lr) {
        say(Verdict::unknown, "a first step of AdamW and the sign of the gradient are the same");
        return true;
      }
      if (p_.meant == Meant::unsaid && first.optimizer == "adamw") first.kind.clear();
      if (!live_.empty()) {
        first.kind = "stale_shard", first.how = "a rank's part did not move";
        for (const Cut& cut : p_.cuts) first.axis = cut.axis;
      }
      if (first.optimizer == "adamw" && !adamw_first) e_.deviations = (moments_ = moments_of(p_, v_, true)).deviations;
      take(first, true);
      return true;
    };
    if (adamw_first && try_plain()) return;
    if (adamw_first && matrix_) {  // the momentum of whatever else it was
      moments_ = moments_of(p_, v_, false);
      e_.deviations.clear();
    }
    if (!matrix_) {
      if (plain.empty() || plain.front().optimizer != "adamw") {
        const bool blind =
            std::none_of(plain.begin(), plain.end(), [](const auto& e) { return e.optimizer == "adamw"; });
        if (blind) return say(Verdict::unjudgeable, "a later step of AdamW can't be judged without both moments");
      }
      if (!plain.empty()) take(plain.front(), false);
      return say(Verdict::unknown, "no known optimizer explains its direction");
    }
    Explanation nearest;
    nearest.fit.distance = 2;
    if (moments_.known) nearest = nearest_recipe(subject, habits_);
    if (nearest.fit.distance <= limit) {
      take(nearest, true);
      if (nearest.fit.distance > 0.006 + 0.35 * step_.noise())
        if (const auto other = other_polynomials(subject, nearest, habits_)) return take(*other, true);
      habits_.orthogonalizer = Orthogonalizer{nearest.recipe, nearest.settings, nearest.lines_scaled,
                                              nearest.recipe->settings.second_moment.longer_side};
      habits_.nesterov = nearest.nesterov;
      return;
    }
    if (!adamw_first && try_plain()) return;
    if (moments_.known)
      if (const auto local = local_explanation(subject, habits_)) return take(*local, true);
    std::vector<Explanation> others = other_explanations(subject, habits_);
    if (nearest.fit.distance < 2) others.push_back(nearest);
    std::stable_sort(others.begin(), others.end(),
                     [](const auto& x, const auto& y) { return x.fit.distance < y.fit.distance; });
    const bool low_rank = nearest.fit.distance < 0.4 && nearest.recipe != nullptr;
    choose(others, plain, low_rank ? 2 * rounding_of(subject, nearest, habits_) : 0);
    if (e_.sure && e_.by->recipe != nullptr && !habits_.orthogonalizer)
      habits_.orthogonalizer = Orthogonalizer{e_.by->recipe, e_.by->settings, false, false};
    if (e_.sure) return;
    e_.moved = Sketch(step_.moved), e_.weights = Sketch(*v_.before);
    for (const Input& input : moments_.inputs)
      if (input.kind.empty() && (!habits_.nesterov || !input.nesterov || *input.nesterov == *habits_.nesterov)) {
        Orthogonalizer by = habits_.orthogonalizer.value_or(orthogonalizers({}).front());
        e_.update = Sketch(orthogonalized(input.made(v_), meant_cutting(p_), by.settings));
        break;
      }
  }

  bool by_adamw_rate(const Explanation& e) const {
    return p_.hyper.adamw.lr && p_.hyper.lr && std::abs(e.fit.mean_beta() / *p_.hyper.adamw.lr - 1) < 0.05 &&
           std::abs(*p_.hyper.lr / *p_.hyper.adamw.lr - 1) > 0.1;
  }

  // The nearest wins if it is near, and nearer than those that would be called something else.
  void choose(const std::vector<Explanation>& all, const std::vector<Explanation>& plain, double rounding) {
    if (all.empty()) return say(Verdict::unjudgeable, "a later step can't be judged without momentum");
    // A known recipe within the roundings of this matrix is believed, unless a bug comes twice as near.
    const double clean = std::max(0.06 + 0.35 * step_.noise(), rounding);
    const auto right = std::find_if(all.begin(), all.end(), [](const Explanation& e) { return e.kind.empty(); });
    const bool nobodys = all.front().kind == "ns_coefficients" && all.front().coefficients.empty();
    const bool believed =
        right != all.end() && right->fit.distance <= clean &&
        (right->fit.distance < 2 * all.front().fit.distance || (nobodys && right->fit.distance <= rounding));
    const Explanation& first = believed ? *right : all.front();
    const Explanation* second = nullptr;
    for (const Explanation& other : all)
      if (second == nullptr && other.kind != first.kind) second = &other;
    if (!plain.empty() && (second == nullptr || plain.front().fit.distance < second->fit.distance))
      second = &plain.front();
    const bool meant = first.kind.empty() || first.kind == "ns_coefficients";
    const double allowed = first.kind.empty() ? clean : (meant ? 0.06 : 0.045) + 0.35 * step_.noise();
    const double apart = second == nullptr ? 1 : second->fit.distance;
    const bool alone = first.kind.empty() || apart > std::max(2 * first.fit.distance, first.fit.distance + 0.02);
    take(first, first.fit.distance <= allowed && alone);
    e_.likely = first.fit.distance <= allowed;
    if (second != nullptr) e_.next = *second;
    if (e_.sure) return;
    if (!moments_.known && !(first.kind == "momentum_ignored" && e_.sure)) {
      e_.by.reset();
      return say(Verdict::unjudgeable, "a later step can't be judged without momentum");
    }
    say(Verdict::unknown,
        fmt::format("nothing explains its direction: the nearest is {} ({:.1f} % off){}",
                    first.kind.empty() ? "a known recipe" : first.kind + " (" + first.how + ")",
                    100 * first.fit.distance,
                    second == nullptr
                        ? ""
                        : fmt::format(", then {} ({:.1f} %)", second->kind.empty() ? "a known recipe" : second->kind,
                                      100 * second->fit.distance)));
  }

  void conclude() {
    Explanation& by = *e_.by;
    const double beta = by.fit.mean_beta();
    e_.decay_visible = by.fit.alpha_error > 0 && (p_.after.dtype == "F32" || by.fit.alpha > 1.0 / 128);
    say(Verdict::clean, "");
    if (p_.meant == Meant::adamw && by.optimizer == "muon") {
      by.kind = "stepped_by_muon", by.how = "it is meant for AdamW, and was orthogonalized", by.axis.clear();
    } else if (by.kind.empty() && beta < 0) {
      by.kind = "sign_flipped", by.how = "the update is added", by.axis.clear();
    } else if (by.kind.empty() && by.optimizer == "muon") {
      const std::optional<int> asked = p_.hyper.ns_steps;
      if (asked && by.steps != *asked && by.recipe != nullptr && by.recipe->has_steps)
        by.kind = "ns_steps", by.how = fmt::format("{} steps, where hyper says {}", by.steps, *asked);
      else if (asked && by.steps != *asked && by.recipe == nullptr)
        by.kind = "ns_steps", by.how = fmt::format("{} steps, where hyper says {}", by.steps, *asked);
      else if (swallowed(by))
        by.kind = "eps_swallows", by.how = "ε is not small beside the norm of what is orthogonalized";
    }
    if (!by.kind.empty()) deviates(by.kind, by.how, by.axis);
    // The momentum tells of what weights alone don't show; one deviation of it is enough.
    for (const Deviation& deviation : moments_.deviations) say(Verdict::differs, deviation.how);
  }

  bool swallowed(const Explanation& by) const {
    for (const Input& input : moments_.inputs)
      if (input.kind.empty())
        for (const Block& block : meant_cutting(p_).blocks) {
          const double norm = norm_of(block.taken(input.made(v_)).flat());
          return norm > 0 && by.settings.normalization.epsilon > 0.03 * norm;
        }
    return false;
  }

  const ParameterCase& p_;
  const View v_;
  Habits& habits_;
  Evidence e_;
  Step step_;
  Moments moments_;
  Fit alone_;
  std::vector<std::pair<Index, Index>> live_;  // where it moved, if some ranks' parts did not
  bool matrix_ = false;
};

// Weights that differ after the step only where one rank kept those from before.
std::optional<Deviation> stale_part(const ParameterCase& p) {
  if (p.after.versions.size() < 2) return std::nullopt;
  const Assembled::Version* most = &p.after.versions.front();
  for (const Assembled::Version& version : p.after.versions)
    if (version.ranks.size() > most->ranks.size() ||
        (version.ranks.size() == most->ranks.size() && most->values == p.before.values()))
      most = &version;
  for (const Assembled::Version& version : p.after.versions) {
    if (&version == most) continue;
    bool stale = true, moved = false;
    for (std::size_t i = 0; i < version.values.size(); ++i) {
      if (version.values[i] != most->values[i])
        stale = stale && version.values[i] == p.before.values()[i];
      else
        moved = moved || version.values[i] != p.before.values()[i];
    }
    if (stale && moved)
      return Deviation{"stale_shard", axis_between(p, p.after),
                       fmt::format("rank {} has the weights from before the step in a part", version.ranks.front())};
  }
  return std::nullopt;
}

}  // namespace

Sketch::Sketch(const Flat& values) {
  constexpr std::size_t kSums = 4096;
  sums_.resize(std::min(kSums, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u;
    if (values.size() <= kSums)
      sums_[i] = values[i];
    else
      sums_[hash % kSums] += (hash >> 40) % 2 == 0 ? values[i] : -values[i];
  }
}

Evidence evidence_of(const ParameterCase& p, Habits& habits) {
  const auto look = [&](std::optional<int> rank) { return Examination(p, view_of(p, rank), habits).look(); };
  if (p.grad.versions.size() < 2) {
    Evidence e = look({});
    if (const auto stale = stale_part(p)) e.deviations = {*stale}, e.verdict = Verdict::differs, e.reason = stale->how;
    return e;
  }
  // Ranks were handed gradients of their own. Either the optimizer reduces them, or one of them was used, or each rank
  // steps with its own.
  if (p.after.versions.size() > 1) {
    std::optional<Evidence> first;
    bool each = true;
    for (const Assembled::Version& version : p.after.versions) {
      Evidence own = look(version.ranks.front());
      each = each && own.sure && own.by->kind.empty();
      if (!first) first = std::move(own);
      if (!each) break;
    }
    if (each) {
      const Deviation own{"gradient_not_reduced", axis_between(p, p.grad), "each rank steps with its own gradient"};
      first->deviations = {own}, first->verdict = Verdict::differs, first->reason = own.how;
      return std::move(*first);
    }
  }
  Flat mean(p.grad.values().size());
  for (const Assembled::Version& version : p.grad.versions)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += version.values[i];
  View reduced = view_of(p);
  for (float& value : mean) value /= static_cast<float>(p.grad.versions.size());
  reduced.grad = &mean;
  Evidence of_mean = Examination(p, reduced, habits).look();
  const auto well = [](const Evidence& e) { return e.sure && e.by->kind.empty() && e.deviations.empty(); };
  if (well(of_mean)) return of_mean;
  const bool by_momentum = p.step == 1 || p.momentum_after.there();
  for (const Assembled::Version& version : p.grad.versions) {
    View one = view_of(p);
    one.grad = &version.values;
    Evidence own = Examination(p, one, habits).look();
    if (!by_momentum || !well(own)) continue;
    const Deviation used{"one_rank_gradient", axis_between(p, p.grad),
                         fmt::format("the gradient of rank {} is used by all", version.ranks.front())};
    own.deviations = {used}, own.verdict = Verdict::differs, own.reason = used.how;
    return own;
  }
  return of_mean;
}

struct Judge::State {
  Habits habits;
  std::vector<Evidence> all;
};

Judge::Judge(int threads) : state_(std::make_unique<State>()) { state_->habits.threads = threads; }
Judge::~Judge() = default;

void Judge::add(const ParameterCase& parameter) {
  Evidence e = evidence_of(parameter, state_->habits);
  state_->all.push_back(std::move(e));
}

DumpVerdict Judge::verdict() const { return verdict_of(state_->all); }

}  // namespace muonwalk::check
