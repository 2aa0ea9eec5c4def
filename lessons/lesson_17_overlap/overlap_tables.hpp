#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lessons/lesson_17_overlap/played_plan.hpp"
#include "sim/replay/run_trace.hpp"

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

/// One step of a traced run, as it was measured. The times of all ranks are averaged, but for the span.
struct MeasuredStep {
  std::string title;
  std::int64_t span_ns = 0;       ///< From the first phase of the first rank to the end of the last one.
  std::int64_t computing_ns = 0;  ///< All time outside of calls.
  std::int64_t in_calls_ns = 0;   ///< The time in calls, most of it waiting.
  std::int64_t under_way_ns = 0;  ///< Posted messages to a rank, from post to wait, added up.
  double hidden = 0;  ///< The share of the time under way, over all ranks, that was also spent with computing.
};

/// The steps of a run that have a phase `from` and, later, a phase `to`, in order: each from the beginning of the first
/// `from` to that of the first `to`.
std::vector<MeasuredStep> measured_steps(const RunTrace& run, const std::string& from, const std::string& to);

/// The steps as a table, for standard error: times differ from run to run.
std::string measured_table(const std::vector<MeasuredStep>& steps);

}  // namespace muonwalk::sim
