#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/reports.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// The numbers from 0 to `ranks` − 1 sorted by equal values of(rank): each value with those that have it, in order of
/// the first of each set.
template <class Of>
auto sets_of_equal(std::size_t ranks, const Of& of) {
  std::vector<std::pair<decltype(of(ranks)), std::vector<int>>> sets;
  for (std::size_t r = 0; r < ranks; ++r) {
    auto value = of(r);
    auto set = std::find_if(sets.begin(), sets.end(), [&](const auto& s) { return s.first == value; });
    if (set == sets.end()) set = sets.insert(sets.end(), {std::move(value), {}});
    set->second.push_back(static_cast<int>(r));
  }
  return sets;
}

/// What the ranks said in one step, as aligned lines in rank order: said lines, shown things and, with values, these
/// too. Without values, ranks that say the same say it once.
std::vector<std::string> step_lines(const Grid& grid, const StepReports& reports, bool values);

/// "every rank sent 48 B in 1 message and received 48 B": a line for each set of ranks that moved the same, none where
/// nothing moved. Of more than two sets, one line from the least to the most, unless `every_set`.
std::vector<std::string> moved_lines(const StepReports& reports, bool every_set);

}  // namespace muonwalk::sim
