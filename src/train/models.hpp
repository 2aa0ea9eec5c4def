#pragma once

#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// The matrices of the proof of concept's own test: 100×100, 124×324, 456×124, 676×876 and 128×128, cut along rows,
/// columns, not at all, columns and rows.
std::vector<Parameter> proof_of_concept_parameters();

/// The same five at about an eighth of their size, for a quick look: 12×12, 16×40, 56×16, 84×108 and 16×16.
std::vector<Parameter> small_parameters();

/// The parameters that pipeline stage `stage` of `stages` holds: an equal range of the list, as far as it can be equal.
Range stage_parameters(int parameters, int stages, int stage);

/// The matrices of a model that is large enough to need a cluster, by name: "llama-3-70b". They are for planning: TP
/// cuts them as Megatron-LM does, the first of two by rows and the second by columns. Throws UsageError for any other
/// name. Llama 3 70B has 80 layers of width 8,192, 64 heads and 8 key-value heads of 128, and feed-forward layers of
/// 28,672
/// ("The Llama 3 Herd of Models", Meta 2024, table 3): 68.5 of its 70.6 billion parameters; the embedding and the
/// output layer are left to AdamW.
std::vector<Parameter> model_parameters(const std::string& name);

}  // namespace muonwalk
