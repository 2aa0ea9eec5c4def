// What is not orthogonalized, and what ranks made of their parts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/check/explanation.hpp"

namespace muonwalk::check {
namespace {

using Act = std::function<void(const Explanation& of, const Flat& update)>;

// AdamW's update, with all numbers that hyper may leave open.
void each_adamw(const Subject& s, const Act& act) {
  const View& v = s.view;
  const AdamwHyper& a = s.parameter.hyper.adamw;
  const bool first = s.parameter.step == 1;
  if (v.grad == nullptr || (!first && v.momentum_after == nullptr && v.momentum_before == nullptr) ||
      (!first && v.second_after == nullptr && v.second_before == nullptr))
    return;
  const auto at = [](const Flat* values, std::size_t i) { return values == nullptr ? 0.0 : double{(*values)[i]}; };
  const double b1 = a.beta1.value_or(0.9), t = static_cast<double>(s.parameter.step);
  std::vector<double> of_beta2 = {0.95, 0.999, 0.99}, epsilons = {1e-8, 1e-10, 1e-6, 1e-15};
  if (a.beta2 || v.second_after != nullptr || first) of_beta2 = {a.beta2.value_or(0.95)};  // in the first β₂ cancels
  if (a.epsilon) epsilons = {*a.epsilon};
  Flat update(v.before->size());
  for (const double b2 : of_beta2)
    for (const double epsilon : epsilons) {
      for (std::size_t i = 0; i < update.size(); ++i) {
        const double g = at(v.grad, i);
        const double m =
            v.momentum_after != nullptr ? at(v.momentum_after, i) : b1 * at(v.momentum_before, i) + (1 - b1) * g;
        const double u =
            v.second_after != nullptr ? at(v.second_after, i) : b2 * at(v.second_before, i) + (1 - b2) * g * g;
        const double below = std::sqrt(std::max(0.0, u) / (1 - std::pow(b2, t))) + epsilon;
        update[i] = below > 0 ? static_cast<float>(m / (1 - std::pow(b1, t)) / below) : 0;
      }
      act({{"", "", "as AdamW does"}, "adamw"}, update);
    }
}

// Which of the parts the update explains, and by what one bug it explains the others.
std::optional<Explanation> of_parts(const Subject& s, const std::vector<Block>& parts, Explanation e,
                                    const Flat& update, double limit) {
  Flat there(update.size());  // the update with another part's in place of a part's
  const auto moved = [&](const Block& part) { return norm_of(part.taken(s.step.moved).flat()) > 0; };
  const auto explains = [&](const Block& part, const Block& other) {
    const Matrix theirs = other.taken(update);
    if (theirs.size() != static_cast<Index>(part.rows.size() * part.cols.size()) || !moved(part)) return false;
    const float* from = theirs.data();
    part.each([&](std::size_t i) { there[i] = *from++; });
    const Fit fit = fit_of(s.step, there, {part});
    if (fit.distance > limit || fit.mean_beta() <= 0) return false;
    return e.fit = fit, true;
  };
  std::vector<std::string> kinds;
  // Parts are as large as the first, and the last is padded where it is shorter.
  const Index padding = static_cast<Index>(parts.size() * parts[0].rows.size() * parts[0].cols.size()) -
                        static_cast<Index>(update.size());
  for (const Block& part : parts) {
    if (explains(part, part)) continue;
    Block before = part;
    for (Index& row : before.rows) row -= padding;
    const bool shifted = padding > 0 && before.rows.front() >= 0 && explains(part, before);
    const bool swapped =
        !shifted && std::any_of(parts.begin(), parts.end(), [&](const Block& o) { return explains(part, o); });
    if (moved(part) && !swapped && !shifted) return std::nullopt;
    kinds.push_back(shifted ? "padding_shifts" : swapped ? "shard_of_other_rank" : "stale_shard");
  }
  const auto same = static_cast<std::size_t>(kinds.empty() ? 0 : std::count(kinds.begin(), kinds.end(), kinds[0]));
  // Where all are right, sizes differ, not directions; where none moved, nothing is known.
  if (kinds.empty() || same != kinds.size() || (kinds[0] == "stale_shard" && same == parts.size())) return std::nullopt;
  e.kind = kinds[0];
  e.how = fmt::format("{} of {} parts", same, parts.size());
  return e;
}

}  // namespace

std::vector<Explanation> elementwise_explanations(const Subject& s) {
  std::vector<Explanation> found;
  const Act consider = [&](Explanation e, const Flat& update) {
    e.fit = fit_of(s.step, update);
    const Fit cautious = fit_of(s.step, update, Decays::where_signs_agree);
    if (cautious.distance < 0.5 * e.fit.distance) e.fit = cautious, e.decays = Decays::where_signs_agree;
    found.push_back(e);
  };
  each_adamw(s, consider);
  for (const Input& input : s.moments.inputs) {
    if (!input.kind.empty() || input.rounds_otherwise) continue;
    Flat made = input.made(s.view);
    consider({{"not_orthogonalized", "", "the momentum itself"}, "sgd"}, made);
    for (float& value : made) value = value > 0 ? 1.0f : value < 0 ? -1.0f : 0.0f;
    consider({{"sign_update", "", "the sign of the momentum"}, "sign"}, made);
  }
  sort(found);
  return found;
}

std::optional<Explanation> local_explanation(const Subject& s) {
  std::optional<Explanation> found;
  for (const bool of_moments : {false, true}) {
    const Cutting parts = rank_parts(s.parameter, of_moments);
    if (found || parts.blocks.size() < 2 || parts.blocks.size() > 256) continue;
    const bool habit = s.habits.orthogonalizer.has_value();
    const Act look = [&](const Explanation& by, const Flat& update) {
      const double limit = by.optimizer == "adamw" ? 0.03 + s.step.noise() : habit ? 1.5 * s.limit() : 0.12 + s.limit();
      if (!found) found = of_parts(s, parts.blocks, by, update, limit);
      if (found) found->axis = parts.axis;
    };
    if (s.parameter.meant != Meant::muon) each_adamw(s, look);
    for (const Input& input : s.moments.inputs)
      for (const Orthogonalizer& one : habit ? std::vector{*s.habits.orthogonalizer} : s.ways())
        if (!found && input.kind.empty() && !one.lines.used && (habit || one.settings.precision == Precision::fp32))
          look({{}, "muon", one, input}, s.orthogonalized(input, s.meant, one));
  }
  return found;
}

}  // namespace muonwalk::check
