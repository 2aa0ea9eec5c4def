#pragma once

#include <vector>

#include "sim/cluster/lesson.hpp"
#include "sim/lesson_10/hunt.hpp"
#include "sim/lesson_10/toy_training.hpp"
#include "sim/terminal/terminal.hpp"

namespace muonwalk::sim {

/// The training of lesson 10, as the hunt needs it: its steps, and what can be asked of it.
template <class Local>
struct HuntedTraining {
  /// A step on a rank.
  using Step = void (*)(Rank&, Local&);
  /// What a rank tells.
  using Told = std::vector<NamedMatrix> (*)(const Seat&, const Local&);
  /// The steps from the first optimizer step on.
  struct Steps {
    Step train;        ///< an optimizer step
    Step pause;        ///< before the last of them
    Step write_diary;  ///< in the end
  };
  /// What there is, and what there should be.
  struct Questions {
    Told held;                                          ///< weights; none before they are made
    Told told;                                          ///< Diary::told
    std::vector<NamedMatrix> (*expected)(const Seat&);  ///< the weights in the end
    Prediction (*predict)(const Seat&);                 ///< all traffic
    Plan (*plan)(const Seat&);                          ///< an optimizer step
    ToyTraining (*data)(const Seat&);                   ///< which knows the loss
  };

  std::vector<Step> prepare;  ///< before the first optimizer step
  Steps steps;                ///< those that follow
  Questions ask;              ///< on a rank, or in the process that prints
  int optimizer_steps = 0;    ///< how many
};

/// Adds the loss of what the ranks hold now, in the process that prints, unless they hold nothing yet, or have ended.
template <class Local>
void note_loss(Lesson<Local>& lesson, const HuntedTraining<Local>& training, std::vector<double>& losses) {
  const auto weights = lesson.collect(training.ask.held), diaries = lesson.collect(training.ask.told);
  lesson.in_parent([&] {
    const bool ended = !diaries[0][0].name.empty();
    if (!weights[0].empty() && !ended)
      losses.push_back(training.ask.data(lesson.seat()).loss(lesson.options().grid, weights));
  });
}

/// Trains with a bug and without a word.
template <class Local>
Observed observe(const LessonInfo& info, Options options, const HuntedTraining<Local>& training, const std::string& bug,
                 bool with_pause) {
  options.verbose = 0;
  options.bug = bug;
  Lesson<Local> lesson(info, options);
  Observed observed;
  for (const auto step : training.prepare) lesson.quiet_step("prepare", step);
  note_loss(lesson, training, observed.losses);
  observed.first = lesson.collect(training.ask.held);
  for (int step = 1; step <= training.optimizer_steps; ++step) {
    if (with_pause && step == training.optimizer_steps)
      lesson.quiet_step("checkpoint and resume", training.steps.pause);
    lesson.quiet_step("train", training.steps.train);
    note_loss(lesson, training, observed.losses);
  }
  lesson.quiet_step("write the diary", training.steps.write_diary);
  observed.last = lesson.collect(training.ask.held);
  observed.diaries = lesson.collect(training.ask.told);
  lesson.answer("");  // a rank that is a process ends here
  return observed;
}

/// Trains twice, with a pause and without one, and finds out.
template <class Local>
Findings investigate(const LessonInfo& info, const Options& options, const HuntedTraining<Local>& training,
                     const std::string& bug) {
  HeldMatrices expected;
  Amounts planned;
  for (int rank = 0; rank < options.grid.size(); ++rank) {
    const Seat seat = options.seat(rank);
    expected.push_back(training.ask.expected(seat));
    planned.add(training.ask.predict(seat).ledger);
    planned.add(training.ask.plan(seat), training.ask.data(seat).parameters(), training.optimizer_steps);
  }
  return findings_of(observe(info, options, training, bug, true), observe(info, options, training, bug, false),
                     expected, planned);
}

/// Where a mystery was asked for, hunts in place of the lesson: prints symptoms, evidence and verdict; what a wrong
/// suspect would have shown is found out as well. A program ends then, with 0, or with 1 for a wrong suspect. Refuses
/// what Hunt::require_sensible does.
template <class Local>
void go_hunting(const Hunt& hunt, const LessonInfo& info, Lesson<Local>& lesson,
                const HuntedTraining<Local>& training) {
  const Options& options = lesson.options();
  lesson.require([&](const Seat&) { hunt.require_sensible(info, options); });
  if (!hunt.on()) return;
  lesson.instead("--mystery", [&] {
    const Findings findings = investigate(info, options, training, hunt.bug());
    const Findings of_suspect = hunt.right() ? Findings() : investigate(info, options, training, hunt.suspect);
    for (const std::string& line : hunt.report(info, options, findings, of_suspect)) print_line(line);
    return hunt.right() ? 0 : 1;
  });
}

}  // namespace muonwalk::sim
