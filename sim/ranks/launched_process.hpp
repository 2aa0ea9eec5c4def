#pragma once

#include <optional>

#include "sim/launch/launch.hpp"

namespace muonwalk::sim {

/// Where all processes of a launch have the same to say, only that of rank 0 says it. To be called before anything is
/// printed: in the others, standard output leads nowhere from here on, and refusals are not told.
void speak_only_as_rank_0(int argc, char** argv);

/// True where this process tells why it refuses what was asked.
bool tells_refusals();

/// Where this process does not: gives the one that does a second to tell. A launcher ends all processes when the first
/// of them fails, and would end that one before it has said why.
void let_refusal_be_told();

/// As find_launch, for this process. Where it refuses, that is told once per host.
std::optional<Launch> launch_of_this_process(const LaunchOptions& options);

}  // namespace muonwalk::sim
