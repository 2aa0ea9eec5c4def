#pragma once

#include <utility>
#include <vector>

#include "sim/ranks/reports.hpp"

namespace muonwalk::testing {

/// What one rank told, in this order. Records can be moved and not copied, so a list in braces does not make them.
template <class... Kinds>
std::vector<sim::Report> told(Kinds... reports) {
  std::vector<sim::Report> all;
  (all.push_back(std::move(reports)), ...);
  return all;
}

/// What all ranks told, one after the other.
template <class... Ranks>
sim::StepReports by_rank(Ranks... ranks) {
  sim::StepReports all;
  (all.push_back(std::move(ranks)), ...);
  return all;
}

}  // namespace muonwalk::testing
