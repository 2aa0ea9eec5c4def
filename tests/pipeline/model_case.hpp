#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/optim/plan.hpp"
#include "src/train/pipeline/stage.hpp"

namespace muonwalk::test {

/// A small model, a grid that can hold it, and a batch.
struct ModelCase {
  GptConfig config;
  Grid grid;
  int micro_batches = 1;
  Index sequences = 1;  // in each of them
  PipelineSchedule schedule = PipelineSchedule::gpipe;
  std::uint64_t seed = 0;

  std::string text() const {
    return "seed " + std::to_string(seed) + ": " + grid.text() + ", micro-batches " + std::to_string(micro_batches) +
           ", heads " + std::to_string(config.heads) + ":" + std::to_string(config.kv_heads) + ", tied " +
           std::to_string(config.tied) + ", experts " + std::to_string(config.experts) + ", " +
           pipeline_schedule_name(schedule);
  }
  Index rows() const { return sequences * config.tokens; }
  float scale() const { return 1.0f / static_cast<float>(rows() * micro_batches); }
  MicroBatch micro_batch(int number) const {
    std::mt19937 random(static_cast<std::uint32_t>(seed * 1000 + static_cast<std::uint64_t>(number)));
    MicroBatch batch;
    for (Index i = 0; i < rows(); ++i) {
      batch.inputs.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(config.vocabulary)));
      batch.targets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(config.vocabulary)));
    }
    return batch;
  }
  // A tensor as one rank holds it, larger than at the start of a training, so that nothing is nearly linear.
  Matrix weights(const Parameter& parameter, int tp, int tp_rank) const {
    Matrix slice = first_weights(config, parameter, seed, tp, tp_rank);
    for (float& value : slice.flat()) value *= parameter.dims == 1 ? 0.9f : 8.0f;
    return slice;
  }
};

/// One for each seed: grids of up to 4 × 4 × 3, heads that share keys and values or not, with and without experts.
ModelCase random_model(std::uint32_t seed);

/// Is told of all calls, and keeps them.
class CallList : public CallObserver {
 public:
  void begins(const Call& call) override { calls.push_back(call); }
  std::vector<Call> calls;
};

/// Where calls are not those of a plan, one by one, or what was counted is not the sum over it; else empty.
std::string first_unplanned(const Plan& plan, const std::vector<Call>& calls, const Ledger& counted);

}  // namespace muonwalk::test
