#pragma once

#include <cmath>
#include <limits>
#include <random>

#include "tools/scale/payoff_map.hpp"

/// Two levels with round numbers: 8 accelerators in a node, and links of 32 GB/s between nodes whose bandwidth was
/// measured for up to 16 of them.
inline muonwalk::sim::Cluster round_cluster() {
  using namespace muonwalk::sim;
  Cluster cluster;
  cluster.name = "round";
  cluster.accelerator = {"accelerator", 1e15, 80 * kGibibyte, 3e12, {}, "made up"};
  cluster.levels.resize(2);
  cluster.levels[0] = {"inside", 8, 256 * kGigabyte, 4e-6, {}, {}, "made up"};
  cluster.levels[1] = {"between", 0, 32 * kGigabyte, 16e-6, {}, {}, "made up"};
  for (MeasuredCurve* curve : {&cluster.levels[1].all_reduce, &cluster.levels[1].all_gather})
    *curve = MeasuredCurve{{{2, 240e9}, {16, 120e9}}, "made up"};
  return cluster;
}

/// Steps that nobody predicted, for pictures and pages: some fit, some do not, some are extrapolated.
inline void make_up_steps(muonwalk::sim::PayoffMap& map, unsigned seed) {
  using namespace muonwalk::sim;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> more(0.95, 1.3);
  for (auto& row : map.cells)
    for (PayoffCell& cell : row) {
      cell.step.reset();
      if (!cell.communication) continue;
      const unsigned draw = random() % 8;
      cell.step_obstacle = draw == 0 ? &obstacles::memory : draw == 1 ? &obstacles::batch : nullptr;
      if (cell.step_obstacle != nullptr) continue;
      StepComparison step;
      step.layout.dp = cell.dp;
      step.layout.tp = cell.tp;
      step.layout.zero = 1;
      step.adamw_seconds = 0.25;
      step.muon_seconds = 0.25 * more(random);
      step.best = "abcdef"[random() % 6];
      step.strategies = {{step.best, step.muon_seconds}};
      step.extrapolated = draw == 2;
      cell.step = step;
    }
}

/// Both maps of a small model, with made-up steps.
inline std::vector<muonwalk::sim::PayoffMap> made_up_maps(const muonwalk::sim::Cluster& cluster, unsigned seed = 1) {
  using namespace muonwalk::sim;
  std::vector<PayoffMap> maps;
  for (const MapColumns columns : {MapColumns::links, MapColumns::grid}) {
    maps.push_back(payoff_map({model_shape("gpt2"), cluster, software_of("nanotron"), columns}));
    make_up_steps(maps.back(), seed);
  }
  return maps;
}
