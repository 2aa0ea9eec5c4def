#pragma once

#include <string>
#include <vector>

#include "lessons/lesson_22_nccl/processor.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// Bytes that go between the host's memory and a GPU's.
struct Crossed {
  Index to_device = 0, to_host = 0;
};

/// What one rank moves in one phase of a step, by formula.
struct PhaseCrossing {
  Phase phase;
  Index sent = 0;    ///< Bytes to other ranks.
  Crossed staged{};  ///< Where arrays lie in the host's memory, and each call takes what it needs to the GPU and back.
  Crossed resident{};  ///< Where arrays lie in the GPU's memory.
};

/// Adds up the entries of each phase, in the order in which the phases begin.
std::vector<PhaseCrossing> summed_by_phase(const std::vector<PhaseCrossing>& entries);

/// The sum over all phases.
PhaseCrossing total(const std::vector<PhaseCrossing>& phases);

/// What crossed, as a Processor has noted it.
Crossed crossed_in(const std::vector<PhaseWork>& noted);

/// What crosses in `times` steps, 1 × 2 numbers: 4-byte elements to the GPU, and 8-byte norms that go to the host.
Matrix elements_of(const Crossed& crossed, int times = 1);

/// A table with a line for each phase that moves anything, and one for all of them.
std::string crossing_text(const std::vector<PhaseCrossing>& phases);

/// What was noted as a table, a line per phase. Where nothing was queued, a line that says so.
std::vector<std::string> work_lines(const std::vector<PhaseWork>& noted);

/// The first lines of lesson 22: who computes in this run, and where arrays lie.
std::string who_computes(bool on_gpus);

}  // namespace muonwalk::sim
