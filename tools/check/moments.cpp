#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/io/float16.hpp"
#include "src/numerics/fused.hpp"
#include "tools/check/explanation.hpp"

namespace muonwalk::check {
namespace {

bool near(double value, double wanted, double tolerance) {
  return std::abs(value - wanted) <= tolerance * std::max(std::abs(wanted), 1e-3);
}
// Whether a factor is rather that of a mean, 1 − μ, than that of a sum, 1.
bool of_mean(double factor, double mu) {
  return std::abs(std::log(std::abs(factor / (1 - mu)))) < std::abs(std::log(std::abs(factor)));
}

// m' = μ m + c (g + λ W), fitted.
struct MomentumLaw {
  bool fitted = false, holds = false;  // Holds: what is left is no more than rounding.
  double mu = 0, of_gradient = 0, of_weights = 0;
  bool is_mean = false;  // c is rather 1 − μ than 1.
};

// `mu` is that of hyper. In a first step m is zero, and μ can't be seen.
MomentumLaw law_of(const ParameterCase& p, const View& v, std::optional<double> mu, bool first,
                   std::vector<Claim>& deviations) {
  MomentumLaw law;
  const bool coarse = p.momentum_after.dtype != "F32" || p.grad.dtype != "F32";
  const double rounding = coarse ? 8e-3 : 2e-4, tolerance = coarse ? 0.02 : 3e-3;
  const double norm = norm_of(*v.momentum_after);
  const Flat zero(first ? v.grad->size() : 0);
  const Step between{*v.momentum_after, first ? &zero : v.momentum_before};
  const double decay = p.hyper.weight_decay.value_or(0.1);
  const auto deviates = [&](const char* kind, const std::string& how) { deviations.push_back({kind, "", how}); };
  for (const double of_weights : {0.0, decay}) {
    const Fit fit = fit_of(between, of_weights == 0 ? *v.grad : Input{{}, {}, {0, 1, 0, of_weights}}.made(v));
    if (!first && fit.alpha == 0) return law;  // the gradient is that of the step before
    law.fitted = true, law.holds = fit.left <= rounding * norm;
    law.of_gradient = -fit.groups.front().beta, law.of_weights = of_weights;
    law.mu = first ? mu.value_or(1 - law.of_gradient) : -fit.alpha;
    if (law.holds) break;
  }
  const double c = law.of_gradient;
  law.is_mean = of_mean(c, mu.value_or(law.mu));
  if (law.holds && law.of_weights != 0)
    deviates("decay_in_gradient", fmt::format("the momentum holds {} times the weights for each gradient", decay));
  if (!law.holds || law.of_weights != 0) return law;

  const double guess = mu.value_or(0.95), ratio = c / law.mu;
  const bool unit = std::abs(norm - 1) < 0.02, right_mu = first || (mu && near(law.mu, *mu, tolerance));
  const bool right_c =
      near(c, 1, tolerance) || (mu && near(c, 1 - *mu, tolerance)) ||
      (first ? !mu && c > 0 && c < 0.5 && !unit : !right_mu && near(c, 1 - law.mu, std::max(tolerance, 0.01)));
  const bool altered =
      unit || (!first && (near(ratio, 1 / guess, tolerance) || near(ratio, (1 - guess) / guess, tolerance)));
  if (right_c) {
    if (mu && !right_mu)
      deviates("momentum_coefficient", fmt::format("μ is {:.4f}, and hyper says {:.4g}", law.mu, *mu));
  } else if (altered && (first || !right_mu)) {
    if (!first) law.is_mean = of_mean(ratio * guess, guess);
    law.holds = false;
    deviates("momentum_overwritten",
             fmt::format("the stored momentum is {:.4g} times what its law gives, with a norm of {:.4f}",
                         c / (law.is_mean ? 1 - guess : 1), norm));
  } else if (right_mu ? mu.has_value() : !mu && law.mu > 0 && law.mu < 1) {
    deviates("gradient_scaled", fmt::format("the momentum takes {:.4g} of the gradient, with μ {:.4f}", c, law.mu));
  } else if (!first) {
    deviates("", fmt::format("the momentum is {:.4g} m + {:.4g} g, which isn't a known law", law.mu, c));
  }
  return law;
}

}  // namespace

Flat Input::made(const View& view) const {
  const Flat* parts[] = {view.momentum_before, view.grad, view.momentum_after, view.before};
  const auto [of_m, of_g, of_new, of_w] = of;
  Flat made(view.before->size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k)
      if (of[k] != 0 && parts[k] != nullptr) sum += of[k] * (*parts[k])[i];
    made[i] = static_cast<float>(sum);
    // With the roundings of torch.lerp and torch.add: in matrices of low rank they decide what Newton–Schulz makes.
    if (of_g > 0 && of_new > 0 && of_m == 0 && of_w == 0) {
      const float mu = static_cast<float>(of_new), g = (*view.grad)[i], m = (*view.momentum_after)[i];
      if (of_g == 1)
        made[i] = fused(mu, m, g);
      else if (std::abs(of_g + of_new - 1) < 1e-9 && mu >= 0.5f)
        made[i] = fused(mu - 1, m - g, m);
    }
    if (in_half) made[i] = float16_to_float(float_to_float16(made[i]));
  }
  return made;
}

Moments moments_of(const ParameterCase& p, const View& v, bool adamw) {
  Moments m;
  const std::optional<double> asked = adamw ? p.hyper.adamw.beta1 : p.hyper.momentum;
  const bool lost = v.momentum_before != nullptr && p.step > 1 && all_zero(*v.momentum_before);
  const bool first = p.step == 1 || lost, before = v.momentum_before != nullptr && !first;
  if (v.grad == nullptr) return m;
  if (lost && !all_zero(*v.grad))
    m.deviations.push_back({"momentum_lost", "", fmt::format("the momentum is zero before step {}", p.step)});
  MomentumLaw law;
  if (v.momentum_after != nullptr && (before || first)) law = law_of(p, v, asked, first, m.deviations);
  m.lawful = !law.fitted || law.holds;
  if (adamw) return m;

  const bool other = !m.deviations.empty() && m.deviations.back().kind == "momentum_coefficient";
  const bool seen = law.fitted && !first && law.mu > 0 && law.mu < 1 && (!asked || other);
  const double u = seen ? law.mu : asked.value_or(0.95);
  const bool in_plane = law.holds && law.of_weights == 0;  // The momentum after the step is a combination of others.
  const auto direction = [&](const Input& input) {
    auto [of_m, of_g, of_new, of_w] = input.of;
    if (in_plane) of_g += of_new * law.of_gradient, of_m += before ? of_new * law.mu : 0, of_new = 0;
    const double size = std::hypot(of_m, of_g, of_new);
    return std::array<double, 4>{of_m / size, of_g / size, of_new / size, of_w / size};
  };
  const auto add = [&](Input input) {
    if (!before) input.of[0] = 0;
    if (input.of[0] == 0 && input.of[1] == 0 && input.of[2] == 0) return;
    const std::array<double, 4> mine = direction(input);
    for (Input& earlier : m.inputs) {
      double apart = 0;
      const std::array<double, 4> theirs = direction(earlier);
      for (std::size_t i = 0; i < 4; ++i) apart += std::abs(mine[i] - theirs[i]);
      if (apart > 1e-3) continue;
      if (!input.kind.empty() || !earlier.kind.empty()) return;
      if (earlier.nesterov != input.nesterov) earlier.nesterov.reset(), input.nesterov.reset();
      input.rounds_otherwise = true;
    }
    m.inputs.push_back(input);
  };
  m.known = first || before || v.momentum_after != nullptr;
  const bool from_new = v.momentum_after != nullptr && (law.holds || !law.fitted);
  const double scaled = law.fitted && !first ? law.of_gradient / (law.is_mean ? 1 - law.mu : 1) : 1;
  for (const std::string& kind : {std::string(), std::string("nesterov_mismatch")})
    for (const bool nesterov : {false, true})
      for (const bool mean : {false, true}) {
        const bool right = first || !p.hyper.nesterov || *p.hyper.nesterov == nesterov;
        if (right != kind.empty() || !m.known || (law.holds && law.is_mean != mean)) continue;
        const double c = mean ? 1 - u : 1, w = law.holds ? c * law.of_weights : 0;
        Input input{{kind, "", nesterov ? "with Nesterov's look-ahead" : "without a look-ahead"}, nesterov};
        if (nesterov)
          input.of = from_new ? std::array{0.0, c * scaled, u, w} : std::array{u * u, c + u * c, 0.0, 0.0};
        else
          input.of = from_new ? std::array{0.0, 0.0, 1.0, 0.0} : std::array{u, c, 0.0, 0.0};
        add(input);
      }

  const double other_c = law.is_mean ? 1 : 1 - u;  // of the other one of mean and sum
  const bool later = m.known && !first;
  const char* const mixed = "a momentum that is averaged in one place and summed in another";
  const struct {
    bool possible;
    Input input;
  } rows[] = {
      {law.fitted && !law.holds, {{"momentum_overwritten", "", "the altered momentum"}, false, {0, 0, 1, 0}}},
      {later || !m.known, {{"momentum_ignored", "", "the gradient alone"}, false, {0, 1, 0, 0}}},
      {later, {{"momentum_stale", "", "the momentum from before this gradient"}, false, {1, 0, 0, 0}}},
      {later && law.holds, {{"momentum_mixed", "", mixed}, true, {0, other_c, u, 0}}},
      {later && law.holds, {{"momentum_mixed", "", mixed}, false, {u, other_c, 0, 0}}},
      {later && law.holds, {{"momentum_mixed", "", mixed}, true, {u * u, other_c * (1 + u), 0, 0}}},
  };
  for (const auto& row : rows)
    if (row.possible) add(row.input);

  const std::vector<Input> clean = m.inputs;
  for (Input half : clean) {
    if (!half.kind.empty() || half.rounds_otherwise) continue;
    half.kind = "half_underflow", half.how = "what half precision leaves of the momentum", half.in_half = true;
    if (norm_of(*v.grad) < 1e-4 * std::sqrt(static_cast<double>(v.grad->size()))) m.inputs.push_back(half);
  }
  return m;
}

}  // namespace muonwalk::check
