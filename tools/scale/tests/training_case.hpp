#pragma once

#include <vector>

#include "tools/scale/training_time.hpp"

/// What the tests of a training run's time and memory begin with.

inline const muonwalk::sim::TrainingSoftware& nanotron() { return muonwalk::sim::software_of("nanotron"); }

inline muonwalk::sim::TrainingLayout layout_of(int nodes, int dp, int tp, int pp, int zero, int micro_batch,
                                               int accumulation) {
  muonwalk::sim::TrainingLayout layout;
  layout.nodes = nodes;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.zero = zero;
  layout.micro_batch = micro_batch;
  layout.accumulation = accumulation;
  return layout;
}

/// The amount of a term; 0 where there is none.
inline double amount(const std::vector<muonwalk::sim::Term>& terms, const muonwalk::sim::TermKind* kind) {
  double sum = 0;
  for (const muonwalk::sim::Term& term : terms)
    if (term.kind == kind) sum += term.amount;
  return sum;
}
