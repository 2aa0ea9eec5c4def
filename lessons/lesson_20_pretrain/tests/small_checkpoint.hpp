#pragma once

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "src/numerics/philox.hpp"

namespace muonwalk::test {

/// A matrix under Muon and a vector under AdamW, whose values depend on the steps.
inline Checkpoint small_checkpoint(int steps) {
  const auto values = [steps](std::uint64_t tensor, Index rows, Index cols) {
    return random_matrix({static_cast<std::uint64_t>(steps), tensor}, rows, cols);
  };
  Checkpoint checkpoint;
  checkpoint.optimizer = "Muon + ZeRO-1 AdamW";
  checkpoint.steps = steps;
  checkpoint.parameters = {{"model.up.weight", 2, values(1, 3, 4), {{"momentum", values(2, 3, 4)}}},
                           {"model.norm.weight",
                            1,
                            values(3, 1, 5),
                            {{"first moments", values(4, 1, 5)}, {"second moments", values(5, 1, 5)}}}};
  checkpoint.notes = {{"seed", "12"}, {"model", "dim 4, \"two\" lines\nof it"}};
  return checkpoint;
}

/// The first thing in which two checkpoints differ, to the last bit, but for where they were read; else empty.
inline std::string first_difference(const Checkpoint& a, const Checkpoint& b) {
  if (a.optimizer != b.optimizer || a.steps != b.steps || a.notes != b.notes) return "optimizer, steps or notes";
  if (a.parameters.size() != b.parameters.size()) return "not as many parameters";
  for (std::size_t p = 0; p < a.parameters.size(); ++p) {
    const SavedParameter &left = a.parameters[p], &right = b.parameters[p];
    if (left.name != right.name || left.dims != right.dims || !same_bits(left.weights, right.weights)) return left.name;
    if (left.state.size() != right.state.size()) return "what is kept of " + left.name;
    for (const auto& [kind, values] : left.state) {
      const auto other = right.state.find(kind);
      if (other == right.state.end() || !same_bits(values, other->second)) return kind + " of " + left.name;
    }
  }
  return "";
}

}  // namespace muonwalk::test
