#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

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

}  // namespace muonwalk::sim
