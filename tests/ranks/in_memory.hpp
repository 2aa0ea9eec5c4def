#pragma once

#include "sim/ranks/options.hpp"

namespace muonwalk::testing {

/// A run whose ranks are fibers of the test and send to each other through memory: quick, and nothing is forked.
inline sim::Options in_memory(const Grid& grid) {
  sim::Options options;
  options.grid = grid;
  options.world = sim::WorldKind::fibers;
  return options;
}

}  // namespace muonwalk::testing
