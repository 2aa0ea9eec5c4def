#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/classroom/recording_builder.hpp"
#include "sim/classroom/tracer.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/interruptible_work.hpp"
#include "sim/terminal/terminal.hpp"

namespace muonwalk::sim {

/// What lesson.cpp and lesson_checks.cpp share: the ranks of a lesson, and how it went so far.
struct LessonCore::State {
  std::unique_ptr<RecordingBuilder> recording;                ///< in the parent, with --record
  std::unique_ptr<Tracer> tracer;                             ///< in the parent, where the run is traced
  std::vector<std::pair<std::string, std::string>> pictures;  ///< the lesson's own, by name
  std::string phases_told;                                    ///< what quiet steps did since take_phases
  int quiet_steps = 0;                                        ///< that have run
  std::unique_ptr<World> world;                               ///< the ranks; none before the first step
  Paint paint;                                                ///< colours for the terminal
  int steps = 0;                                              ///< that have run and printed
  int checks = 0;                                             ///< that were made
  int failed_checks = 0;                                      ///< of these, how many found a difference
  int quiet_checks = 0;                                       ///< since the last sum_up_checks
  int failed_quiet_checks = 0;                                ///< of these, how many found a difference
  Comparison quiet_comparison;                           ///< all of them; the first difference is that of the first one
  std::vector<std::string> phases;                       ///< in order of first use
  std::map<std::string, std::map<int, double>> seconds;  ///< [phase][rank]
  long peak_kilobytes = 0;                               ///< of the rank that held most
};

// Runs a piece of the lesson. In a program, an error ends it here with its sentence and its code, and no rank is left.
template <class Work>
void LessonCore::guarded(const Work& work) {
  if (!program_) {
    const InterruptibleWork interruptible;
    work();
    return InterruptibleWork::end_if_asked();
  }
  bool done = false;
  const int code = exit_code_of(info_.name, [&] {
    work();
    done = true;
    return 0;
  });
  if (done) return;
  LaunchedRun::ends_with(code);
  state_->world.reset();
  std::exit(code);
}

}  // namespace muonwalk::sim
