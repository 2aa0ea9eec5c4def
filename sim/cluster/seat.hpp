#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk::sim {

/// What a rank knows without talking to anybody: its place, the grid, and what was asked for on the command line. The
/// serial reference of a lesson is handed a seat as well, to know which rank's result it should compute.
struct Seat {
  Place place;                            ///< where it stands in the grid
  Grid grid;                              ///< of the whole run
  int threads = 1;                        ///< OpenMP threads of this rank
  std::uint64_t seed = 0;                 ///< `--seed`
  Precision precision = Precision::fp32;  ///< `--precision`
  Products products = Products::eigen;    ///< `--products`
  std::string bug_switched_on;            ///< the planted bug of `--bug NAME`; empty for none

  /// True when the planted bug `name` is switched on.
  bool bug(const char* name) const { return bug_switched_on == name; }
};

}  // namespace muonwalk::sim
