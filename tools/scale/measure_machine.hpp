#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/scale/machine_costs.hpp"

namespace muonwalk::sim {

/// How thoroughly a machine is measured.
struct MeasureSettings {
  std::vector<int> ranks = {2, 4, 8, 16};  ///< Numbers of ranks whose messages are measured, rising, at least 2.
  /// The sizes of messages, in bytes: rising multiples of 4.
  std::vector<int> messages = {4, 1024, 4096, 16384, 65536, 262144, 2097152};
  std::vector<int> sides = {4, 16, 48, 160, 448, 800};  ///< Smaller sides of the matrices of Newton–Schulz, rising.
  double seconds = 0.25;                                ///< How long each figure is measured.
};

/// Measures what the parts of a step cost on this machine: messages between ranks that are processes over Gloo and
/// between threads over memory, from all to all as Muonwalk's collectives send them; Newton–Schulz with each engine and
/// precision, elementwise work and new memory, on all cores at once. Of work the median of the processor time counts,
/// of messages the lower quartile of the time on the wall, so that other jobs of the machine disturb little if they are
/// few. Figures are rounded to four digits. With the usual settings that takes less than a minute. `progress` is told
/// what comes next. Starts processes, so the caller must have no threads; throws RunError where a rank fails.
MachineCosts measure_machine(const MeasureSettings& settings = {},
                             const std::function<void(const std::string&)>& progress = nullptr);

}  // namespace muonwalk::sim
