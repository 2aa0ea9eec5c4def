#pragma once

#include <string>
#include <vector>

#include "src/optim/plan.hpp"

namespace muonwalk {

/// What a rank holds in a phase of a step, in bytes: matrices and flat buffers, as a MemoryMeter counts them.
struct PhaseMemory {
  std::string phase;   ///< "DP gather"
  int parameter = -1;  ///< DistMeta::parameter of the matrix that it is about; −1: about a bucket
  Index held = 0;      ///< as the phase begins
  Index most = 0;      ///< at one time, until the next phase begins

  /// All members are equal.
  friend bool operator==(const PhaseMemory& a, const PhaseMemory& b) {
    return a.phase == b.phase && a.parameter == b.parameter && a.held == b.held && a.most == b.most;
  }
};

/// What the plan's rank holds in each phase, in order.
std::vector<PhaseMemory> phase_memory(const Plan& plan);

/// What it holds between two steps: all that is taken before the first phase, a line per name and type, in the order in
/// which they come first.
std::vector<Memory> held_between_steps(const Plan& plan);

/// The most bytes that it holds at one time in the step besides those.
Index transient_bytes(const Plan& plan);

/// Counts, on the rank itself, what phase_memory predicts: asks the rank's meter whenever a phase begins.
class PhaseMeter {
 public:
  /// Of nobody, until another one is assigned.
  PhaseMeter() = default;
  /// `meter` must outlive it. From here on the meter's peak in bytes is the last phase's own.
  explicit PhaseMeter(MemoryMeter& meter) : meter_(&meter) {}
  /// A phase begins, and with it the one before ends.
  void begin(Phase phase, const DistMeta* parameter = nullptr);
  /// The last one ends; returns all of them.
  std::vector<PhaseMemory> finish();

 private:
  void end_phase();
  MemoryMeter* meter_ = nullptr;
  std::vector<PhaseMemory> phases_;
};

}  // namespace muonwalk
