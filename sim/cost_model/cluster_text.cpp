#include <fmt/format.h>

#include "sim/cost_model/cluster.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

void add(std::vector<std::string>& lines, int indent, const std::string& text) {
  append(lines, paragraph(text, indent, indent + 2));
}

// "bus bandwidth of an all-reduce, GB/s by units: 361.7 at 2, 160.1 at 4", and its source.
void add_curve(std::vector<std::string>& lines, const std::string& what, const MeasuredCurve& curve, double at_unit,
               double value_unit) {
  if (!curve.measured()) return;
  std::string text = what + ": ";
  for (const MeasuredCurve::Point& point : curve.points())
    text += fmt::format("{}{:.4g} at {:.4g}", &point == &curve.points().front() ? "" : ", ", point.value / value_unit,
                        point.at / at_unit);
  add(lines, 4, text);
  add(lines, 6, visible_name(curve.source(), kColumns * 2));
}

void add_level(std::vector<std::string>& lines, const NetworkLevel& level) {
  add(lines, 2,
      fmt::format("{}, which joins {}: {:.4g} GB/s per accelerator, {:.4g} µs", visible_name(level.name),
                  level.accelerators == 0 ? "all accelerators" : fmt::format("{} accelerators", level.accelerators),
                  level.bytes_per_second / kGigabyte, level.latency_seconds * 1e6));
  add(lines, 4, visible_name(level.source, kColumns * 2));
  add_curve(lines, "bus bandwidth of an all-reduce, GB/s by units", level.all_reduce, 1, kGigabyte);
  add_curve(lines, "bus bandwidth of an all-gather, GB/s by units", level.all_gather, 1, kGigabyte);
}

}  // namespace

std::string cluster_text(const Cluster& cluster) {
  const Accelerator& accelerator = cluster.accelerator;
  std::vector<std::string> lines = {visible_name(cluster.name)};
  add(lines, 2,
      fmt::format("{}: {:.4g} TFLOP/s, {:.4g} GiB, {:.4g} GB/s of its memory", visible_name(accelerator.name),
                  accelerator.flops_per_second / 1e12, accelerator.memory_bytes / kGibibyte,
                  accelerator.memory_bytes_per_second / kGigabyte));
  add(lines, 4, visible_name(accelerator.source, kColumns * 2));
  add_curve(lines, "share of that in a product, by its GFLOP", accelerator.product_efficiency, 1e9, 1);
  for (const NetworkLevel& level : cluster.levels) add_level(lines, level);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace muonwalk::sim
