#pragma once

#include "tools/scale/machine_costs.hpp"

namespace muonwalk {

/// A machine of round numbers: 2 cores; over Gloo a message costs 10 µs among 2 ranks and 20 µs among 8, and from 1,000
/// bytes on 1 ns for each byte, over memory a tenth of that; products at 1, 2, 3 and 4 GFLOP/s by engine and precision.
inline sim::MachineCosts made_up_machine() {
  using namespace sim;
  const auto transport = [](double times) {
    TransportCosts costs;
    for (const int ranks : {2, 8})
      costs.by_ranks.push_back({ranks, MeasuredCurve("seconds of a message",
                                                     {{4, times * (ranks == 2 ? 10 : 20) * 1e-6},
                                                      {1e6, times * (ranks == 2 ? 1010 : 1020) * 1e-6}},
                                                     "made up")});
    return costs;
  };
  MachineCosts machine;
  machine.machine = "made-up machine";
  machine.cores = 2;
  machine.memory_bytes = 4 * kGibibyte;
  machine.memory_bytes_per_second = 8 * kGigabyte;
  machine.new_memory_bytes_per_second = 2 * kGigabyte;
  machine.gloo = transport(1);
  machine.memory = transport(0.5);
  double rate = 0;
  for (const Products products : {Products::eigen, Products::chain})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      rate += 1e9;
      machine.newton_schulz.push_back(
          {products, precision, MeasuredCurve("rate", {{1e3, rate}, {1e9, 2 * rate}}, "made up")});
    }
  machine.source = "made up";
  return machine;
}

}  // namespace muonwalk
