#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lessons/lesson_17_overlap/played_plan.hpp"

namespace muonwalk::sim {

/// The step in one of the schedules that are compared, with its plan on every rank.
struct PlannedStep {
  std::string name;         ///< "pipelined"
  Layout layout;            ///< who owns what
  std::vector<Plan> plans;  ///< [rank]
};
PlannedStep planned_step(const std::string& name, const Layout& layout, const MuonSettings& settings,
                         Schedule schedule);

/// What the ways are made of, a line per way: buckets; of rank 0, messages and bytes that it sends to gather them; of
/// the rank that has most, FLOPs of Newton–Schulz and the peak of elements.
std::string ways_table(const std::vector<PlannedStep>& ways);

/// The ways on one machine (play_slowest), a line per way: the span, and of it computing and waiting; messages under
/// way, added up; and the share of the time under way that was hidden behind computing.
std::string machine_table(const std::vector<PlannedStep>& ways, const PlayedMachine& machine);

/// The spans of four ways (in sequence, all at once, pipelined, pipelined in tiny buckets) on several links, a line per
/// link, and what overlap does there: the third against the better of the first two, which don't compute while they
/// gather. It is neutral within 2 %.
std::string links_table(const std::vector<PlannedStep>& ways, const std::vector<LinkSpeed>& links,
                        double gigaflops_per_second);

/// The three tables below each other, the last one for links from the inside of a host to the other side of an ocean.
std::string overlap_tables(const std::vector<PlannedStep>& ways, const PlayedMachine& machine);

/// "pays, −37 %", "neutral", "loses, +12 %": how much longer or shorter `span` is than `without`.
std::string verdict_on(std::int64_t span_ns, std::int64_t without_ns);

}  // namespace muonwalk::sim
