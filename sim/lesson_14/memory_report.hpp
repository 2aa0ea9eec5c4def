#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/cluster/lesson.hpp"
#include "sim/lesson_14/way.hpp"

namespace muonwalk::sim {

/// What one rank has counted, by the names of the ways.
using CountedMemory = std::map<std::string, RankMemory>;

/// Every number that a rank has counted as a matrix of one element, to be collected. Throws std::logic_error for one
/// that float32 can't hold.
std::vector<NamedMatrix> as_matrices(const CountedMemory& counted);

/// What is to be compared, and shown of one rank.
struct MemoryReport {
  std::vector<Way> ways;  ///< AdamW and Muon with nothing sharded, and the two with ZeRO-1
  std::function<RankMemory(const Seat&, const Way&)> planned;  ///< what a rank should hold
  std::function<Layout(const Seat&, const Way&)> layout;       ///< who owns what
};

/// Checks what all ranks have counted (`counted[rank]`, as they collected it) against the plan, number by number. Then
/// prints, of what one rank has counted, the table of the four ways and the chart of a step in the last of them. The
/// rank is the first of those that hold the most there, by the plan.
void report_memory(LessonCore& lesson, const MemoryReport& report,
                   const std::vector<std::vector<NamedMatrix>>& counted);

/// The picture of the last two ways, as planned for that rank.
std::string planned_picture(const Options& options, const MemoryReport& report);

/// Prints models_table for a grid.
void report_models(LessonCore& lesson, const Grid& grid);

}  // namespace muonwalk::sim
