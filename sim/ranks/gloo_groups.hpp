#pragma once

#include <chrono>
#include <memory>

#include "sim/ranks/rank_groups.hpp"
#include "sim/transport/key_store.hpp"

namespace muonwalk::sim {

/// A key store with room for what the ranks of a run write while their groups connect.
std::unique_ptr<KeyStore> board_for(const Options& options);

/// Connects one rank to its groups over Gloo, a context of its own for each group, and where NCCL was asked for, over
/// that as well. Gloo's waits are limited to `timeout`; NCCL's, in which no rank computes, to --timeout.
std::unique_ptr<RankGroups> connect_over_gloo(const Options& options, int rank, KeyStore& store, Progress& progress,
                                              std::chrono::milliseconds timeout);

}  // namespace muonwalk::sim
