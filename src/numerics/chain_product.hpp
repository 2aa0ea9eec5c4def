#pragma once

#include <vector>

#include "src/numerics/chain_kernel.hpp"

namespace muonwalk {

/// The kernels that this processor can run, the best one last.
std::vector<const ChainKernel*> chain_kernels();

/// The last of them, or the one that the environment variable MUONWALK_CHAIN names. Throws UsageError when it names
/// none that this processor can run.
const ChainKernel& chain_kernel();

/// Computes the product on `threads` OpenMP threads; opens no parallel region for one.
/// @{
void compute(const ChainProduct& product, int threads);
void compute(const ChainProduct& product, int threads, const ChainKernel& kernel);
/// @}

}  // namespace muonwalk
