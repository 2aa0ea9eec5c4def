#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/world/rank.hpp"
#include "src/comm/ledger.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk::sim {

/// A program ends here, as one with a bug does: the words say why.
struct ProgramEnds : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What one rank notes of a training, for the hunt.
struct Diary {
  std::string last_words;                    ///< of a program that has ended
  std::map<std::string, int> newton_schulz;  ///< how often, by call_name
  Ledger sent;                               ///< what the rank has sent

  /// The program ends here, or waits forever, and the rank says why. It must take no further step.
  void end(Rank& rank, const std::string& words);
  /// There are last words.
  bool ended() const { return !last_words.empty(); }
  /// Counts the calls of Newton–Schulz of a step. Throws ProgramEnds for a matrix that comes in one dimension. The
  /// diary must outlive the step.
  StepObserver observer();
  /// All of it as matrices with names: last words and nothing; calls of Newton–Schulz; a line's calls and bytes.
  std::vector<NamedMatrix> told() const;
};

/// The names of what is counted: "all_gather over tp", and "w_query as 8 × 8" for a call of Newton–Schulz.
/// @{
std::string line_name(const LedgerLine& line);
std::string call_name(const std::string& parameter, Shape shape);
/// @}

}  // namespace muonwalk::sim
