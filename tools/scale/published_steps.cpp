#include "tools/scale/published_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/contenders.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/step_prediction.hpp"

namespace muonwalk::sim {
namespace {

// ── Megatron-LM ──

struct MegatronRun {
  const char* name;
  const char* model;
  int pp, chunks, micro_batch, accumulation;
  double full, selective;  // seconds
};

constexpr MegatronRun kMegatronRuns[] = {{"22B", "megatron-22b", 1, 1, 4, 1, 1.42, 1.10},
                                         {"175B", "megatron-175b", 8, 3, 1, 64, 18.13, 13.75},
                                         {"530B", "megatron-530b", 35, 3, 1, 280, 49.05, 37.83},
                                         {"1T", "megatron-1t", 64, 1, 1, 512, 94.42, 71.49}};
constexpr int kMegatronTp = 8;

PublishedStep megatron_step(const MegatronRun& run, Recomputation recomputation, double published) {
  const Cluster cluster = cluster_of("a100-selene");
  TrainingLayout layout;
  layout.tp = kMegatronTp;
  layout.pp = run.pp;
  layout.nodes = run.pp;
  layout.micro_batch = run.micro_batch;
  layout.accumulation = run.accumulation;
  layout.chunks = run.chunks;
  layout.recomputation = recomputation;
  const StepPrediction step = predict_adamw({model_shape(run.model), cluster, software_of("megatron"), layout});
  return {fmt::format("{}, {} recomputation", run.name, recomputation_name(recomputation)),
          step.step_seconds(),
          published,
          "s",
          "of Megatron-LM: products are taken at what torch.matmul reached on an A100, at most 0.68 of its peak; the "
          "larger the model, the more of Megatron's own were faster",
          any_extrapolated(step.seconds)};
}

// ── Muon ──

// What was published of a run with Muon: teraflops per GPU of the model alone with AdamW, and with Muon of the model
// and of Newton–Schulz.
struct MuonRun {
  const char* name;
  const char* model;
  int dp, pp, ep;
  double adamw, model_part, newton_schulz;
  double published;  // percent that the step takes longer
  const char* miss;
};

constexpr MuonRun kMuonRuns[] = {{"Kimi K2, 256 × GB300", "kimi-k2", 64, 4, 64, 1051, 1029, 51, 2.1,
                                  "of Kimi K2: no product was measured on a GB300. 2.1 % would be 0.87 of its peak, "
                                  "or less with the halves of symmetric products alone; which, was not published"},
                                 {"Qwen3-30B, 8 × GB300", "qwen3-30b", 8, 1, 8, 713, 686, 35, 3.9,
                                  "of Qwen3: no product was measured on a GB300; its 128 experts per layer are "
                                  "2048 × 768, products of 2.4 GFLOP"}};

double newton_schulz_once(const ModelShape& model) {
  double flops = 0;
  for (const TensorClass& each : model.tensors)
    if (each.kind == TensorKind::hidden || each.kind == TensorKind::expert)
      flops += static_cast<double>(each.count) * newton_schulz_flops(each.shape.rows, each.shape.cols);
  return flops;
}

PublishedStep muon_step(const MuonRun& run) {
  const ModelShape& model = model_shape(run.model);
  const int gpus = run.dp * run.pp;
  // Tokens per step: Newton–Schulz is this share of the model's own FLOPs, and does not grow with the batch.
  const double model_flops = newton_schulz_once(model) * run.model_part / run.newton_schulz;
  const double adamw_seconds = model_flops / (gpus * run.adamw * 1e12);
  TrainingLayout layout;
  layout.dp = run.dp;
  layout.pp = run.pp;
  layout.ep = run.ep;
  const MuonCost cost = muon_cost(model, layout, {}, cluster_of("gb300-nvl72"));
  const auto percent = [&](double seconds) { return 100 * seconds / adamw_seconds; };
  const auto [least, most] = total_band(cost.terms);
  return {run.name, percent(cost.seconds()),      run.published,  "%",
          run.miss, any_extrapolated(cost.terms), percent(least), percent(most)};
}

// ── Bandwidths ──

constexpr double kBandwidthBytes = 256e6;

// Without what was measured of whole collectives: latency and bandwidth of the links alone.
Cluster links_alone(Cluster cluster) {
  for (NetworkLevel& level : cluster.levels) level.all_reduce = level.all_gather = {};
  return cluster;
}

PublishedStep bandwidth_row(CollectiveKind kind, const char* name, const MeasuredCurve::Point& point) {
  const Cluster cluster = links_alone(cluster_of("h100-efa"));
  const int ranks = static_cast<int>(point.at) * cluster.node();
  const CollectiveSeconds seconds = collective_seconds(kind, kBandwidthBytes, cluster, group_spread(cluster, ranks, 1));
  const double factor = (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
  return {fmt::format("{} over {} nodes", name, point.at), factor * kBandwidthBytes / seconds.total() / kGigabyte,
          point.value / kGigabyte, "GB/s"};
}

// ── As text ──

std::string figure(double value, const char* unit) {
  if (unit == std::string("B")) return megabytes_text(value);
  return fixed_text(value, value < 10 ? 2 : 1, unit);
}

}  // namespace

std::string table_of(const char* heading, const char* source, const std::vector<PublishedStep>& rows) {
  const bool bands = std::any_of(rows.begin(), rows.end(), [](const PublishedStep& row) { return row.high > 0; });
  Table table({{heading}, {"predicted", Side::right}});
  if (bands) table.column({"at least and most", Side::right});
  for (const char* column : {"published", "off by"}) table.column({column, Side::right});
  std::vector<std::string> notes = {source};
  for (const PublishedStep& row : rows) {
    std::vector<Cell> cells = {row.what, figure(row.predicted, row.unit) + (row.extrapolated ? " *" : "  ")};
    if (bands) cells.emplace_back(fmt::format("{} to {}", fixed_text(row.low, 2), figure(row.high, row.unit)));
    cells.emplace_back(figure(row.published, row.unit));
    cells.emplace_back(fmt::format("{:+.1f} %", 100 * row.error()));
    table.row(cells);
    const std::string note = fmt::format("Off by more than 10 %, {}.", row.miss);
    const bool said = std::find(notes.begin(), notes.end(), note) != notes.end();
    if (std::abs(row.error()) > 0.1 && !row.miss.empty() && !said) notes.push_back(note);
  }
  std::string text = table.text();
  for (const std::string& note : notes) text += fmt::format("\n{}", fmt::join(paragraph(note, 0, 2), "\n"));
  return text;
}

std::vector<PublishedStep> megatron_steps() {
  std::vector<PublishedStep> rows;
  for (const MegatronRun& run : kMegatronRuns) {
    rows.push_back(megatron_step(run, Recomputation::full, run.full));
    rows.push_back(megatron_step(run, Recomputation::selective, run.selective));
  }
  return rows;
}

std::vector<PublishedStep> muon_steps() {
  std::vector<PublishedStep> rows;
  for (const MuonRun& run : kMuonRuns) rows.push_back(muon_step(run));
  return rows;
}

std::vector<PublishedStep> published_bytes() {
  const Grid square = Grid().dp(2).tp(2), line = Grid().dp(4);
  const auto row = [](const char* what, std::int64_t bytes, double megabytes) {
    return PublishedStep{what, static_cast<double>(bytes), megabytes * 1e6, "B"};
  };
  return {row("AdamW, all-reduce, dp 4", published(all_reduce, line).total(), 109.1),
          row("Muon's two gathers, dp 2 × tp 2", published(muon_bf16, square).gathers(), 26.1),
          row("all of Muon, dp 2 × tp 2", published(muon_bf16, square).total(), 63.4),
          row("AdamW, ZeRO-1, dp 2 × tp 2", published(zero1, square).total(), 37.3)};
}

std::vector<PublishedStep> published_bandwidths() {
  const Cluster cluster = cluster_of("h100-efa");
  std::vector<PublishedStep> rows;
  for (const MeasuredCurve::Point& point : cluster.levels.back().all_reduce.points)
    rows.push_back(bandwidth_row(CollectiveKind::all_reduce, "all-reduce", point));
  for (const MeasuredCurve::Point& point : cluster.levels.back().all_gather.points)
    rows.push_back(bandwidth_row(CollectiveKind::all_gather, "all-gather", point));
  return rows;
}

std::string published_steps_text() {
  std::string text =
      table_of("bytes of the published run",
               "By plan, without a rank (lesson 13). Published: Jen Wei, \"Distributed Muon: Field Notes & "
               "Reproducibility Artifacts\", 2025; of its gathers, 26.1 to 27.0 MB.",
               published_bytes());
  text += "\n\n" + table_of("Megatron-LM on A100, a step",
                            "Published: Korthikanti et al., \"Reducing Activation Recomputation in Large Transformer "
                            "Models\", 2022; layouts: its table 3.",
                            megatron_steps());
  text += "\n\n" + table_of("what Muon adds to a step",
                            "Published: NVIDIA, Megatron-Bridge 26.02. The batch follows from the published FLOPs.",
                            muon_steps());
  text +=
      "\n\n" +
      table_of("bus bandwidth, 256 MB, H100 over EFA",
               "Predicted from latency and bandwidth of the links alone, which do not explain why it falls: "
               "so the gathers of the optimizer take the measured curve. Published: the Ultra-Scale Playbook, 2025.",
               published_bandwidths());
  return text;
}

}  // namespace muonwalk::sim
