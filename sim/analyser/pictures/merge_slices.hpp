#pragma once

#include <cstdint>
#include <vector>

#include "sim/analyser/pictures/timeline.hpp"

namespace muonwalk::sim {

/// Draws neighbours of a row as one slice as long as all of it stays shorter than `resolution_ns`, which is what a
/// pixel stands for: a row then has at most 2 · span / resolution + 2 slices, however many events it had. Longer events
/// stay as they are.
void merge_short_slices(Timeline& timeline, std::int64_t resolution_ns);

/// Merges the timelines of a picture at coarser and coarser resolutions, the same for all, until they have at most
/// `most_slices` together, or until every row is a single slice. Returns the resolution in nanoseconds; 0 when nothing
/// had to be merged.
std::int64_t merge_until_few(const std::vector<Timeline*>& timelines, std::int64_t most_slices);

}  // namespace muonwalk::sim
