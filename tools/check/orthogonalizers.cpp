#include "tools/check/orthogonalizers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/errors.hpp"

namespace muonwalk::check {
namespace {

bool same_quintics(const std::vector<Quintic>& left, const std::vector<Quintic>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Quintic& x, const Quintic& y) { return x.a == y.a && x.b == y.b && x.c == y.c; });
}

bool same_orthogonalizer(const Orthogonalizer& left, const Orthogonalizer& right) {
  const NewtonSchulzSettings &x = left.settings, &y = right.settings;
  const Normalization &m = x.normalization, &n = y.normalization;
  const bool fp32 = x.precision == Precision::fp32;
  return x.precision == y.precision && x.steps == y.steps && same_quintics(x.schedule, y.schedule) &&
         m.cushion == n.cushion && m.equal_rows == n.equal_rows && left.lines_scaled == right.lines_scaled &&
         left.longer_side == right.longer_side &&
         (fp32 || (x.lines == y.lines && m.round_first == n.round_first && x.from_the_right == y.from_the_right &&
                   m.floor == n.floor));
}

}  // namespace

std::vector<Orthogonalizer> orthogonalizers(std::optional<int> steps) {
  std::vector<Orthogonalizer> all;
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Recipe& recipe : recipes())
      for (const bool asked : {true, false}) {
        if (asked && !steps) continue;
        Orthogonalizer one{&recipe, recipe.settings.newton_schulz, recipe.settings.second_moment.used,
                           recipe.settings.second_moment.longer_side};
        one.settings.precision = precision;
        try {
          if (asked) take_coefficients(one.settings, recipe.coefficients, *steps);
        } catch (const UsageError&) {
          continue;  // they don't reach so far
        }
        if (std::none_of(all.begin(), all.end(), [&](const auto& each) { return same_orthogonalizer(each, one); }))
          all.push_back(one);
      }
  return all;
}

Flat orthogonalized(const Flat& input, const Cutting& cutting, const NewtonSchulzSettings& settings, bool as_it_is) {
  Flat update(input.size());
  for (const Block& block : cutting.blocks) {
    Matrix x = block.taken(input);
    NewtonSchulzSettings chosen = settings;
    if (as_it_is) {
      double squares = 0;
      for (const float value : x.flat()) squares += static_cast<double>(value) * value;
      chosen.normalization.cushion = squares > 0 ? 1 / std::sqrt(squares) : 1;
    }
    block.put(newton_schulz(x, chosen), update);
  }
  return update;
}

double Polynomials::operator()(double value) const {
  for (const Quintic& q : quintics) {
    const double square = value * value;
    value *= static_cast<double>(q.a) + square * (static_cast<double>(q.b) + square * static_cast<double>(q.c));
  }
  return value;
}

const std::vector<Polynomials>& polynomials() {
  static const std::vector<Polynomials> all = [] {
    std::vector<Polynomials> made;
    for (const bool usual : {true, false})
      for (const CoefficientSet& set : coefficient_sets())
        for (int steps = 1; steps <= 12; ++steps)
          for (const double cushion : {1.0, 1.01, 1.02}) {
            if ((steps == 5) != usual || (set.name == "polar_dion") == (cushion == 1)) continue;
            try {
              made.push_back({set.name, true, steps, set.of_steps(steps), cushion});
            } catch (const UsageError&) {
              break;  // the set doesn't reach so far
            }
          }
    for (const CoefficientSet& set : coefficient_sets()) {  // known ones in another order
      if (set.name == "simple" || set.name == "deepseekv4") continue;
      const int count = std::min(5, static_cast<int>(set.quintics.size()));
      std::vector<int> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      while (std::next_permutation(order.begin(), order.end())) {
        Polynomials other{set.name + " in another order", false, count, {}, set.name == "polar_dion" ? 1.02 : 1};
        for (const int i : order) other.quintics.push_back(set.quintics[static_cast<std::size_t>(i)]);
        made.push_back(other);
      }
    }
    return made;
  }();
  return all;
}

}  // namespace muonwalk::check
