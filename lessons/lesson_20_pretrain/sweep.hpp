#pragma once

#include <string>

#include "lessons/lesson_20_pretrain/pretraining.hpp"

namespace muonwalk::sim {

/// Trains with each of some learning rates on one process, each way by itself, and says what loss on the held-out text
/// each of them comes to, in a table on standard output. A minute or two. Returns 0, the exit code.
int print_sweep(const PretrainingRequest& request, const RankInfo& rank);

}  // namespace muonwalk::sim
