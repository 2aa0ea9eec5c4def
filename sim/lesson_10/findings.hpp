#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/optim/muon_settings.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// One thing that evidence looks at.
struct EvidenceRow {
  std::string what;    ///< "w_query", "all_gather over tp"
  std::string should;  ///< what a training without a bug has there
  std::string is;      ///< what this one has

  /// Two that differ are a trace of the bug.
  bool suspicious() const { return should != is; }
  /// All members are equal.
  friend bool operator==(const EvidenceRow& a, const EvidenceRow& b) {
    return a.what == b.what && a.should == b.should && a.is == b.is;
  }
};

/// The kinds of evidence that can be asked for: "bits", "bytes", "resume", "newton-schulz-calls".
const std::vector<std::string>& evidence_kinds();

/// How often something was done, and how many bytes were sent for it, by its name, added up over all ranks.
struct Amounts {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> traffic;  ///< calls and bytes, by line_name
  std::map<std::string, std::int64_t> newton_schulz;                     ///< calls, by call_name

  /// The lines of a ledger, and the calls of Newton–Schulz of a plan, as often as there are steps.
  /// @{
  void add(const Ledger& ledger);
  void add(const Plan& plan, const std::vector<Parameter>& parameters, int steps);
  /// @}
};

/// Matrices as all ranks hold them: [rank][matrix].
using HeldMatrices = std::vector<std::vector<NamedMatrix>>;

/// What was seen of one training with a bug in it.
struct Observed {
  std::vector<double> losses;  ///< before the first step and after each
  HeldMatrices first;          ///< weights before the first step
  HeldMatrices last;           ///< weights in the end
  HeldMatrices diaries;        ///< what each rank's Diary tells
};

/// Everything that can be found out about a bug.
struct Findings {
  std::string ended;                                         ///< the last words of rank 0; empty: it came to its end
  std::vector<double> losses;                                ///< before the first step and after each
  std::map<std::string, std::vector<EvidenceRow>> evidence;  ///< by its kind; nothing where it ended early
};

/// Finds out: from a training with a pause in it and one without, beside what the ranks should hold in the end and do
/// meanwhile.
Findings findings_of(const Observed& with_pause, const Observed& without_pause, const HeldMatrices& expected,
                     const Amounts& planned);

}  // namespace muonwalk::sim
