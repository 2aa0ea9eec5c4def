#pragma once

#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "tests/optim/recorded_step.hpp"

namespace muonwalk::test {

/// A random case with up to eight DP ranks, in which some matrices are fused, and the step is now and then another
/// recipe's. Its layout is the strategy's.
Case strategy_case(std::uint64_t seed);

/// The strategy's layout of the case's parameters, in its buckets.
Layout lay_out(const Strategy& strategy, const Case& c);

/// The case with the strategy's layout for its own.
Case laid_out(const Strategy& strategy, Case c);

/// Makes the strategy's optimizer, as it is after `steps` steps. Strategy and layout must outlive it.
MakeOptimizer maker(const Strategy& strategy, const Case& c, const Layout& layout, int steps = 0);

/// The DP rank that orthogonalizes the parameter of this number, by the plans of all ranks; −1: nobody.
inline int worker_of(int parameter, const std::vector<Plan>& plans) {
  for (const Plan& plan : plans)
    for (const Operation& operation : plan.operations)
      if (const Work* work = std::get_if<Work>(&operation))
        if (work->phase == phases::orthogonalize && work->parameter == parameter) return plan.place.dp;
  return -1;
}

/// All strategies, and (d) over tp on the layouts of (a) and of (d).
std::vector<Strategy> all_ways();

/// Whether the strategy takes these settings. (a) to (f) take all.
bool takes(const Strategy& strategy, const Layout& layout, const MuonSettings& settings);

}  // namespace muonwalk::test
