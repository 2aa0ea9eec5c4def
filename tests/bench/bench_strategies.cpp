// The ways to distribute a step of Muon:
//   - how long the plans of 4,096 ranks take, for every strategy and every published model, and how much memory;
//   - a step of each strategy on 8 ranks, beside the same step in strategy (a), and what their plans say of both.
// Nothing here fails on a time. "bench_strategies plans" does the first alone, "bench_strategies steps" the second.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "src/numerics/philox.hpp"
#include "src/optim/strategies/strategy_cost.hpp"
#include "src/train/published_models.hpp"
#include "tests/optim/rank_threads.hpp"

using namespace muonwalk;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

MuonSettings bf16_settings() { return muon_settings(Precision::bf16, 1, Products::chain); }

// A line for each model, a column for each strategy: milliseconds.
void plan_all_models(const Grid& grid) {
  const Index bucket = std::max<Index>(40'000'000, Index{1'000'000} * grid.dp());
  fmt::print("{:<16}{:>9}", "milliseconds", "matrices");
  for (const Strategy& strategy : strategies()) fmt::print("{:>8}", fmt::format("({})", strategy.letter));
  fmt::print("{:>9}\n", "all");
  double total = 0;
  for (const std::string& model : model_names()) {
    const std::vector<Parameter> parameters = model_parameters(model);
    fmt::print("{:<16}{:>9}", model, parameters.size());
    double of_model = 0;
    for (const Strategy& strategy : strategies()) {
      const double began = now();
      strategy_cost(strategy, parameters, grid, bucket, bf16_settings());
      const double took = now() - began;
      of_model += took;
      fmt::print("{:>8.0f}", 1e3 * took);
    }
    total += of_model;
    fmt::print("{:>9.0f}\n", 1e3 * of_model);
  }
  fmt::print("all models, all strategies: {:.2f} s   target 2 s   {}\n", total, total <= 2 ? "ok" : "MISSED");
}

// In a process of its own, so that its peak memory is nobody else's.
void bench_plans(const Grid& grid) {
  fmt::print("Plans of all ranks, {} ({} ranks)\n", grid.text(), grid.size());
  std::fflush(nullptr);  // or the child would print it once more
  const pid_t child = fork();
  if (child == 0) {
    plan_all_models(grid);
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  const double megabytes = static_cast<double>(used.ru_maxrss) / 1e3;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::exit(1);
  fmt::print("peak memory: {:.0f} MB   target 500 MB   {}\n\n", megabytes, megabytes <= 500 ? "ok" : "MISSED");
}

// Four layers of a small GPT, a bucket for each.
constexpr Index kWidth = 256;
constexpr Index kLayerElements = 12 * kWidth * kWidth;

std::vector<Parameter> small_gpt() {
  std::vector<Parameter> parameters;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "layer" + std::to_string(layer) + ".";
    for (const char* name : {"q", "k", "v"}) parameters.push_back({prefix + name, {kWidth, kWidth}, SplitDim::rows});
    parameters.push_back({prefix + "o", {kWidth, kWidth}, SplitDim::columns});
    parameters.push_back({prefix + "up", {4 * kWidth, kWidth}, SplitDim::rows});
    parameters.push_back({prefix + "down", {kWidth, 4 * kWidth}, SplitDim::columns});
  }
  return parameters;
}

struct Seconds {
  double clock = 0, processor = 0;
};

// A step of all ranks, in the mean over one period; the ranks are threads.
Seconds seconds_of_step(const Strategy& strategy, const Grid& grid, const MuonSettings& settings) {
  const std::vector<Parameter> parameters = small_gpt();
  const Layout layout = strategy.lay_out(parameters, grid, kLayerElements / grid.tp());
  std::vector<Matrix> random;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    random.push_back(random_matrix({1, p}, parameters[p].shape.rows, parameters[p].shape.cols));
  std::vector<const Matrix*> full;
  for (const Matrix& each : random) full.push_back(&each);

  Seconds took;
  test::run_ranks(grid, [&](test::TestRank& rank) {
    const auto optimizer = strategy.optimizer(layout, settings, 0);
    const Buckets packed = pack_buckets(layout, full, rank.place.tp);
    optimizer->start(layout, rank.place, packed);
    const auto meet = [&rank] {  // all ranks of the grid
      rank.tp.barrier();
      rank.dp.barrier();
    };
    meet();
    const double began = now(), processor_began = processor_seconds();
    for (int step = 0; step < strategy.period; ++step) optimizer->step({layout, rank.place, rank.dp, rank.tp}, packed);
    meet();
    if (rank.place.rank != 0) return;
    took.clock = (now() - began) / strategy.period;
    took.processor = (processor_seconds() - processor_began) / strategy.period;
  });
  return took;
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The strategies take turns, so that all of them see the same machine.
void bench_steps(const Grid& grid, Precision precision) {
  const MuonSettings settings = muon_settings(precision, 1, Products::chain);
  const std::vector<Strategy> all = strategies();
  std::vector<std::vector<double>> clock(all.size()), processor(all.size());
  for (int round = 0; round < 7; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Seconds took = seconds_of_step(all[i], grid, settings);
      clock[i].push_back(took.clock);
      processor[i].push_back(took.processor);
    }
  fmt::print("A step on {}, {}, ranks as threads; the ratios are to (a)\n", grid.text(), precision_name(precision));
  fmt::print("{:<24}{:>10}{:>9}{:>12}{:>9}{:>10}{:>9}\n", "", "clock", "ratio", "processor", "ratio", "FLOPs", "bytes");
  StrategyCost of_a;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StrategyCost cost = strategy_cost(all[i], small_gpt(), grid, kLayerElements / grid.tp(), settings);
    if (i == 0) of_a = cost;
    fmt::print("({}) {:<20}{:>7.1f} ms{:>9.2f}{:>9.1f} ms{:>9.2f}{:>10.2f}{:>9.2f}\n", all[i].letter, all[i].name,
               1e3 * middle(clock[i]), middle(clock[i]) / middle(clock[0]), 1e3 * middle(processor[i]),
               middle(processor[i]) / middle(processor[0]), cost.mean_flops / of_a.mean_flops,
               cost.mean_bytes_sent / of_a.mean_bytes_sent);
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  if (only != "steps") bench_plans(Grid().dp(512).tp(8));
  if (only == "plans") return 0;
  for (const Grid& grid : {Grid().dp(8), Grid().dp(4).tp(2)})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) bench_steps(grid, precision);
  return 0;
}
