#include "tools/scale/machine_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "src/errors.hpp"
#include "tools/scale/json_fields.hpp"

namespace muonwalk::sim {
namespace {

Products products_from(JsonFields& fields) {
  const std::string word = fields.text("products");
  for (const Products products : {Products::eigen, Products::chain})
    if (word == products_name(products)) return products;
  fields.refuse("products", "is neither \"eigen\" nor \"chain\"");
}

Precision precision_from(JsonFields& fields) {
  const std::string word = fields.text("precision");
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    if (word == precision_name(precision)) return precision;
  fields.refuse("precision", "is neither \"fp32\" nor \"bf16\"");
}

TransportCosts transport_from(JsonFields& fields, const std::string& name) {
  TransportCosts costs;
  for (JsonFields& each : fields.objects(name)) {
    MessageCosts read;
    read.ranks = each.count("ranks");
    if (!costs.by_ranks.empty() && read.ranks <= costs.by_ranks.back().ranks)
      each.refuse("ranks", "is not above that of the entry before");
    read.seconds =
        each.curve("message", "processor seconds of a message, by its bytes", "bytes", 1, "us", kMicrosecond);
    each.done();
    costs.by_ranks.push_back(std::move(read));
  }
  return costs;
}

nlohmann::ordered_json transport_json(const TransportCosts& costs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const MessageCosts& each : costs.by_ranks)
    json.push_back({{"ranks", each.ranks}, {"message", curve_json(each.seconds, "bytes", 1, "us", kMicrosecond)}});
  return json;
}

// A curve's value for a message: a smaller one than all that were measured costs as much as the smallest, a larger one
// as much as its bytes of the largest.
CurveReading read_message(const MeasuredCurve& curve, double bytes) {
  const MeasuredCurve::Point &first = curve.points().front(), &last = curve.points().back();
  if (bytes <= first.at) return {first.value};
  CurveReading reading = curve.at(bytes);
  if (bytes > last.at) reading.value = last.value * bytes / last.at;
  return reading;
}

// The rates whose fastest point is the fastest of all.
const MeasuredCurve& best_rate(const MachineCosts& costs) {
  const auto fastest = [](const ProductRate& rate) {
    double most = 0;
    for (const MeasuredCurve::Point& point : rate.flops_per_second.points()) most = std::max(most, point.value);
    return most;
  };
  return std::max_element(costs.newton_schulz.begin(), costs.newton_schulz.end(),
                          [&](const ProductRate& a, const ProductRate& b) { return fastest(a) < fastest(b); })
      ->flops_per_second;
}

}  // namespace

CurveReading TransportCosts::message_seconds(double ranks, double bytes) const {
  const auto right =
      std::find_if(by_ranks.begin(), by_ranks.end(), [&](const MessageCosts& each) { return each.ranks >= ranks; });
  if (right != by_ranks.end() && right->ranks == ranks) return read_message(right->seconds, bytes);
  if (right == by_ranks.begin() || right == by_ranks.end()) {
    const MessageCosts& nearest = right == by_ranks.end() ? by_ranks.back() : by_ranks.front();
    const CurveReading reading = read_message(nearest.seconds, bytes);
    return {reading.value, true, static_cast<double>(nearest.ranks)};
  }
  const MessageCosts& left = *std::prev(right);
  const CurveReading low = read_message(left.seconds, bytes), high = read_message(right->seconds, bytes);
  const double part = std::log(ranks / left.ranks) / std::log(static_cast<double>(right->ranks) / left.ranks);
  CurveReading between = low.outside ? low : high;
  between.value = low.value * std::pow(high.value / low.value, part);
  return between;
}

const TransportCosts& MachineCosts::transport(TransportKind kind) const {
  if (kind == TransportKind::nccl)
    throw UsageError("what messages cost over NCCL is not measured on a machine; ask for gloo or memory");
  return kind == TransportKind::gloo ? gloo : memory;
}

const MeasuredCurve& MachineCosts::rate(Products products, Precision precision) const {
  for (const ProductRate& rate : newton_schulz)
    if (rate.products == products && rate.precision == precision) return rate.flops_per_second;
  throw UsageError(fmt::format("{} has no rate of Newton–Schulz with the engine {} in {}; measure the machine anew",
                               machine, products_name(products), precision_name(precision)));
}

MachineCosts machine_costs_from(const JsonFile& file) {
  JsonFields fields(file);
  MachineCosts costs;
  costs.machine = fields.text("machine");
  costs.cores = fields.count("cores");
  costs.memory_bytes = fields.number("memory_gib") * kGibibyte;
  costs.memory_bytes_per_second = fields.number("memory_bandwidth_gb_per_s") * kGigabyte;
  costs.new_memory_bytes_per_second = fields.number("new_memory_gb_per_s") * kGigabyte;
  JsonFields transports = fields.object("transports");
  costs.gloo = transport_from(transports, "gloo");
  costs.memory = transport_from(transports, "memory");
  transports.done();
  for (JsonFields& rate : fields.objects("newton_schulz")) {
    ProductRate read;
    read.products = products_from(rate);
    read.precision = precision_from(rate);
    read.flops_per_second = rate.curve("rate", "FLOPs per second of Newton–Schulz, by the FLOPs of one of its steps",
                                       "gflop_per_step", kGigaflop, "gflop_per_s", kGigaflop);
    rate.done();
    costs.newton_schulz.push_back(std::move(read));
  }
  costs.source = fields.text("source");
  fields.done();
  return costs;
}

MachineCosts read_machine_costs(const std::string& path) {
  return machine_costs_from(read_json_file("file of measured costs", path));
}

std::string machine_costs_json(const MachineCosts& costs) {
  nlohmann::ordered_json json;
  json["machine"] = costs.machine;
  json["cores"] = costs.cores;
  json["memory_gib"] = in_file_unit(costs.memory_bytes, kGibibyte);
  json["memory_bandwidth_gb_per_s"] = in_file_unit(costs.memory_bytes_per_second, kGigabyte);
  json["new_memory_gb_per_s"] = in_file_unit(costs.new_memory_bytes_per_second, kGigabyte);
  json["transports"] = {{"gloo", transport_json(costs.gloo)}, {"memory", transport_json(costs.memory)}};
  json["newton_schulz"] = nlohmann::ordered_json::array();
  for (const ProductRate& rate : costs.newton_schulz)
    json["newton_schulz"].push_back(
        {{"products", products_name(rate.products)},
         {"precision", precision_name(rate.precision)},
         {"rate", curve_json(rate.flops_per_second, "gflop_per_step", kGigaflop, "gflop_per_s", kGigaflop)}});
  json["source"] = costs.source;
  return json.dump(2) + "\n";
}

Cluster cluster_of_machines(const MachineCosts& costs) {
  const MeasuredCurve& rate = best_rate(costs);
  Cluster cluster;
  cluster.name = costs.machine;
  Accelerator& core = cluster.accelerator;
  core.name = "core of " + costs.machine;
  std::vector<MeasuredCurve::Point> shares = rate.points();
  for (const MeasuredCurve::Point& point : shares) core.flops_per_second = std::max(core.flops_per_second, point.value);
  for (MeasuredCurve::Point& point : shares) point.value /= core.flops_per_second;
  core.product_efficiency = MeasuredCurve(kProductEfficiencyCurve, std::move(shares), rate.source());
  core.memory_bytes = costs.memory_bytes / costs.cores;
  core.memory_bytes_per_second = costs.memory_bytes_per_second;
  core.source = costs.source;

  NetworkLevel inside;
  inside.name = "loopback";
  inside.accelerators = std::max(costs.cores, 2);
  const MessageCosts& two = *std::min_element(
      costs.gloo.by_ranks.begin(), costs.gloo.by_ranks.end(),
      [](const MessageCosts& a, const MessageCosts& b) { return std::abs(a.ranks - 2) < std::abs(b.ranks - 2); });
  const MeasuredCurve::Point &first = two.seconds.points().front(), &last = two.seconds.points().back();
  inside.latency_seconds = first.value;
  // Where all messages cost the same, however long, the longest one says what a byte costs at most.
  const double seconds_per_byte =
      last.value > first.value ? (last.value - first.value) / (last.at - first.at) : last.value / last.at;
  inside.bytes_per_second = 1 / seconds_per_byte;
  inside.source = costs.source;
  NetworkLevel between = inside;
  between.name = "supposed link between such machines";
  between.accelerators = 0;
  between.source = "not measured: as if such machines were joined by a link like the loopback";
  cluster.levels = {inside, between};
  return cluster;
}

}  // namespace muonwalk::sim
