#pragma once

#include <utility>
#include <vector>

#include "sim/world/records.hpp"

namespace muonwalk::testing {

/// What one rank told, in this order. Records can be moved and not copied, so a list in braces does not make them.
template <class... Kinds>
std::vector<sim::Record> told(Kinds... records) {
  std::vector<sim::Record> all;
  (all.push_back(std::move(records)), ...);
  return all;
}

/// What all ranks told, one after the other.
template <class... Ranks>
sim::StepRecords by_rank(Ranks... ranks) {
  sim::StepRecords all;
  (all.push_back(std::move(ranks)), ...);
  return all;
}

}  // namespace muonwalk::testing
