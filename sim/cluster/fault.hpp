#pragma once

#include "sim/cluster/options.hpp"

namespace muonwalk::sim {

/// Lets rank `rank` suffer the fault that `--fault` asks for, when the fault is for this rank and step number `step`
/// (0: the rendezvous). Does not return from most of them; throws RunError for Fault::Kind::raise.
void have_fault(const Fault& fault, int rank, int step);

}  // namespace muonwalk::sim
