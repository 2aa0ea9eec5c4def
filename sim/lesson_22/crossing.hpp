#pragma once

#include <string>
#include <vector>

#include "sim/lesson_22/processor.hpp"
#include "src/optim/muon_settings.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// Bytes that go between the host's memory and a GPU's.
struct Crossed {
  Index to_device = 0;  ///< from the host's memory
  Index to_host = 0;    ///< from the GPU's
};

/// What one rank moves in one phase of a step, by formula.
struct PhaseCrossing {
  Phase phase;       ///< which one
  Index sent = 0;    ///< bytes to other ranks
  Crossed staged;    ///< where arrays lie in the host's memory, and each call takes what it needs to the GPU and back
  Crossed resident;  ///< where arrays lie in the GPU's memory
};

/// A fold over the plan of a step with chains, phase by phase, in the order in which they begin. First of all come the
/// gradients, which the host makes: they go to the GPU where arrays lie there, and nowhere where not.
std::vector<PhaseCrossing> crossing(const Plan& plan, const MuonSettings& settings);

/// The sum over all phases.
PhaseCrossing total(const std::vector<PhaseCrossing>& phases);

/// What was noted of a Processor that crossed.
Crossed crossed_in(const std::vector<PhaseWork>& noted);

/// The same as 1 × 2 numbers, `times` times: elements that came to the GPU, of four bytes, and norms that went to the
/// host, of eight.
Matrix elements_of(const Crossed& crossed, int times = 1);

/// As a table, a line per phase and one for all of them.
std::string crossing_text(const std::vector<PhaseCrossing>& phases);

}  // namespace muonwalk::sim
