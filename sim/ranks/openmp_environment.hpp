#pragma once

namespace muonwalk::sim {

/// Throws UsageError, one sentence, for a variable of the environment with which OpenMP would print lines of its own or
/// end the program: one that it can't read, and stacks for which the system has no room. `threads` are those of a rank.
void require_openmp_environment(int threads);

}  // namespace muonwalk::sim
