#pragma once

#include <string>
#include <vector>

#include "sim/ranks/world.hpp"

namespace muonwalk::sim {

/// Starts a world, runs `body` once on every rank, and lets the ranks go. Returns what each of them said (Rank::say),
/// in rank order. A rank that is a process ends in here. Throws as a step of a lesson does.
std::vector<std::vector<std::string>> said_by_ranks(const Options& options, const std::string& title,
                                                    const RankBody& body);

/// Numbers as a line that a rank can say, and back, bit for bit.
/// @{
std::string line_of(const std::vector<double>& numbers);
std::vector<double> numbers_of(const std::string& line);
/// @}

/// Whether all ranks of a group go on, which rank 0 decides: it alone knows the time.
bool go_on(Communicator& group, bool wanted);

/// The value below which this share of them lies; 0.5: the median, of an even number the upper one in the middle.
double quantile(std::vector<double> values, double share);

/// Seconds on a clock that all ranks of a machine share.
double seconds_now();
/// Seconds that a processor has worked for the calling thread, whoever else it worked for in between.
double thread_seconds();
/// Seconds for all threads of a rank, those of its transport included; of its process where ranks are processes.
double rank_seconds(WorldKind world);

/// The cores that this process may use; at least 1.
int cores_here();

}  // namespace muonwalk::sim
