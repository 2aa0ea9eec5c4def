#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/optim/strategies/strategy.hpp"
#include "tools/check/verdict.hpp"
#include "tools/trace/event.hpp"

namespace muonwalk::check {

/// What a program means to do in a step: how Muon is distributed, of which matrices, over which ranks.
struct MeantStep {
  Strategy strategy;
  std::vector<Parameter> matrices;
  Grid grid;
  Index bucket = 0;  ///< Elements of a full bucket; 0: one bucket for all.
  MuonSettings settings = {};
  bool reduced_before = false;  ///< Gradients are reduced before the step, and not in it.
  int weight_bytes = 4;         ///< Of an element of the new weights as they travel; 0: not in the step.
  int steps = 0;                ///< How many a trace has; 0: as many as it has ranges of the optimizer.
};

/// Matrices as a command line lists them: "4096x1024", ROWS x COLS; behind that ":rows" or ":columns" where tp cuts
/// them, and "*24" where there are as many. Throws UsageError, a sentence with an example.
std::vector<Parameter> matrices_of(const std::vector<std::string>& words);

/// Holds the calls of the optimizer's steps in traces of a run, one file per rank or one for all, against the plan: of
/// each rank how often it calls each collective, with how many bytes, and how often Newton–Schulz. What is counted lies
/// in the ranges of the optimizer's steps, or anywhere in a trace that has none; Newton–Schulz counts anywhere. Where
/// no gradient is reduced there, the plan has no reduction either. What differs is named where it is the plan of
/// another strategy, a step for each micro-batch, a wider type, padding, or a norm beside the plan. Returns the
/// verdict, whose parameters are the calls of each rank, and what is printed. Throws UsageError where there is no
/// collective, a rank that the grid has not, or no number of steps.
std::pair<DumpVerdict, std::vector<std::string>> check_trace(const std::vector<sim::TraceFile>& files,
                                                             const MeantStep& meant);

}  // namespace muonwalk::check
