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

/// The matrices of the published traces ("Distributed Muon: Field Notes & Reproducibility Artifacts", Jen Wei, 2025):
/// 4096×4096, 1024×324, 456×1024, 676×876 and 128×128, cut by TP along rows, columns, not at all, columns and rows.
std::vector<Parameter> published_run_parameters();

/// The same five at about a sixteenth of their size: 256×256, 64×20, 28×64, 42×54 and 8×8.
std::vector<Parameter> small_published_run_parameters();

/// The parameters that pipeline stage `stage` of `stages` holds: an equal range of the list, as far as it can be equal.
Range stage_parameters(int parameters, int stages, int stage);

}  // namespace muonwalk
