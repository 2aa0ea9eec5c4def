#pragma once

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// The TP slice of a parameter that TP rank `tp_rank` of `tp` has of the matrix `whole` (of parameter.shape), with the
/// parameter's name and its place in the whole: an equal range of rows or of columns, or all of it for SplitDim::none.
/// References of lessons compare with it, so it copies element by element and shares no code with tp_slice. Throws
/// std::invalid_argument when tp does not divide the dimension, the rank is not there, or `whole` has another shape.
NamedMatrix named_slice(const Parameter& parameter, const Matrix& whole, int tp, int tp_rank);

/// Adds `slices` to `all`, each with the name of what it is of before its own: "per bucket: 0.wq".
void append_of(const std::string& whose, std::vector<NamedMatrix> slices, std::vector<NamedMatrix>& all);

}  // namespace muonwalk
