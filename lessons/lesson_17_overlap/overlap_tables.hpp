#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lessons/lesson_17_overlap/played_plan.hpp"

namespace muonwalk::sim {

/// A way to take the step.
struct OverlapWay {
  std::string name;                           ///< "pipelined"
  Schedule schedule = Schedule::in_sequence;  ///< when its gathers are posted and waited for
  Index bucket = 0;                           ///< a bucket is full at this number of elements, before TP
};

/// What it comes to on every rank.
struct PlannedWay {
  std::string name;         ///< "pipelined"
  Layout layout;            ///< who owns what
  std::vector<Plan> plans;  ///< [rank]
};

/// This number of layers of two matrices each, up 256 × 128 and down 128 × 256, cut by TP as Megatron-LM does.
std::vector<Parameter> overlap_layers(int layers);

/// The layout of a way: each DP rank owns an equal part of every bucket. TP ranks have slices, so their buckets are
/// full at fewer elements. Throws as plan_layout does.
Layout layout_of_way(const OverlapWay& way, const std::vector<Parameter>& parameters, const Grid& grid);

/// Throws UsageError with a sentence where `way` names none of the ways (an empty one means all), and where the grid
/// has pipeline stages, of which a step knows nothing.
void require_possible_way(const std::vector<OverlapWay>& ways, const std::string& way, const Grid& grid);

/// The plan of every rank of the grid.
/// @{
PlannedWay planned_way(const std::string& name, const Layout& layout, const MuonSettings& settings, Schedule schedule);
std::vector<PlannedWay> planned_ways(const std::vector<OverlapWay>& ways, const std::vector<Parameter>& parameters,
                                     const Grid& grid, const MuonSettings& settings);
/// @}

/// What the ways are made of, a line per way: buckets; of rank 0, messages and bytes that it sends to gather them; of
/// the rank that has most, FLOPs of Newton–Schulz and the peak of elements. At most 100 columns.
std::string ways_table(const std::vector<PlannedWay>& ways);

/// The ways on one machine (play_slowest), a line per way: the span, and of it computing and waiting; messages under
/// way, added up; and the share of the time under way that was hidden behind computing. At most 100 columns.
std::string machine_table(const std::vector<PlannedWay>& ways, const PlayedMachine& machine);

/// The spans of four ways (in sequence, all at once, pipelined, pipelined in tiny buckets) on several links, a line per
/// link, and what overlap does there: the third against the better of the first two, which don't compute while they
/// gather. It is neutral within 2 %. At most 100 columns.
std::string links_table(const std::vector<PlannedWay>& ways, const std::vector<LinkSpeed>& links,
                        double gigaflops_per_second);

/// From the inside of a host to the other side of an ocean: the links of the last table.
const std::vector<LinkSpeed>& overlap_links();

/// The three tables below each other, the last one for these links and the machine's processor.
std::string overlap_tables(const std::vector<PlannedWay>& ways, const PlayedMachine& machine);

/// Played plans, by name, below each other as an SVG picture, all on one scale of time: for each a lane for the link
/// and one for the processor, and in them a bar per bucket, in the bucket's colour. Where the processor's lane is
/// empty, the rank waits. `machine` is said in the title. Throws std::invalid_argument where there is no plan.
std::string schedules_svg(const std::vector<std::pair<std::string, PlayedPlan>>& ways, const std::string& machine);

/// The picture of the slowest rank of each way.
std::string schedules_svg(const std::vector<PlannedWay>& ways, const PlayedMachine& machine);

/// "pays, −37 %", "neutral", "loses, +12 %": how much longer or shorter `span` is than `without`.
std::string verdict_on(std::int64_t span_ns, std::int64_t without_ns);

}  // namespace muonwalk::sim
