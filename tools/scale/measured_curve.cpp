#include "tools/scale/measured_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {

MeasuredCurve::MeasuredCurve(std::string what, std::vector<Point> points, std::string source)
    : what_(std::move(what)), points_(std::move(points)), source_(std::move(source)) {
  if (points_.empty()) throw UsageError(fmt::format("the {} has no point; it takes at least one", what_));
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    for (const double number : {point.at, point.value})
      if (!std::isfinite(number) || number <= 0)
        throw UsageError(
            fmt::format("the {} has {:g} in its point {}; it takes finite numbers above 0", what_, number, i + 1));
    if (i > 0 && point.at <= points_[i - 1].at)
      throw UsageError(
          fmt::format("the {} goes from {:g} to {:g}; its points have to rise", what_, points_[i - 1].at, point.at));
  }
}

CurveReading MeasuredCurve::at(double at) const {
  if (points_.empty()) throw std::logic_error("a curve was read that has no point");
  if (!std::isfinite(at) || at <= 0)
    throw std::invalid_argument(fmt::format("the {} was read at {:g}, which is not a number above 0", what_, at));
  const Point &first = points_.front(), &last = points_.back();
  if (at < first.at) return {first.value, true, first.at};
  if (at > last.at) return {last.value, true, last.at};
  const auto right =
      std::lower_bound(points_.begin(), points_.end(), at, [](const Point& point, double x) { return point.at < x; });
  if (right->at == at) return {right->value};
  const Point& left = *std::prev(right);
  const double part = std::log(at / left.at) / std::log(right->at / left.at);
  return {left.value * std::pow(right->value / left.value, part)};
}

}  // namespace muonwalk::sim
