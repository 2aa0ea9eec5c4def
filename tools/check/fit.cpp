#include "tools/check/fit.hpp"

#include <algorithm>
#include <cmath>

namespace muonwalk::check {
namespace {

// The least difference between numbers of this size in a dtype with so many bits behind the leading one.
double last_bit(float value, int bits, int least_exponent) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 1, least_exponent) - bits);
}

}  // namespace

double Step::noise() const { return squares > 0 ? std::sqrt(rounding / squares) : rounding > 0 ? 1 : 0; }

Step step_between(const Flat& before, const Flat& after, const std::string& dtype) {
  Step step;
  step.before = &before;
  step.moved.resize(before.size());
  const int bits = dtype == "BF16" ? 7 : dtype == "F16" ? 10 : 23, least = dtype == "F16" ? -14 : -126;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double moved = static_cast<double>(after[i]) - before[i];
    step.moved[i] = static_cast<float>(moved);
    step.squares += moved * moved;
    step.of_weights += static_cast<double>(before[i]) * before[i];
    const double last = last_bit(after[i], bits, least);
    step.rounding += last * last / 12;
  }
  return step;
}

double Fit::mean_beta() const {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < beta.size(); ++i) sum += beta[i] * norm[i] * norm[i], squares += norm[i] * norm[i];
  return squares > 0 ? sum / squares : 0;
}

Fit FitSums::fit(double rounding, bool with_alpha) const {
  Fit fit;
  double b = dw_, a = ww_, left = squares_;
  std::size_t used = 0;
  for (const Group& g : groups_) {
    if (g.squares <= 0) continue;
    ++used;
    b -= g.moved * g.weights / g.squares, a -= g.weights * g.weights / g.squares;
    left -= g.moved * g.moved / g.squares;
  }
  if (with_alpha && a > 1e-6 * ww_) fit.alpha = -b / a, left -= b * b / a;
  for (const Group& g : groups_) {
    fit.beta.push_back(g.squares > 0 ? -(g.moved + fit.alpha * g.weights) / g.squares : 0);
    fit.norm.push_back(std::sqrt(g.squares));
  }
  const double update = squares_ + 2 * fit.alpha * dw_ + fit.alpha * fit.alpha * ww_;
  if (!std::isfinite(left)) return fit;  // the update isn't finite
  const double exact = std::max(left, 1e-14 * squares_);
  const double unsure = std::max(exact, 4 * rounding);  // rounding isn't random in small matrices
  fit.alpha_error = fit.alpha != 0 ? std::sqrt(unsure / std::max(1.0, count_ - static_cast<double>(used)) / a) : 0;
  if (update > rounding) fit.distance = std::sqrt(std::clamp((exact - rounding) / (update - rounding), 1e-14, 1.0));
  return fit;
}

Fit fit_of(const Step& step, const Flat& update, const std::vector<Block>& groups, Decays decays) {
  FitSums sums;
  for (const Block& block : groups) {
    sums.next_group();
    for (const Index r : block.out_rows.empty() ? block.rows : block.out_rows)
      for (const Index c : block.out_cols.empty() ? block.cols : block.out_cols) {
        const std::size_t i = static_cast<std::size_t>(r + c);
        const float w = (*step.before)[i], o = update[i];
        sums.add(step.moved[i], decays == Decays::everywhere || w * o >= 0 ? w : 0, o);
      }
  }
  return sums.fit(step.rounding);
}

Fit fit_of(const Step& step, const Flat& update, Decays decays) {
  FitSums sums;
  sums.next_group();
  for (std::size_t i = 0; i < update.size(); ++i) {
    const float w = (*step.before)[i];
    sums.add(step.moved[i], decays == Decays::everywhere || w * update[i] >= 0 ? w : 0, update[i]);
  }
  return sums.fit(step.rounding);
}

Fit fit_of(const Step& step, const Flat& update, const std::vector<std::pair<Index, Index>>& at, Index shift) {
  FitSums sums;
  sums.next_group();
  Index count = 0;
  for (const auto& [begin, end] : at)
    for (Index i = begin; i < end; ++i) {
      const Index from = i + shift;
      if (from < 0 || from >= static_cast<Index>(update.size())) continue;
      sums.add(step.moved[static_cast<std::size_t>(i)], (*step.before)[static_cast<std::size_t>(i)],
               update[static_cast<std::size_t>(from)]);
      ++count;
    }
  return sums.fit(step.rounding * static_cast<double>(count) /
                  static_cast<double>(std::max<std::size_t>(1, update.size())));
}

}  // namespace muonwalk::check
