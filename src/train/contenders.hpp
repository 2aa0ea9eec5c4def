#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/optim/optimizer.hpp"
#include "src/train/sent_bytes.hpp"

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

/// Which of the moves that every optimizer makes have elements of 2 bytes: none; that of weights, of which each rank
/// keeps float32 masters for its shard (with_master_weights); or that of gradients as well.
enum class Halved { nothing, weights, weights_and_gradients };

/// What the rank at `place` sends in a step of a contender, by plan.
SentBytes planned(const Contender& contender, const Layout& layout, const Place& place,
                  Halved halved = Halved::nothing);

/// The matrices of the published run in one bucket without padding.
Layout published_layout(const Grid& grid, Ownership ownership = Ownership::buckets);

/// What rank 0 of the published run sends with a contender, in one bucket and without padding.
SentBytes published(Who who, const Grid& grid, Halved halved = Halved::nothing);

}  // namespace muonwalk::sim
