// Clusters from JSON: those that are known by name (clusters/), and a reader's own files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/small_file.hpp"

namespace muonwalk::sim {

namespace page_texts {
extern const char *const a100_selene,
    *const h100_efa, *const h100_ndr, *const h200_ndr, *const gb300_nvl72,
                                                           *const rtx4090_100gbe,
                                                               *const epyc_vm;  // the folder clusters/, by embed_texts
}

namespace {

using nlohmann::json;

struct KnownCluster {
  const char* name;
  const char* const& text;
};

constexpr KnownCluster kKnown[] = {
    {"a100-selene", page_texts::a100_selene}, {"h100-efa", page_texts::h100_efa},
    {"h100-ndr", page_texts::h100_ndr},       {"h200-ndr", page_texts::h200_ndr},
    {"gb300-nvl72", page_texts::gb300_nvl72}, {"rtx4090-100gbe", page_texts::rtx4090_100gbe},
    {"epyc-vm", page_texts::epyc_vm}};

constexpr int kMostDepth = 10;
constexpr std::size_t kMostText = 1000, kMostObjects = 64;
constexpr double kLeastNumber = 1e-12, kMostNumber = 1e15, kMostCount = 1e9;
constexpr double kTeraflop = 1e12, kGigaflop = 1e9, kMicrosecond = 1e-6;

[[noreturn]] void refuse_file(const std::string& path, const std::string& reason) {
  throw UsageError(
      fmt::format("the cluster file {} can't be used: {}; docs/cost-model.md has its fields", in_quotes(path), reason));
}

// Looks at each value as it is parsed: nlohmann/json itself would take the second of two fields with one name.
json parse(const std::string& path, const std::string& text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMostDepth) refuse_file(path, fmt::format("it has more than {} levels", kMostDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      refuse_file(path, "it names " + in_quotes(parsed.get<std::string>()) + " twice in one object");
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::parse_error& error) {
    refuse_file(path, fmt::format("it is not JSON, as byte {} of it shows", error.byte));
  } catch (const json::out_of_range&) {
    refuse_file(path, "it has a number that is too large");
  }
}

// The fields of one object of a file: each is taken once, and what nobody took is unknown. All functions refuse what
// is not as it should be, in one sentence that names file and field.
class Fields {
 public:
  Fields(std::string path, std::string where, const json& object)
      : path_(std::move(path)), where_(std::move(where)), object_(&object) {}

  bool has(const std::string& name) const { return object_->contains(name); }

  [[noreturn]] void refuse(const std::string& name, const std::string& reason) const {
    refuse_file(path_, "its " + in_quotes(where_ + name) + " " + reason);
  }

  std::string text(const std::string& name) {
    const json& value = take(name);
    if (!value.is_string()) refuse(name, "is not a text");
    const std::string& text = value.get_ref<const std::string&>();
    if (text.empty() || text.size() > kMostText)
      refuse(name, fmt::format("has {} bytes; a text has from 1 to {}", text.size(), kMostText));
    return text;
  }

  double number(const std::string& name, double unit) {
    const json& value = take(name);
    if (!value.is_number()) refuse(name, "is not a number");
    const double number = value.get<double>();
    if (!std::isfinite(number) || number < kLeastNumber || number > kMostNumber)
      refuse(name, fmt::format("is {:g}, but it takes a number above 0, from {:g} to {:g}", number, kLeastNumber,
                               kMostNumber));
    return number * unit;
  }

  // A whole number; of the outermost level "all" is 0.
  int accelerators(bool outermost) {
    const char* name = "accelerators_joined";
    const json& value = take(name);
    if (outermost && value.is_string()) {
      if (text(name) == "all") return 0;
      refuse(name, "is neither a whole number nor \"all\"");
    }
    const double number = value.is_number() ? value.get<double>() : 0;
    if (!value.is_number_integer() || number < 1 || number > kMostCount)
      refuse(name, fmt::format("is not a whole number from 1 to {:.0f}", kMostCount));
    return static_cast<int>(number);
  }

  Fields object(const std::string& name) {
    const json& value = take(name);
    if (!value.is_object()) refuse(name, "is not an object");
    return {path_, where_ + name + ".", value};
  }

  std::vector<Fields> objects(const std::string& name) {
    const json& value = take(name);
    if (!value.is_array() || value.empty() || value.size() > kMostObjects)
      refuse(name, fmt::format("is not a list of 1 to {} objects", kMostObjects));
    std::vector<Fields> all;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string element = fmt::format("{}[{}]", name, i);
      if (!value[i].is_object()) refuse(element, "is not an object");
      all.emplace_back(path_, where_ + element + ".", value[i]);
    }
    return all;
  }

  // The object {"source": …, "points": [{`at`: …, `value`: …}, …]}; no curve where there is none.
  MeasuredCurve curve(const std::string& name, const char* at, double at_unit, const char* value, double value_unit) {
    return has(name) ? curve_of(object(name), at, at_unit, value, value_unit) : MeasuredCurve{};
  }

  // Several of them, or one alone.
  std::vector<MeasuredCurve> curves(const std::string& name, const char* at, double at_unit, const char* value,
                                    double value_unit) {
    std::vector<MeasuredCurve> all;
    if (has(name) && object_->at(name).is_array())
      for (const Fields& each : objects(name)) all.push_back(curve_of(each, at, at_unit, value, value_unit));
    else if (has(name))
      all.push_back(curve(name, at, at_unit, value, value_unit));
    return all;
  }

  // Refuses a field that was not taken.
  void done() const {
    for (const auto& [name, value] : object_->items())
      if (taken_.count(name) == 0) refuse(name, "is not a field that it knows");
  }

 private:
  static MeasuredCurve curve_of(Fields fields, const char* at, double at_unit, const char* value, double value_unit) {
    MeasuredCurve curve;
    for (Fields& point : fields.objects("points")) {
      curve.points.push_back({point.number(at, at_unit), point.number(value, value_unit)});
      point.done();
      if (curve.points.size() > 1 && curve.points.back().at <= curve.points[curve.points.size() - 2].at)
        point.refuse(at, "is not above that of the point before");
    }
    curve.source = fields.text("source");
    fields.done();
    return curve;
  }

  const json& take(const std::string& name) {
    if (!has(name)) refuse(name, "is missing");
    taken_.insert(name);
    return object_->at(name);
  }

  std::string path_, where_;  // "levels[1]." or empty
  const json* object_;
  std::set<std::string> taken_;
};

Accelerator accelerator_from(Fields fields) {
  Accelerator accelerator;
  accelerator.name = fields.text("name");
  accelerator.flops_per_second = fields.number("peak_tflop_per_s", kTeraflop);
  accelerator.memory_bytes = fields.number("memory_gib", kGibibyte);
  accelerator.memory_bytes_per_second = fields.number("memory_bandwidth_gb_per_s", kGigabyte);
  accelerator.product_efficiency = fields.curves("product_efficiency", "gflop", kGigaflop, "share_of_peak", 1);
  for (const MeasuredCurve& curve : accelerator.product_efficiency)
    for (const MeasuredCurve::Point& point : curve.points)
      if (point.value > 1) fields.refuse("product_efficiency", "has a share of the peak that is above 1");
  accelerator.source = fields.text("source");
  fields.done();
  return accelerator;
}

NetworkLevel level_from(Fields& fields, bool outermost) {
  NetworkLevel level;
  level.name = fields.text("name");
  level.accelerators = fields.accelerators(outermost);
  level.bytes_per_second = fields.number("bandwidth_gb_per_s", kGigabyte);
  level.latency_seconds = fields.number("latency_us", kMicrosecond);
  level.all_reduce = fields.curve("all_reduce", "units", 1, "bus_bandwidth_gb_per_s", kGigabyte);
  level.all_gather = fields.curve("all_gather", "units", 1, "bus_bandwidth_gb_per_s", kGigabyte);
  level.source = fields.text("source");
  fields.done();
  return level;
}

Cluster cluster_from(const std::string& path, const std::string& text) {
  const json root = parse(path, text);
  if (!root.is_object()) refuse_file(path, "it is JSON, but not an object");
  Fields fields(path, "", root);
  Cluster cluster;
  cluster.name = fields.text("name");
  cluster.accelerator = accelerator_from(fields.object("accelerator"));
  std::vector<Fields> levels = fields.objects("levels");
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
  if (is_json_path(name))
    return cluster_from(name, read_small_file(name, 1, [&](const char* reason) { refuse_file(name, reason); }));
  for (const KnownCluster& known : kKnown)
    if (name == known.name) return cluster_from(name, known.text);
  throw UsageError(fmt::format("no cluster is called {}; take {}, or a file that ends in .json", in_quotes(name),
                               fmt::join(cluster_names(), ", ")));
}

}  // namespace muonwalk::sim
