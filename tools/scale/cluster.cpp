#include "tools/scale/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

// Of ranks that are `stride` apart, how many lie in each unit of `accelerators`; 0 where some units hold more than
// others. In long, because ranks · stride may be more than an int can count.
long ranks_in_unit(long ranks, long stride, long accelerators) {
  if (stride >= accelerators) return stride % accelerators == 0 ? 1 : 0;
  if (accelerators % stride != 0) return 0;
  const long room = accelerators / stride;
  if (ranks <= room) return room % ranks == 0 ? ranks : 0;
  return ranks % room == 0 ? room : 0;
}

// Of the GPUs on which somebody timed products of several sizes.
const std::vector<MeasuredCurve>& curves_of_known_gpus() {
  static const std::vector<MeasuredCurve> all = [] {
    std::vector<MeasuredCurve> curves;
    for (const char* name : {"h100-efa", "a100-selene", "rtx4090-100gbe"})
      for (const MeasuredCurve& curve : cluster_of(name).accelerator.product_efficiency) curves.push_back(curve);
    return curves;
  }();
  return all;
}

}  // namespace

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

ProductEfficiency product_efficiency(const Accelerator& accelerator, double product) {
  ProductEfficiency efficiency;
  if (product <= 0) return efficiency;
  efficiency.elsewhere = accelerator.product_efficiency.empty();
  efficiency.source = efficiency.elsewhere ? "measured on other GPUs alone: the middle of what they reach"
                                           : "measured on this accelerator, by the size of a product";
  const std::vector<MeasuredCurve>& curves =
      efficiency.elsewhere ? curves_of_known_gpus() : accelerator.product_efficiency;
  bool inside = false;
  for (const MeasuredCurve& curve : curves) {
    const CurveReading reading = curve.at(product);
    efficiency.low = std::min(efficiency.low, reading.value);
    efficiency.high = &curve == &curves.front() ? reading.value : std::max(efficiency.high, reading.value);
    inside = inside || !reading.outside;
    const auto distance = [product](const Outside& each) { return std::abs(std::log(each.nearest / product)); };
    if (reading.outside && (!efficiency.outside || distance(*reading.outside) < distance(*efficiency.outside)))
      efficiency.outside = reading.outside;
  }
  if (inside) efficiency.outside.reset();
  efficiency.value = std::sqrt(efficiency.low * efficiency.high);
  return efficiency;
}

GroupSpread group_spread(const Cluster& cluster, int ranks, int stride) {
  if (ranks < 1 || stride < 1)
    throw std::invalid_argument(
        fmt::format("a group of {} ranks with a stride of {} was to be laid out; both count from 1", ranks, stride));
  GroupSpread spread;
  long inside = 1;  // ranks of the group in a unit of the level below
  for (std::size_t l = 0; l < cluster.levels.size(); ++l) {
    const NetworkLevel& level = cluster.levels[l];
    const long here = level.accelerators == 0 ? ranks : ranks_in_unit(ranks, stride, level.accelerators);
    if (here == 0 || here % inside != 0)
      throw UsageError(
          fmt::format("groups of {} ranks with a stride of {} do not fit evenly into the {} accelerators that {} joins "
                      "in {}; take sizes that divide them, or that they divide",
                      ranks, stride, level.accelerators, level.name, cluster.name));
    spread.widths.push_back(static_cast<int>(here / inside));
    spread.inside.push_back(static_cast<int>(inside));
    // Every accelerator of the unit below is in one such group, and `inside` of them in this one.
    spread.sharing.push_back(static_cast<int>(std::max(1L, cluster.unit_below(l) / inside)));
    inside = here;
  }
  if (inside != ranks)
    throw UsageError(
        fmt::format("{} joins {} accelerators and no more, so a group of {} ranks with a stride of {} "
                    "does not fit into it; take fewer ranks or another cluster",
                    cluster.name, cluster.levels.back().accelerators, ranks, stride));
  return spread;
}

}  // namespace muonwalk::sim
