#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/options.hpp"
#include "src/comm/ledger.hpp"
#include "src/optim/muon_settings.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// What is counted has a name: "all_gather over tp", and "w_query as 8 × 8" for a call of Newton–Schulz.
/// @{
std::string line_name(const LedgerLine& line);
std::string call_name(const std::string& parameter, Shape shape);
/// @}

/// How often something was done, and how many bytes were sent for it, added up over all ranks.
struct Amounts {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> traffic;  ///< Calls and bytes, by line_name.
  std::map<std::string, std::int64_t> newton_schulz;                     ///< Calls, by call_name.

  void add(const Ledger& ledger);
  /// The calls of Newton–Schulz of a plan, for as many steps.
  void add(const Plan& plan, const std::vector<Parameter>& parameters, int steps);
};

/// Matrices as all ranks hold them: [rank][matrix].
using HeldMatrices = std::vector<std::vector<NamedMatrix>>;

/// What was seen of one training with a bug in it.
struct Observed {
  std::vector<double> losses;  ///< Before the first step and after each.
  HeldMatrices first;          ///< Weights before the first step.
  HeldMatrices last;           ///< Weights in the end.
  HeldMatrices diaries;        ///< Last words; 1 × 1 for calls of Newton–Schulz; 1 × 2 for calls and bytes.
};

/// One thing that evidence looks at: "w_query", what a training without a bug has there, and what this one has.
struct EvidenceRow {
  std::string what, should, is;

  /// Two that differ are a trace of the bug.
  bool suspicious() const { return should != is; }
  friend bool operator==(const EvidenceRow& a, const EvidenceRow& b) {
    return a.what == b.what && a.should == b.should && a.is == b.is;
  }
};

/// Everything that can be found out about a bug.
struct Findings {
  std::string ended;           ///< The last words of rank 0; empty where it came to its end.
  std::vector<double> losses;  ///< Before the first step and after each.
  std::map<std::string, std::vector<EvidenceRow>> evidence;  ///< By its kind; none where it ended early.
};

/// Sets a training with a pause in it and one without beside what the ranks should hold in the end and do meanwhile.
Findings findings_of(const Observed& with_pause, const Observed& without_pause, const HeldMatrices& expected,
                     const Amounts& planned);

/// "loss 2.00 → 1.81 → 1.63: it falls in every step"; empty where there is none.
std::string loss_text(const std::vector<double>& losses);

/// The hunt of lesson 10, as its options say it: a numbered mystery is a training with one of the lesson's bugs in it.
/// The hunter sees what it showed, asks for evidence, and names a suspect.
struct Hunt {
  std::string mystery;             ///< --mystery
  std::string suspect;             ///< --suspect
  std::vector<std::string> asked;  ///< --evidence
  std::string evidence;            ///< Of that the one kind, once require_sensible has seen it.
  bool reveal = false;             ///< --reveal

  /// These options, for LessonInfo::options. They write into this struct.
  std::vector<LessonOption> options();
  /// A mystery was asked for.
  bool on() const { return !mystery.empty(); }
  /// Throws UsageError for a mystery, a suspect or a kind of evidence that there is not, for what goes with a mystery
  /// only, and for what goes against one: a second kind, --bug, another grid, and files of recordings or traces.
  void require_sensible(const LessonInfo& info, const Options& options);
  /// The bug behind the mystery.
  std::string bug() const;
  /// The suspect is the culprit, or none was named.
  bool right() const { return suspect.empty() || suspect == bug(); }

  /// What the hunter gets to see: the symptoms; the evidence asked for; and, where the suspect is right or the reader
  /// wants to know, the reveal. `of_suspect`: what a training with the suspect's bug would have shown; it says why a
  /// wrong one can't be it, without saying who it was. With --verbose 0 the last line alone.
  std::vector<std::string> report(const LessonInfo& info, const Options& options, const Findings& findings,
                                  const Findings& of_suspect) const;
};

}  // namespace muonwalk::sim
