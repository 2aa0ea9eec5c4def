#include "tools/scale/cluster_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// The units of the file.
constexpr double kTeraflop = 1e12, kGigaflop = 1e9, kMicrosecond = 1e-6;
// What an outermost level joins.
constexpr char kAll[] = "all";

std::string efficiency_text() { return "share of the peak that a product reaches, by its FLOPs"; }

std::string bandwidth_text(const std::string& collective, const std::string& level) {
  return fmt::format("bus bandwidth of {} over {}, in bytes per second, by what it joins", collective,
                     visible_name(level));
}

Accelerator accelerator_from(JsonFields fields) {
  Accelerator accelerator;
  accelerator.name = fields.text("name");
  accelerator.flops_per_second = fields.number("peak_tflop_per_s") * kTeraflop;
  accelerator.memory_bytes = fields.number("memory_gib") * kGibibyte;
  accelerator.memory_bytes_per_second = fields.number("memory_bandwidth_gb_per_s") * kGigabyte;
  if (fields.has("product_efficiency")) {
    accelerator.product_efficiency =
        fields.curve("product_efficiency", efficiency_text(), "gflop", kGigaflop, "share_of_peak", 1);
    for (const MeasuredCurve::Point& point : accelerator.product_efficiency.points())
      if (point.value > 1) fields.refuse("product_efficiency", "has a share of the peak that is above 1");
  }
  accelerator.source = fields.text("source");
  fields.done();
  return accelerator;
}

NetworkLevel level_from(JsonFields& fields, bool outermost) {
  NetworkLevel level;
  level.name = fields.text("name");
  if (outermost && fields.has("accelerators_joined") && fields.is_text("accelerators_joined")) {
    if (fields.text("accelerators_joined") != kAll)
      fields.refuse("accelerators_joined", "is neither a whole number nor \"all\"");
  } else {
    level.accelerators = fields.count("accelerators_joined");
  }
  level.bytes_per_second = fields.number("bandwidth_gb_per_s") * kGigabyte;
  level.latency_seconds = fields.number("latency_us") * kMicrosecond;
  const auto curve = [&](const char* name, const char* collective) {
    return fields.has(name) ? fields.curve(name, bandwidth_text(collective, level.name), "units", 1,
                                           "bus_bandwidth_gb_per_s", kGigabyte)
                            : MeasuredCurve();
  };
  level.all_reduce = curve("all_reduce", "an all-reduce");
  level.all_gather = curve("all_gather", "an all-gather");
  level.source = fields.text("source");
  fields.done();
  return level;
}

void write_curve(nlohmann::ordered_json& into, const char* name, const MeasuredCurve& curve) {
  if (curve.measured()) into[name] = curve_json(curve, "units", 1, "bus_bandwidth_gb_per_s", kGigabyte);
}

nlohmann::ordered_json level_json(const NetworkLevel& level) {
  nlohmann::ordered_json json;
  json["name"] = level.name;
  if (level.accelerators == 0)
    json["accelerators_joined"] = kAll;
  else
    json["accelerators_joined"] = level.accelerators;
  json["bandwidth_gb_per_s"] = in_file_unit(level.bytes_per_second, kGigabyte);
  json["latency_us"] = in_file_unit(level.latency_seconds, kMicrosecond);
  write_curve(json, "all_reduce", level.all_reduce);
  write_curve(json, "all_gather", level.all_gather);
  json["source"] = level.source;
  return json;
}

}  // namespace

MeasuredCurve efficiency_curve(std::vector<MeasuredCurve::Point> points, std::string source) {
  return MeasuredCurve(efficiency_text(), std::move(points), std::move(source));
}

MeasuredCurve bandwidth_curve(const std::string& collective, const std::string& level,
                              std::vector<MeasuredCurve::Point> points, std::string source) {
  return MeasuredCurve(bandwidth_text(collective, level), std::move(points), std::move(source));
}

Cluster cluster_from(const JsonFile& file) {
  JsonFields fields(file);
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

std::string cluster_json(const Cluster& cluster) {
  const Accelerator& accelerator = cluster.accelerator;
  nlohmann::ordered_json json;
  json["name"] = cluster.name;
  auto& device = json["accelerator"];
  device["name"] = accelerator.name;
  device["peak_tflop_per_s"] = in_file_unit(accelerator.flops_per_second, kTeraflop);
  device["memory_gib"] = in_file_unit(accelerator.memory_bytes, kGibibyte);
  device["memory_bandwidth_gb_per_s"] = in_file_unit(accelerator.memory_bytes_per_second, kGigabyte);
  if (accelerator.product_efficiency.measured())
    device["product_efficiency"] = curve_json(accelerator.product_efficiency, "gflop", kGigaflop, "share_of_peak", 1);
  device["source"] = accelerator.source;
  json["levels"] = nlohmann::ordered_json::array();
  for (const NetworkLevel& level : cluster.levels) json["levels"].push_back(level_json(level));
  return json.dump(2) + "\n";
}

}  // namespace muonwalk::sim
