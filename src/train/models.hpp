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

/// A model that has one of everything, and is small enough to be printed: `embed` and `lm_head` 12×8, a token per row;
/// `q` and `o` 8×8, `up` 16×8 and `down` 8×16; and a vector, `norm`, of 8 gains. TP cuts as Megatron-LM does: `o` and
/// `down` by columns, `norm` not at all, the others by rows.
std::vector<Parameter> tiny_gpt_parameters();

/// The matrices of the published traces ("Distributed Muon: Field Notes & Reproducibility Artifacts", Jen Wei, 2025):
/// 4096×4096, 1024×324, 456×1024, 676×876 and 128×128, cut by TP along rows, columns, not at all, columns and rows.
std::vector<Parameter> published_run_parameters();

/// The same five at about a sixteenth of their size: 256×256, 64×20, 28×64, 42×54 and 8×8.
std::vector<Parameter> small_published_run_parameters();

/// Two layers of a toy whose matrices differ in more than their size: attention with fewer heads for keys and values
/// than for queries (wq and wo 32×32, wk and wv 16×32), cut by TP, and one expert (up 16×32, down 32×16) with its
/// router (4×32), which TP leaves whole. "0.wq" to "1.down".
std::vector<Parameter> expert_layers();

/// The parameters that pipeline stage `stage` of `stages` holds: an equal range of the list, as far as it can be equal.
Range stage_parameters(int parameters, int stages, int stage);

}  // namespace muonwalk
