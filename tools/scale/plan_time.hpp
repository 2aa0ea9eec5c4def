#pragma once

#include <vector>

#include "src/optim/plan.hpp"
#include "tools/scale/machine_costs.hpp"
#include "tools/scale/term.hpp"

namespace muonwalk::sim {

/// What a step is taken with: it decides which of the measured costs hold.
struct StepConditions {
  TransportKind transport = TransportKind::gloo;  ///< Ranks are processes over gloo, or threads over memory.
  Products products = Products::eigen;
  Precision precision = Precision::fp32;
};

/// Work of one kind, and what it takes.
struct Spent {
  double amount = 0;     ///< Its units: FLOPs, messages or bytes.
  double seconds = 0;    ///< Processor seconds.
  CurveReading reading;  ///< A cost that was read for it: one outside of what was measured, if there is one.
};

/// What one rank does in a step, as sums over its plan.
struct PlanSeconds {
  Spent products;     ///< FLOPs of Newton–Schulz, each call at the rate for its size.
  Spent messages;     ///< Messages that the rank sends, at α each.
  Spent bytes;        ///< Bytes that it sends, without headers: what messages cost beyond α, by their size.
  Spent elementwise;  ///< Bytes that elementwise work and sums read or write (touched_bytes).
  Spent buffers;      ///< Bytes of new buffers, those of Newton–Schulz included (taken_bytes).

  double seconds() const;
};

/// The bytes that a step reads or writes besides the products of Newton–Schulz: 16 for each element of an elementwise
/// phase (two factors, the result, and what is kept), and 8 for each that a sum over ranks takes in (it, and the sum so
/// far). A count for orientation: what lies in a cache costs less.
double touched_bytes(const Plan& plan);

/// The bytes of all buffers that a step takes; what is there when it begins is not counted.
double taken_bytes(const Plan& plan);

/// The sums over one rank's plan. Throws UsageError for conditions that were not measured.
PlanSeconds plan_seconds(const Plan& plan, const MachineCosts& machine, const StepConditions& conditions);

/// The time of a step of Muonwalk's own ranks on one machine whose cores they share: all processor seconds of all ranks
/// over min(cores, ranks), but never less than those of the rank that has most to do, of which the last term is what is
/// missing. Terms in seconds: "products", "messages", "bytes", "elementwise", "new buffers", "the slowest rank". Throws
/// UsageError for conditions that were not measured, and std::invalid_argument where there is no plan.
std::vector<Term> plan_time(const std::vector<PlanKind>& kinds, const MachineCosts& machine,
                            const StepConditions& conditions);

}  // namespace muonwalk::sim
