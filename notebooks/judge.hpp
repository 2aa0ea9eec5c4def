// What the last cells of a notebook include: the judge of its exercises. Ranks are fibers of the kernel here, so a
// function that crashes takes the kernel with it, and one that never ends has to be interrupted; ./walk try has an
// answer for both.
#pragma once

#include "setup.hpp"
#include "sim/classroom/exercise.hpp"

namespace nb {

/// Loads the judges of a lesson, which lie beside the library that the first cell has loaded. `exercise` is named as in
/// "lesson_05_tp_gather/join_columns".
inline void load_judges(const std::string& exercise) {
  if (dlopen(library_path("libmuonwalk_judge_" + exercise.substr(0, 9).substr(7)).c_str(), RTLD_NOW | RTLD_GLOBAL) ==
      nullptr)
    throw std::runtime_error(std::string("the judges can't be loaded: ") + dlerror() +
                             "; build them with ./walk notebooks --library, and restart the kernel");
}

/// Judges your function and prints what there is to say.
struct Judge {
  std::string exercise;

  template <class Function>
  void operator()(Function* yours) const {
    load_judges(exercise);
    muonwalk::sim::JudgeOptions options;
    options.world = muonwalk::sim::WorldKind::fibers;
    const muonwalk::sim::Verdict verdict = muonwalk::sim::judge(exercise, yours, options);
    for (const std::string& line : verdict.lines) print(line.c_str());
    const std::string outcome = muonwalk::sim::outcome_name(verdict.outcome);
    print((verdict.solved() ? "Solved." : "Not solved yet: " + outcome + ".").c_str());
  }
};

}  // namespace nb

/// Judges the function that stands between its brackets; see NB_FUNCTION.
#define NB_JUDGED(exercise, ...) NB_WRITTEN(__COUNTER__, nb::Judge{exercise}, __VA_ARGS__)
