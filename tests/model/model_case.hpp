#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/model/gpt.hpp"

namespace muonwalk::test {

/// A model with weights and one micro-batch.
struct ModelCase {
  std::uint64_t seed = 0;
  GptConfig config;
  Index sequences = 2;

  /// Whole tensors in the order of gpt_parameters: matrices whose products stay near 1, gains around 1.
  std::vector<Matrix> weights() const;
  /// Random tokens of the vocabulary, most of them out of its first half, so that some come often and some never.
  MicroBatch batch() const;
  /// 1 / rows.
  float scale() const;
  /// In one line, for failures.
  std::string text() const;
};

/// A sensible model of up to `most_heads` query heads and `most_pieces` pieces, dense or with experts, tied or not,
/// with more or fewer heads of keys and values than pieces, and sequences of up to 80 tokens.
ModelCase random_model(std::uint64_t seed, Index most_pieces);

/// The tensors of a rank of `tp`, cut from whole ones in the order of part_parameters.
std::vector<Matrix> cut_tensors(const std::vector<Parameter>& parameters, const std::vector<Matrix>& whole, int tp,
                                int tp_rank);

/// The tensors of a part, out of those of the whole model.
std::vector<Matrix> tensors_of_part(const GptConfig& config, const ModelPart& part, const std::vector<Matrix>& whole);

/// All of a part's tensors, or gradients, as a list.
std::vector<Matrix> listed(PartTensors tensors);

}  // namespace muonwalk::test
