#pragma once

#include <cstdint>
#include <vector>

#include "src/model/gpt_config.hpp"
#include "src/model/sharers.hpp"

namespace muonwalk {

/// Some sequences, one after the other: what a micro-batch is about.
struct MicroBatch {
  std::vector<std::int32_t> inputs;   ///< sequences · tokens of them, each below the vocabulary
  std::vector<std::int32_t> targets;  ///< the token that follows each of them
};

/// The rows of the embedding for these tokens, tokens × width. Each sharer has an equal range of the vocabulary, and
/// all get all rows.
Matrix embed(const GptConfig& config, const Matrix& embedding, const Sharers& sharers,
             const std::vector<std::int32_t>& tokens);

/// Backward: the gradient of the embedding grows by d_out, row after row; only rows of tokens that this sharer has.
void embed_backward(const Sharers& sharers, const std::vector<std::int32_t>& tokens, const Matrix& d_out,
                    Matrix& gradient);

/// What a backward pass needs again of the output layer.
struct LossSaved {
  Matrix logits;  ///< rows × vocabulary here
  Flat most;      ///< the largest logit of each row, over the whole vocabulary
  Flat sum;       ///< Σ e^(logit − most) of each row
};

/// The cross-entropy of each row, in natural units: log Σ e^logit − the target's logit, with logits = x · outputᵀ. x is
/// rows × width, the same on all sharers; each has an equal range of the vocabulary, and gets all losses. A sum over
/// the vocabulary has the configuration's pieces for leaves; each leaf has a largest logit of its own, so one exchange
/// is enough.
Flat cross_entropy(const GptConfig& config, const Matrix& output, const Sharers& sharers, const Matrix& x,
                   const std::vector<std::int32_t>& targets, LossSaved& saved);

/// Backward: the gradient in x of `scale` times the sum of all losses. The output layer's grows. Takes saved apart.
Matrix cross_entropy_backward(const GptConfig& config, const Matrix& output, const Sharers& sharers, const Matrix& x,
                              const std::vector<std::int32_t>& targets, float scale, LossSaved& saved,
                              Matrix& gradient);

}  // namespace muonwalk
