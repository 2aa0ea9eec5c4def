#pragma once

#include "sim/pictures/strip.hpp"

namespace muonwalk::sim {

/// Finds out where the elements of `block`, which `rank` holds after the step, came from, and writes it into the
/// strip's seams, sums and places. What the ranks held before and the arrows must be there already.
void add_origin(const RecordedStep& step, int rank, const RecordedBlock& block, Strip& strip);

}  // namespace muonwalk::sim
