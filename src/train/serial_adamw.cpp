#include "src/train/serial_adamw.hpp"

#include <stdexcept>

#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

std::vector<NamedMatrix> serial_adamw(const TrainingData& data, int steps, int dp, const AdamWSettings& settings) {
  if (steps > data.steps()) throw std::invalid_argument("serial_adamw: more steps than there are gradients for");
  const std::vector<Parameter>& parameters = data.parameters();
  std::vector<AdamWState> states;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    states.push_back(initial_adamw_state(data.weights(static_cast<int>(p)).flat()));
  for (int step = 0; step < steps; ++step) {
    const auto leaves = data.all_leaves(step, dp);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<Flat> gradients;
      for (const auto& leaf : leaves) gradients.push_back(leaf[p].flat());
      adamw(states[p], tree_sum(gradients), step + 1, settings);
    }
  }
  std::vector<NamedMatrix> trained;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    trained.push_back(
        {parameters[p].name, Matrix(parameters[p].shape.rows, parameters[p].shape.cols, states[p].weights)});
  return trained;
}

}  // namespace muonwalk
