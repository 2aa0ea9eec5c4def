#include "tools/check/moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/io/float16.hpp"
#include "src/numerics/fused.hpp"

namespace muonwalk::check {
namespace {

double dot(const Flat& x, const Flat& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

bool near(double value, double wanted, double tolerance) {
  return std::abs(value - wanted) <= tolerance * std::max(std::abs(wanted), 1e-3);
}

// `result` as a combination of the others: the factors, and what is left of it, relative to it.
std::vector<double> combination(const Flat& result, const std::vector<const Flat*>& of, double& left) {
  const std::size_t n = of.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) rows[i][j] = rows[j][i] = dot(*of[i], *of[j]);
    rows[i][n] = dot(*of[i], result);
  }
  std::vector<double> factors(n);
  for (std::size_t k = 0; k < n; ++k) {  // symmetric and positive: no pivots; what depends on others is left out
    const double diagonal = dot(*of[k], *of[k]);
    if (rows[k][k] <= 1e-9 * diagonal) {
      for (auto& row : rows) row[k] = 0;
      rows[k].assign(n + 1, 0), rows[k][k] = 1;
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  for (std::size_t k = 0; k < n; ++k) factors[k] = rows[k][n] / rows[k][k];
  double squares = 0, whole = 0;
  for (std::size_t e = 0; e < result.size(); ++e) {
    double rest = result[e];
    for (std::size_t k = 0; k < n; ++k) rest -= factors[k] * (*of[k])[e];
    squares += rest * rest, whole += static_cast<double>(result[e]) * result[e];
  }
  left = whole > 0 ? std::sqrt(squares / whole) : 0;
  return factors;
}

bool is_zero(const Flat& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

void judge_law(Moments& m, const ParameterCase& p, const View& v, std::optional<double> mu, bool first) {
  MomentumLaw& law = m.law;
  const bool coarse = p.momentum_after.dtype != "F32" || p.grad.dtype != "F32";
  const double rounding = coarse ? 8e-3 : 2e-4, tolerance = coarse ? 0.02 : 3e-3;
  std::vector<const Flat*> of = {v.grad};
  if (!first) of.push_back(v.momentum_before);
  std::vector<double> factors = combination(*v.momentum_after, of, law.left);
  law.fitted = true;
  if (law.left > rounding) {
    of.push_back(v.before);
    double left = 0;
    const std::vector<double> with = combination(*v.momentum_after, of, left);
    if (left <= rounding && with.front() != 0) {
      factors = with, law.left = left, law.of_weights = with.back();
      m.deviations.push_back({"decay_in_gradient", "",
                              fmt::format("the momentum holds the weights, {:.4g} of them for each gradient",
                                          with.back() / with.front())});
    }
  }
  law.holds = law.left <= rounding;
  law.of_gradient = factors.front(), law.mu = first ? mu.value_or(1 - factors.front()) : factors[1];
  const double c = law.of_gradient;
  law.is_mean = std::abs(c - (1 - mu.value_or(law.mu))) < std::abs(c - 1);
  if (!law.holds) return;
  if (law.of_weights != 0) return;
  const double norm = std::sqrt(dot(*v.momentum_after, *v.momentum_after));
  const bool unit = std::abs(norm - 1) < 0.02;
  const auto overwritten = [&] {
    m.deviations.push_back({"momentum_overwritten", "",
                            fmt::format("the stored momentum is {:.4g} times what its law gives, with a norm of {:.4f}",
                                        c / (law.is_mean ? 1 - m.mu : 1), norm)});
    law.holds = false;
  };
  if (first) {
    if (near(c, 1, tolerance) || (mu && near(c, 1 - *mu, tolerance)) || (!mu && c > 0 && c < 0.5 && !unit)) return;
    if (unit) return overwritten();
    if (mu) {
      m.deviations.push_back({"gradient_scaled", "", fmt::format("the momentum takes {:.4g} of the gradient", c)});
      law.is_mean = std::abs(std::log(std::abs(c) / (1 - *mu))) < std::abs(std::log(std::abs(c)));
    }
    return;
  }
  const bool of_sum = near(c, 1, tolerance), of_mean = near(c, 1 - law.mu, std::max(tolerance, 0.01));
  if (mu && near(law.mu, *mu, tolerance)) {
    if (of_sum || near(c, 1 - *mu, tolerance)) return;
    m.deviations.push_back({"gradient_scaled", "", fmt::format("the momentum takes {:.4g} of the gradient", c)});
    law.is_mean = std::abs(std::log(std::abs(c) / (1 - *mu))) < std::abs(std::log(std::abs(c)));
    return;
  }
  if (of_sum || of_mean || (mu && near(c, 1 - *mu, tolerance))) {
    if (mu)
      m.deviations.push_back(
          {"momentum_coefficient", "", fmt::format("μ is {:.4f}, where hyper says {:.4g}", law.mu, *mu)});
    m.mu = law.mu;
    return;
  }
  const double ratio = c / law.mu;
  const double guess = mu.value_or(0.95);
  if (unit || near(ratio, 1 / guess, tolerance) || near(ratio, (1 - guess) / guess, tolerance)) {
    law.is_mean =
        std::abs(std::log(std::abs(ratio * guess))) > std::abs(std::log(std::abs(ratio * guess / (1 - guess))));
    return overwritten();
  }
  if (!mu && law.mu > 0 && law.mu < 1) {
    m.deviations.push_back(
        {"gradient_scaled", "", fmt::format("the momentum takes {:.4g} of the gradient, with μ {:.4f}", c, law.mu)});
    return;
  }
  m.deviations.push_back(
      {"", "", fmt::format("the momentum is {:.4g} m + {:.4g} g, which is no known law", law.mu, c)});
}

}  // namespace

Flat Input::made(const View& view) const {
  const std::pair<double, const Flat*> parts[] = {{of_momentum_before, view.momentum_before},
                                                  {of_gradient, view.grad},
                                                  {of_momentum_after, view.momentum_after},
                                                  {of_weights, view.before}};
  Flat made(view.before->size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    double sum = 0;
    for (const auto& [factor, values] : parts)
      if (factor != 0 && values != nullptr) sum += factor * (*values)[i];
    made[i] = static_cast<float>(sum);
    // With the roundings of torch.lerp and torch.add: in matrices of low rank they decide what Newton–Schulz makes of
    // them.
    if (of_gradient > 0 && of_momentum_after > 0 && of_momentum_before == 0 && of_weights == 0) {
      const float mu = static_cast<float>(of_momentum_after), g = (*view.grad)[i], m = (*view.momentum_after)[i];
      if (of_gradient == 1)
        made[i] = fused(mu, m, g);
      else if (std::abs(of_gradient + of_momentum_after - 1) < 1e-9 && mu >= 0.5f)
        made[i] = fused(mu - 1, m - g, m);
    }
    if (in_half) made[i] = float16_to_float(float_to_float16(made[i]));
  }
  return made;
}

Moments moments_of(const ParameterCase& p, const View& v, bool adamw) {
  Moments m;
  const std::optional<double> mu = adamw ? p.hyper.adamw.beta1 : p.hyper.momentum;
  m.mu = mu.value_or(adamw ? 0.9 : 0.95);
  const bool lost = v.momentum_before != nullptr && p.step > 1 && is_zero(*v.momentum_before);
  const bool first = p.step == 1 || lost;
  if (lost && v.grad != nullptr && !is_zero(*v.grad))
    m.deviations.push_back({"momentum_lost", "", fmt::format("the momentum is zero before step {}", p.step)});
  if (v.grad == nullptr) return m;
  const bool before = v.momentum_before != nullptr && !first;
  if (v.momentum_after != nullptr && (before || first)) judge_law(m, p, v, mu, first);
  if (m.law.fitted && !mu && !first && m.law.mu > 0 && m.law.mu < 1) m.mu = m.law.mu;
  if (m.law.fitted && m.law.of_weights != 0 && adamw) m.law.holds = false;
  if (adamw) return m;

  // Inputs, by their factors of m, g and m'.
  const MomentumLaw& law = m.law;
  const auto add = [&](const std::string& kind, const std::string& how, std::optional<bool> nesterov, double of_m,
                       double of_g, double of_new, double of_w = 0) {
    Input input{kind, how, nesterov, of_m, of_g, of_new, of_w};
    if (v.momentum_before == nullptr || first) input.of_momentum_before = 0;
    if (input.of_momentum_before == 0 && input.of_gradient == 0 && input.of_momentum_after == 0) return;
    const auto ratio = [&](const Input& i) {  // its direction in the plane of m and g
      const bool in_plane = law.holds && law.of_weights == 0 && (before || first);
      const double g = i.of_gradient + (in_plane ? i.of_momentum_after * law.of_gradient : 0);
      const double m0 = before ? i.of_momentum_before + (in_plane ? i.of_momentum_after * law.mu : 0) : 0;
      const double size = std::hypot(m0, g, in_plane ? 0 : i.of_momentum_after);
      return std::vector<double>{m0 / size, g / size, in_plane ? 0 : i.of_momentum_after / size, i.of_weights / size};
    };
    const std::vector<double> mine = ratio(input);
    for (Input& other : m.inputs) {
      const std::vector<double> theirs = ratio(other);
      double apart = 0;
      for (std::size_t i = 0; i < 4; ++i) apart += std::abs(mine[i] - theirs[i]);
      if (apart > 1e-3) continue;
      if (!kind.empty() || !other.kind.empty()) return;
      if (other.nesterov != nesterov) other.nesterov.reset(), input.nesterov.reset();
      input.rounds_otherwise = true;
    }
    m.inputs.push_back(input);
  };
  const double u = m.mu;
  const std::optional<bool> asked = p.hyper.nesterov;
  const auto kind_of = [&](bool nesterov) {
    return first || !asked || *asked == nesterov ? std::string() : std::string("nesterov_mismatch");
  };
  const auto how_of = [](bool nesterov) { return nesterov ? "with Nesterov's look-ahead" : "without a look-ahead"; };
  m.known = first || before || v.momentum_after != nullptr;
  for (const std::string& wanted : {std::string(), std::string("nesterov_mismatch")})
    for (const bool nesterov : {false, true}) {
      if (kind_of(nesterov) != wanted || !m.known) continue;
      if (v.momentum_after != nullptr && (law.holds || !law.fitted)) {
        const double scaled = law.fitted && !first ? law.of_gradient / (law.is_mean ? 1 - law.mu : 1) : 1;
        for (const bool mean : {false, true})
          if (!law.fitted || law.is_mean == mean) {
            add(wanted, how_of(nesterov), nesterov, 0, nesterov ? (mean ? 1 - u : 1) * scaled : 0, nesterov ? u : 1,
                nesterov && law.of_weights != 0 ? (mean ? 1 - u : 1) * law.of_weights / law.of_gradient : 0);
          }
      } else {
        for (const bool mean : {false, true})
          if (!law.fitted || !law.holds || law.is_mean == mean) {
            const double c = mean ? 1 - u : 1;
            if (nesterov)
              add(wanted, how_of(true), true, u * u, c + u * c, 0);
            else
              add(wanted, how_of(false), false, u, c, 0);
          }
      }
    }
  if (law.fitted && !law.holds && v.momentum_after != nullptr)
    add("momentum_overwritten", "the altered momentum", false, 0, 0, 1);
  if (m.known && !first) {
    add("momentum_ignored", "the gradient alone", false, 0, 1, 0);
    add("momentum_stale", "the momentum from before this gradient", false, 1, 0, 0);
    if (law.holds) {
      const char* mixed = "a momentum that is averaged in one place and summed in another";
      add("momentum_mixed", mixed, true, 0, law.is_mean ? 1 : 1 - u, u);
      add("momentum_mixed", mixed, false, u, law.is_mean ? 1 : 1 - u, 0);
      add("momentum_mixed", mixed, true, u * u, law.is_mean ? 1 + u : (1 - u) * (1 + u), 0);
    }
  } else if (!m.known) {
    add("momentum_ignored", "the gradient alone", false, 0, 1, 0);
  }
  const std::vector<Input> clean = m.inputs;
  for (const Input& input : clean) {
    if (!input.kind.empty() || input.rounds_otherwise) continue;
    const double of_g = input.of_gradient + input.of_momentum_after * (law.fitted ? law.of_gradient : 1);
    std::vector<double> decays = {0.1, 0.01};
    if (p.hyper.weight_decay) decays = {*p.hyper.weight_decay};
    if (law.of_weights == 0)
      for (const double decay : decays)
        if (decay > 0)
          add("decay_in_gradient", fmt::format("the gradient with {} times the weights", decay), input.nesterov,
              input.of_momentum_before, input.of_gradient, input.of_momentum_after, of_g * decay);
    Input half = input;
    half.kind = "half_underflow", half.how = "what half precision leaves of the momentum", half.in_half = true;
    m.inputs.push_back(half);
  }
  return m;
}

}  // namespace muonwalk::check
