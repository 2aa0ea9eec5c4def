#include <algorithm>
#include <cmath>

#include "tools/check/explanation.hpp"

namespace muonwalk::check {

double norm_of(const Flat& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

double Step::noise() const { return squares > 0 ? std::sqrt(rounding / squares) : rounding > 0 ? 1 : 0; }

Step step_between(const Flat& before, const Flat& after, const std::string& dtype) {
  Step step{Flat(before.size()), &before};
  const int bits = dtype == "BF16" ? 7 : dtype == "F16" ? 10 : 23, least = dtype == "F16" ? -14 : -126;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double moved = static_cast<double>(after[i]) - before[i], weight = before[i];
    step.moved[i] = static_cast<float>(moved);
    step.squares += moved * moved, step.along_weights += moved * weight, step.of_weights += weight * weight;
    int exponent = 0;
    std::frexp(after[i], &exponent);
    const double last_bit = std::ldexp(1.0, std::max(exponent - 1, least) - bits);
    if (!dtype.empty()) step.rounding += last_bit * last_bit / 12;
  }
  return step;
}

double Fit::mean_beta() const {
  double sum = 0, squares = 0;
  for (const Group& of : groups) sum += of.beta * of.norm * of.norm, squares += of.norm * of.norm;
  return squares > 0 ? sum / squares : 0;
}

Fit fit_of(const Step& step, const Flat& update, const std::vector<Block>& groups, Decays decays) {
  struct Sums {
    double moved = 0, weights = 0, squares = 0;  // D · O, W · O, ‖O‖²
  };
  std::vector<Sums> sums(groups.size());
  double dd = 0, dw = 0, ww = 0, count = 0;
  for (std::size_t g = 0; g < groups.size(); ++g)
    groups[g].each([&](std::size_t i) {
      const double d = step.moved[i], o = update[i];
      const double w = decays == Decays::everywhere || (*step.before)[i] * o >= 0 ? (*step.before)[i] : 0;
      dd += d * d, dw += d * w, ww += w * w, count += 1;
      sums[g].moved += d * o, sums[g].weights += w * o, sums[g].squares += o * o;
    });
  const double counted = count;
  // Without what lies along each O, D and W tell α; then each O has its β.
  Fit fit;
  double b = dw, a = ww, left = dd;
  for (const Sums& of : sums) {
    if (of.squares <= 0) continue;
    count -= 1;
    b -= of.moved * of.weights / of.squares, a -= of.weights * of.weights / of.squares;
    left -= of.moved * of.moved / of.squares;
  }
  if (a > 1e-6 * ww) fit.alpha = -b / a, left -= b * b / a;
  for (std::size_t g = 0; g < groups.size(); ++g)
    fit.groups.push_back({static_cast<double>(groups[g].rows.size()), static_cast<double>(groups[g].cols.size()),
                          sums[g].squares > 0 ? -(sums[g].moved + fit.alpha * sums[g].weights) / sums[g].squares : 0,
                          std::sqrt(sums[g].squares)});
  if (!std::isfinite(left)) return fit;  // the update isn't finite
  const double rounding = step.rounding * counted / static_cast<double>(update.size());
  const double made = dd + 2 * fit.alpha * dw + fit.alpha * fit.alpha * ww;
  const double exact = std::max(left, 1e-14 * dd);
  fit.left = std::sqrt(exact);
  const double unsure = std::max(exact, 4 * rounding);  // rounding isn't random in small matrices
  if (fit.alpha != 0) fit.alpha_error = std::sqrt(unsure / std::max(1.0, count) / a);
  if (made > rounding) fit.distance = std::sqrt(std::clamp((exact - rounding) / (made - rounding), 1e-14, 1.0));
  return fit;
}

Fit fit_of(const Step& step, const Flat& update, Decays decays) {
  Block all{{0}, {}};
  for (Index i = 0; i < static_cast<Index>(update.size()); ++i) all.cols.push_back(i);
  return fit_of(step, update, {all}, decays);
}

}  // namespace muonwalk::check
