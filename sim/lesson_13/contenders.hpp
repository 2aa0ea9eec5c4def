#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/lesson_13/sent_bytes.hpp"
#include "src/layout/buffer.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk::sim {

/// Newton–Schulz takes one step in this lesson, in place of five: nobody sends a byte less for it, and the published
/// sizes run in a minute.
constexpr int kNewtonSchulzSteps = 1;

/// One of those that are compared: an optimizer, and, of Muon, the type in which it gathers.
struct Contender {
  std::string name;                                                                ///< "Muon, gathers in bf16"
  std::function<std::unique_ptr<Optimizer>(int threads, Products products)> make;  ///< one for each rank and reference
};

/// Where they stand in the list.
enum Who { all_reduce, zero1, muon_bf16, muon_fp32 };

/// All four.
const std::vector<Contender>& contenders();

/// What the rank at `place` sends in a step of a contender, by plan.
SentBytes planned(const Contender& contender, const Layout& layout, const Place& place);

/// What rank 0 of the published run sends with a contender, in one bucket and without padding.
SentBytes published(Who who, const Grid& grid);

/// Everybody on the two grids of the published run: a table each.
std::string published_tables();

/// What the published ratios are ratios of (\ref ratio_table).
std::string published_ratios();

}  // namespace muonwalk::sim
