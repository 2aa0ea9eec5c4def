#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_threads.hpp"

namespace muonwalk::test {

/// What a test breaks on purpose in a distributed run. An empty hook breaks nothing.
struct Sabotage {
  /// Changes the layout that the ranks are handed; the check keeps the right one.
  std::function<void(Layout&)> layout;
  /// Changes the gradients that a rank hands to full_step.
  std::function<void(int step, const Place&, Buckets& gradients)> gradients;
  /// Changes what a rank keeps after a step; `before` is what it kept before.
  std::function<void(int step, const Place&, const MuonState& before, MuonState& state)> after_step;
  WrapBackend backend;
};

/// What one rank held and moved after one step.
struct Snapshot {
  MuonState state;
  Ledger counted;
};

/// Runs the case on threads, leaf r of the gradients on DP rank r. Result [rank][step].
std::vector<std::vector<Snapshot>> run_distributed(const Case& c, const Sabotage& sabotage = {});

/// What the reference held after one step.
struct SerialSnapshot {
  std::vector<NamedMatrix> weights;
  std::vector<NamedMatrix> momentum;
};

/// Runs the case on SerialMuon with as many leaves as DP ranks and `threads` OpenMP threads. Result [step].
std::vector<SerialSnapshot> run_serial(const Case& c, int threads);

/// Empty when every weight and every momentum shard of every rank equals the serial one in every bit after every step;
/// else one line that names the first difference.
std::string first_difference(const Case& c, const std::vector<std::vector<Snapshot>>& ranks,
                             const std::vector<SerialSnapshot>& serial);

}  // namespace muonwalk::test
