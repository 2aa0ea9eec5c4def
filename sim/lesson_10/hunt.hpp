#pragma once

#include <string>
#include <vector>

#include "sim/lesson_10/findings.hpp"
#include "sim/world/options.hpp"

namespace muonwalk::sim {

/// The hunt of lesson 10, as its options say it: a numbered mystery is a training with one of the lesson's bugs in it.
/// The hunter sees what it showed, asks for evidence, and names a suspect.
struct Hunt {
  std::string mystery;   ///< --mystery
  std::string suspect;   ///< --suspect
  std::string evidence;  ///< --evidence
  bool reveal = false;   ///< --reveal

  /// These options, for LessonInfo::options. They write into this struct.
  std::vector<LessonOption> options();
  /// A mystery was asked for.
  bool on() const { return !mystery.empty(); }
  /// Throws UsageError for a mystery, a suspect or a kind of evidence that there is not, for what goes with a mystery
  /// only, and for what goes against one: --bug, another grid, and files of recordings or traces.
  void require_sensible(const LessonInfo& info, const Options& options) const;
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
