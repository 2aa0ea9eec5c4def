// Clusters from JSON: those that are known by name (clusters/), and a reader's own files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/json_fields.hpp"
#include "tools/scale/muonwalk_scale_texts.hpp"

namespace muonwalk::sim {

namespace {

constexpr double kTeraflop = 1e12, kGigaflop = 1e9, kMicrosecond = 1e-6;
constexpr CurveAxes kBusBandwidth = {"units", 1, "bus_bandwidth_gb_per_s", kGigabyte};

Accelerator accelerator_from(JsonFields fields) {
  Accelerator accelerator;
  accelerator.name = fields.text("name");
  accelerator.flops_per_second = fields.number("peak_tflop_per_s", kTeraflop);
  accelerator.memory_bytes = fields.number("memory_gib", kGibibyte);
  accelerator.memory_bytes_per_second = fields.number("memory_bandwidth_gb_per_s", kGigabyte);
  accelerator.product_efficiency = fields.curves("product_efficiency", {"gflop", kGigaflop, "share_of_peak", 1});
  for (const MeasuredCurve& curve : accelerator.product_efficiency)
    for (const MeasuredCurve::Point& point : curve.points)
      if (point.value > 1) fields.refuse("product_efficiency", "has a share of the peak that is above 1");
  accelerator.source = fields.text("source");
  fields.done();
  return accelerator;
}

NetworkLevel level_from(JsonFields& fields, bool outermost) {
  NetworkLevel level;
  level.name = fields.text("name");
  level.accelerators = outermost ? fields.whole_or_all("accelerators_joined") : fields.whole("accelerators_joined");
  level.bytes_per_second = fields.number("bandwidth_gb_per_s", kGigabyte);
  level.latency_seconds = fields.number("latency_us", kMicrosecond);
  level.all_reduce = fields.curve("all_reduce", kBusBandwidth);
  level.all_gather = fields.curve("all_gather", kBusBandwidth);
  level.source = fields.text("source");
  fields.done();
  return level;
}

Cluster cluster_from(const JsonFile& file, const nlohmann::json& root) {
  JsonFields fields(file, "", root);
  Cluster cluster;
  cluster.name = fields.text("name");
  cluster.accelerator = accelerator_from(fields.object("accelerator"));
  std::vector<JsonFields> levels = fields.objects("levels");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const NetworkLevel level = level_from(levels[l], l + 1 == levels.size());
    const int below = l == 0 ? 1 : cluster.levels.back().accelerators;
    if (level.accelerators != 0 && (level.accelerators % below != 0 || level.accelerators == below))
      levels[l].refuse("accelerators_joined",
                       fmt::format("is {}, which is not a multiple of the {} that the level below it joins",
                                   level.accelerators, below));
    cluster.levels.push_back(level);
  }
  fields.done();
  if (cluster.node() == 0)
    levels[0].refuse("accelerators_joined", "is \"all\", but the innermost level joins a number of them");
  return cluster;
}

}  // namespace

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : page_texts::clusters) names.emplace_back(name);
  return names;
}

Cluster cluster_of(const std::string& name) {
  const JsonFile file{"cluster file", name};
  if (ends_with(name, ".json")) return cluster_from(file, file.read());
  for (const auto& [known, text] : page_texts::clusters)
    if (name == known) return cluster_from(file, file.parsed(text));
  throw UsageError(fmt::format("no cluster is called {}; take {}, or a file that ends in .json", in_quotes(name),
                               fmt::join(cluster_names(), ", ")));
}

}  // namespace muonwalk::sim
