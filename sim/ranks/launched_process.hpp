#pragma once

#include <optional>

#include "sim/launch/launch.hpp"

namespace muonwalk::sim {

/// Where all processes of a launch have the same to say, only that of rank 0 says it. To be called before anything is
/// printed: in the others, standard output leads nowhere from here on, and refusals are not told.
void speak_only_as_rank_0(int argc, char** argv);

/// True where this process tells why it refuses what was asked: rank 0's, and one that was started by hand, in a
/// terminal of its own.
bool tells_refusals();

/// Tells why this process refuses what was asked, so that nobody waits for it: rank 0's process, which then says so as
/// well; or, where this is that one and was started by hand, those who look for it within five. By hand, rank 0's
/// process is looked for up to --timeout, for it may be started last. Where a launcher's processes all refuse, rank 0's
/// isn't there, and this gives it a second to tell: a launcher ends all processes when the first of them fails, and
/// would end it before it has said why.
void hand_refusal_on(const std::string& sentence);

/// As find_launch, for this process. Where it refuses, that is told once per host.
std::optional<Launch> launch_of_this_process(const LaunchOptions& options);

}  // namespace muonwalk::sim
