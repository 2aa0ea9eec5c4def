// Clusters from JSON: those that are known by name (clusters/), and a reader's own files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/json_fields.hpp"
#include "tools/scale/machine_costs.hpp"

namespace muonwalk::sim {

namespace page_texts {
extern const char *const a100_selene,
    *const h100_efa, *const h100_ndr, *const h200_ndr, *const gb300_nvl72,
                                                           *const rtx4090_100gbe,
                                                               *const epyc_vm;  // the folder clusters/, by embed_texts
}

namespace {

struct KnownCluster {
  const char* name;
  const char* const& json;
};

constexpr KnownCluster kKnown[] = {
    {"a100-selene", page_texts::a100_selene}, {"h100-efa", page_texts::h100_efa},
    {"h100-ndr", page_texts::h100_ndr},       {"h200-ndr", page_texts::h200_ndr},
    {"gb300-nvl72", page_texts::gb300_nvl72}, {"rtx4090-100gbe", page_texts::rtx4090_100gbe},
    {"epyc-vm", page_texts::epyc_vm}};

// What an outermost level joins.
constexpr char kAll[] = "all";

Accelerator accelerator_from(JsonFields fields) {
  Accelerator accelerator;
  accelerator.name = fields.text("name");
  accelerator.flops_per_second = fields.number("peak_tflop_per_s") * kTeraflop;
  accelerator.memory_bytes = fields.number("memory_gib") * kGibibyte;
  accelerator.memory_bytes_per_second = fields.number("memory_bandwidth_gb_per_s") * kGigabyte;
  if (fields.has("product_efficiency")) {
    accelerator.product_efficiency =
        fields.curve("product_efficiency", kProductEfficiencyCurve, "gflop", kGigaflop, "share_of_peak", 1);
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
    if (!fields.has(name)) return MeasuredCurve();
    const std::string what = fmt::format("bus bandwidth of {} over {}, in bytes per second, by what it joins",
                                         collective, visible_name(level.name));
    return fields.curve(name, what, "units", 1, "bus_bandwidth_gb_per_s", kGigabyte);
  };
  level.all_reduce = curve("all_reduce", "an all-reduce");
  level.all_gather = curve("all_gather", "an all-gather");
  level.source = fields.text("source");
  fields.done();
  return level;
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

}  // namespace

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const KnownCluster& known : kKnown) names.emplace_back(known.name);
  return names;
}

Cluster cluster_of(const std::string& name) {
  const auto read = [](const JsonFile& file) {
    return file.root.contains("transports") ? cluster_of_machines(machine_costs_from(file)) : cluster_from(file);
  };
  if (is_json_path(name)) return read(read_json_file("cluster file", name));
  for (const KnownCluster& known : kKnown)
    if (name == known.name) return read(parse_json_file("cluster file", name, known.json));
  throw UsageError(fmt::format("no cluster is called {}; take {}, or a file that ends in .json", in_quotes(name),
                               fmt::join(cluster_names(), ", ")));
}

}  // namespace muonwalk::sim
