#pragma once

// Ranks over NCCL: threads of this process, or the calling process as one of them. Both libraries are the stand-ins.

#include <memory>
#include <string>
#include <vector>

#include "sim/transport/nccl_device.hpp"
#include "tests/comm/rank_runners.hpp"

namespace muonwalk::testing {

/// Room for the keys of one group of `size` ranks, "memory".
std::unique_ptr<sim::KeyStore> board_for_nccl(int size);

/// The calling thread is a rank, on GPU number `rank`.
std::string as_nccl_rank(int rank, int size, sim::KeyStore& board, const RankFunction& function,
                         std::chrono::milliseconds timeout = patient, const Wrapper& wrapper = nullptr);

/// Complaints by rank; empty strings where there are none.
std::vector<std::string> on_nccl_threads(int size, const RankFunction& function,
                                         std::chrono::milliseconds timeout = patient, const Wrapper& wrapper = nullptr);

/// Puts a copy of everything that a rank hands to its backend into device memory, and hands that on: the same calls,
/// with device pointers. What lies in one memory stays so.
std::unique_ptr<Backend> with_device_pointers(int rank, Backend& inner);

}  // namespace muonwalk::testing
