#include "sim/lesson_22/crossing.hpp"

#include <algorithm>

#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr Phase kGradients = "gradients";
constexpr Index kFloat = sizeof(float);

// Newton–Schulz on a GPU lets the host see the norm, a double, and in bf16 that of the rounded matrix as well.
Index norm_bytes(const MuonSettings& settings) {
  return Index{sizeof(double)} * (settings.precision == Precision::bf16 ? 2 : 1);
}

PhaseCrossing& entry(std::vector<PhaseCrossing>& phases, Phase phase) {
  const auto known = std::find_if(phases.begin(), phases.end(), [&](auto& each) { return each.phase == phase; });
  if (known != phases.end()) return *known;
  phases.push_back({phase, 0, {}, {}});
  return phases.back();
}

void add(Crossed& to, const Crossed& more) {
  to.to_device += more.to_device;
  to.to_host += more.to_host;
}

std::string crossed_text(const Crossed& crossed) { return bytes_text(crossed.to_device + crossed.to_host); }

}  // namespace

std::vector<PhaseCrossing> crossing(const Plan& plan, const MuonSettings& settings) {
  std::vector<PhaseCrossing> phases = {{kGradients, 0, {}, {}}};
  Phase phase = kGradients;
  for (const Operation& operation : plan.operations) {
    if (const Memory* memory = std::get_if<Memory>(&operation)) {
      if (memory->what == "gradients") entry(phases, kGradients).resident.to_device += memory->elements * kFloat;
    } else if (const Work* work = std::get_if<Work>(&operation)) {
      phase = work->phase;
      PhaseCrossing& now = entry(phases, phase);
      if (phase != phases::orthogonalize) continue;
      const Index matrix = work->shape.size() * kFloat;
      add(now.staged, {matrix, matrix + norm_bytes(settings)});
      add(now.resident, {0, norm_bytes(settings)});
    } else {
      const Call& call = std::get<Call>(operation);
      PhaseCrossing& now = entry(phases, phase);
      const Index size = element_size(call.type);
      add(now.staged, {call.elements_in * size, call.elements_out * size});
      now.sent += ledger_of(Plan{plan.grid, plan.place, {operation}}).total().bytes_sent;
    }
  }
  return phases;
}

PhaseCrossing total(const std::vector<PhaseCrossing>& phases) {
  PhaseCrossing sum{"all", 0, {}, {}};
  for (const PhaseCrossing& phase : phases) {
    sum.sent += phase.sent;
    add(sum.staged, phase.staged);
    add(sum.resident, phase.resident);
  }
  return sum;
}

Crossed crossed_in(const std::vector<PhaseWork>& noted) {
  Crossed crossed;
  for (const PhaseWork& work : noted) add(crossed, {work.to_device, work.to_host});
  return crossed;
}

Matrix elements_of(const Crossed& crossed, int times) {
  Matrix elements(1, 2);
  elements(0, 0) = static_cast<float>(times * crossed.to_device / kFloat);
  elements(0, 1) = static_cast<float>(times * crossed.to_host / Index{sizeof(double)});
  return elements;
}

std::string crossing_text(const std::vector<PhaseCrossing>& phases) {
  std::vector<std::vector<std::string>> rows = {
      {"predicted, for rank 0", "to other ranks", "host–GPU, arrays on host", "host–GPU, arrays on GPU"}};
  const auto line = [&](const PhaseCrossing& phase) {
    rows.push_back(
        {std::string(phase.phase), bytes_text(phase.sent), crossed_text(phase.staged), crossed_text(phase.resident)});
  };
  for (const PhaseCrossing& phase : phases)
    if (phase.sent + phase.staged.to_host + phase.resident.to_device > 0) line(phase);
  line(total(phases));
  return joined_table(rows, 1);
}

}  // namespace muonwalk::sim
