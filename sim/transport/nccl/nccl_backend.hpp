#pragma once

// Private to nccl_device.cpp, which connects groups, and nccl_backend.cpp, which then makes their calls.

#include <memory>
#include <string>

#include "sim/transport/nccl/nccl_group.hpp"
#include "src/comm/backend.hpp"
#include "src/cuda/kernels.hpp"

namespace muonwalk::sim {

/// The backend of a group that is connected, over Gloo (`beneath`) and, where there is more than one rank, over NCCL.
/// `kernels` add.
std::unique_ptr<Backend> over_nccl(const NcclGroup::Member& member, const cuda::Kernels& kernels,
                                   std::unique_ptr<Backend> beneath, std::unique_ptr<NcclGroup> group);

}  // namespace muonwalk::sim
