#include "tools/scale/measured_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace muonwalk::sim {

CurveReading MeasuredCurve::at(double at) const {
  if (points.empty() || !std::isfinite(at) || at <= 0)
    throw std::invalid_argument(fmt::format("a curve of {} points was read at {:g}", points.size(), at));
  const Point &first = points.front(), &last = points.back();
  if (at < first.at) return {first.value, Outside{at, first.at}};
  if (at > last.at) return {last.value, Outside{at, last.at}};
  const auto right =
      std::lower_bound(points.begin(), points.end(), at, [](const Point& point, double x) { return point.at < x; });
  if (right->at == at) return {right->value};
  const Point& left = *std::prev(right);
  const double part = std::log(at / left.at) / std::log(right->at / left.at);
  return {left.value * std::pow(right->value / left.value, part)};
}

}  // namespace muonwalk::sim
