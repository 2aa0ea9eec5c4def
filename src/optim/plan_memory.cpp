#include "src/optim/plan_memory.hpp"

#include <algorithm>
#include <utility>

namespace muonwalk {

std::vector<PhaseMemory> phase_memory(const Plan& plan) {
  std::vector<PhaseMemory> phases;
  Index held = 0;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation))
      phases.push_back({std::string(work->phase), work->parameter, held, held});
    const Memory* memory = std::get_if<Memory>(&operation);
    if (memory == nullptr) continue;
    held += memory->bytes();
    if (!phases.empty()) phases.back().most = std::max(phases.back().most, held);
  }
  return phases;
}

std::vector<Memory> held_between_steps(const Plan& plan) {
  std::vector<Memory> held;
  for (const Operation& operation : plan.operations) {
    const Memory* memory = std::get_if<Memory>(&operation);
    if (memory == nullptr) break;
    const auto same = std::find_if(held.begin(), held.end(), [memory](const Memory& each) {
      return each.what == memory->what && each.type == memory->type;
    });
    if (same == held.end())
      held.push_back(*memory);
    else
      same->elements += memory->elements;
  }
  return held;
}

Index transient_bytes(const Plan& plan) {
  Index between_steps = 0;
  for (const Memory& each : held_between_steps(plan)) between_steps += each.bytes();
  return peak_bytes(plan) - between_steps;
}

void PhaseMeter::begin(Phase phase, const DistMeta* parameter) {
  end_phase();
  phases_.push_back({std::string(phase), parameter == nullptr ? -1 : parameter->parameter, meter_->live_bytes(),
                     meter_->live_bytes()});
}

std::vector<PhaseMemory> PhaseMeter::finish() {
  end_phase();
  return std::exchange(phases_, {});
}

void PhaseMeter::end_phase() {
  if (!phases_.empty()) phases_.back().most = meter_->peak_bytes();
  meter_->restart_peak_bytes();
}

}  // namespace muonwalk
