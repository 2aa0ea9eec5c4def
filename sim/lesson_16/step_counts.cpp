#include "sim/lesson_16/step_counts.hpp"

#include <algorithm>

#include "src/optim/full_step.hpp"
#include "src/optim/plan_memory.hpp"

namespace muonwalk::sim {

StepCounts& StepCounts::operator+=(const StepCounts& next) {
  bytes += next.bytes;
  messages += next.messages;
  calls += next.calls;
  kept = next.kept;
  transient = std::max(transient, next.transient);
  return *this;
}

Matrix StepCounts::row() const {
  const auto as_float = [](auto number) { return static_cast<float>(number); };
  return Matrix(1, 5, {as_float(bytes), as_float(messages), as_float(calls), as_float(kept), as_float(transient)});
}

namespace {

StepCounts counts_of_step(const Plan& plan) {
  const Traffic sent = ledger_of(plan).total();
  StepCounts counts;
  counts.bytes = sent.bytes_sent;
  counts.messages = sent.messages_sent;
  counts.calls = count(plan, phases::orthogonalize);
  Index held = 0;
  for (const Memory& each : held_between_steps(plan)) {
    held += each.elements;
    if (each.what != "weights" && each.what != "gradients") counts.kept += each.elements;
  }
  counts.transient = peak_elements(plan) - held;
  return counts;
}

}  // namespace

StepCounts counts_of(const std::vector<Plan>& plans) {
  StepCounts counts;
  for (const Plan& plan : plans) counts += counts_of_step(plan);
  return counts;
}

StepCounter::StepCounter(const Ledger& ledger, MemoryMeter& meter)
    : ledger_(ledger), meter_(meter), sent_before_(ledger.total()), held_before_(meter.live()) {
  meter_.restart_peak();
}

void StepCounter::begin(Phase phase) { counts_.calls += phase == phases::orthogonalize; }

StepCounts StepCounter::end(const Optimizer& optimizer) {
  const Traffic sent = ledger_.total() - sent_before_;
  counts_.bytes = sent.bytes_sent;
  counts_.messages = sent.messages_sent;
  counts_.kept = optimizer.kept_elements();
  counts_.transient = meter_.peak() - held_before_;
  return counts_;
}

}  // namespace muonwalk::sim
