#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "sim/ranks/options.hpp"
#include "sim/ranks/rank.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

struct RunTrace;

/// What a lesson predicts for one rank, before anything is sent.
struct Prediction {
  Ledger ledger;             ///< calls, bytes and messages, line by line
  Index peak_elements = -1;  ///< the most elements that its matrices and flat buffers hold at a time; −1: not predicted
};

/// The compiled part of Lesson<Local>: it starts the ranks, runs steps, prints, compares and counts. Everything that
/// can go wrong ends a program with a sentence on standard error and the exit code of the error's kind; a lesson that
/// was made from Options (a notebook, a test) throws instead.
class LessonCore {
 public:
  /// For a program: reads the command line; `grid` is the lesson's own layout.
  LessonCore(LessonInfo info, const Grid& grid, int argc, char** argv);
  /// For a notebook or a test: no command line, and errors are thrown.
  LessonCore(LessonInfo info, const Options& options);
  ~LessonCore();
  LessonCore(const LessonCore&) = delete;
  LessonCore& operator=(const LessonCore&) = delete;

  /// What was asked for. Valid from the constructor on.
  const Options& options() const { return options_; }
  /// What rank 0 knows.
  RankInfo rank_info() const { return options_.rank_info(0); }
  /// True in the parent; false in a process that is a rank, where what the lines below print is dropped.
  bool is_parent() const;

  /// Runs `plan` before any rank is started, so that a layout that can't work is refused with exit code 2.
  void require(const std::function<void(const RankInfo&)>& plan);

  /// Prints a line; a text of several lines is printed as it is. Not with --verbose 0.
  void say(const std::string& text);

  /// As say, with --verbose 2 alone: what is worth a look, and not needed for the answer.
  void detail(const std::string& text);

  /// What the ranks are going to do. Prints it with --verbose 2; with the option LessonInfo::plans_only or plans_of it
  /// is all that the program prints, which then ends with exit code 0 and without having started a rank.
  void plan(const std::string& text);

  /// Does what `option` asks for in place of the lesson, before any of its ranks is started. A program then ends with
  /// the exit code that `work` returns; a notebook goes on. Refuses options that write a file of the lesson's run,
  /// since there is none.
  void instead(const char* option, const std::function<int()>& work);

  /// What the quiet steps since the last call did, phase by phase: what the ranks moved, and what rank 0 held and said.
  /// Of the first two quiet steps alone. Options::recorded switches it on; else it is empty.
  std::string take_phases();

  /// Compares numbers that the parent has read, by name, with those that they should be. The lesson will
  /// fail when one differs, is missing, or is too many, and where there is nothing to compare with.
  void check_numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected);

  /// One line for all quiet checks (Lesson::quiet_check) since the last such line: whether all of them held, or how
  /// many found a difference. The lesson fails where none was made.
  void sum_up_checks(const std::string& what);

  /// What the ranks recorded so far, in the parent. Throws UsageError where the run is not traced;
  /// LessonInfo::traced switches it on.
  const RunTrace& trace() const;

  /// What the ranks' world has besides what was asked for: hosts, a slower link. To be changed before ranks start.
  WorldSetUp& set_up() { return options_.set_up; }

  /// Runs `work` in the parent and nowhere else; what it throws ends the program as an error of a step does.
  void in_parent(const std::function<void()>& work);

  /// Compares what the prediction says with what the ranks counted since the start, rank by rank, and prints the table;
  /// with `in_one_line`, its sum alone where all is as predicted. The lesson will fail when they differ by one byte,
  /// message or element.
  void cost(const std::function<Prediction(const RankInfo&)>& predict, bool in_one_line = false);

  /// True while every check and every cost so far has held. Only the parent knows: to be asked there
  /// (in_parent, a notebook). A process that is a rank must go on as if they had, so there it throws std::logic_error.
  bool all_equal() const;

  /// Prints how long the phases took (Rank::phase) and the peak memory of a rank, on standard error.
  void timings();

  /// From here on a first Ctrl-C or SIGTERM asks the run to stop, and a sentence on standard error says that it was
  /// heard; a second Ctrl-C ends the program at once, as it otherwise always does (end_on_signals). Before any rank is
  /// started. Where a launcher has started the ranks, or they were started by hand, they share no memory in which they
  /// could be asked: there it changes nothing, and stops() stays false.
  void stop_when_asked();

  /// True when a step has been the last one, because somebody asked and rank 0 decided so in it
  /// (Rank::decide_whether_to_stop). The same in the parent and in every rank, so it may decide what comes
  /// next. A request that comes after the last step with a decision changes nothing.
  bool stops() const;

  /// The end of a run that stops: it has no answer, and its recording and traces are not written. `text`, which says
  /// after which step and how to go on, goes to standard error. Returns the exit code: 3. A rank that is a process ends
  /// here.
  int interrupted(const std::string& text);

  /// The end: prints what to try, the answer, and whether all checks held. Returns the exit code: 0, or 1 when one did
  /// not. With an empty text nothing is printed: the lesson goes on with another layout. A rank that is a process ends
  /// here.
  int answer(const std::string& text);

 protected:
  /// What a rank holds, and what it should hold, as check compares them.
  /// @{
  using Held = std::function<std::vector<NamedMatrix>(Rank&)>;
  using Expected = std::function<std::vector<NamedMatrix>(const RankInfo&)>;
  /// @}
  /// How the outcome is told: LessonChecks::check or quiet_check.
  using Check = void (LessonChecks::*)(const std::string& what, const Comparison& comparison);

  /// The work behind the calls of Lesson<Local> that are named like these.
  /// @{
  void run_step(const std::string& title, const std::function<void(Rank&)>& body);
  void run_quiet_step(const std::string& title, const std::function<void(Rank&)>& body);
  void run_check(Check check, const std::string& what, const Held& held, const Expected& expected);
  std::vector<std::vector<NamedMatrix>> run_collect(const Held& held);
  /// @}
  /// Starts the ranks if they are not there yet.
  void start();

 private:
  struct State;
  void begin(int hosts);
  bool is_agent() const;
  void print(const std::string& line = "");
  StepReports run_on_ranks(const std::string& title, const std::function<void(Rank&)>& body, bool recorded);
  template <class Work>
  void guarded(const Work& work);

  LessonInfo info_;
  Options options_;
  bool program_;
  std::unique_ptr<State> state_;
};

/// A lesson: ranks that each hold a `Local` and go through its steps together. The same calls run on processes and on
/// fibers, because a step is a plain function of a rank and what it holds.
template <class Local>
class Lesson : public LessonCore {
 public:
  /// Takes matrices out of a rank's Local.
  using Held = std::function<std::vector<NamedMatrix>(const RankInfo&, const Local&)>;

  /// As LessonCore: for a program, and for a notebook or a test.
  /// @{
  Lesson(LessonInfo info, const Grid& grid, int argc, char** argv)
      : LessonCore(std::move(info), grid, argc, argv), locals_(static_cast<std::size_t>(options().grid.size())) {}
  Lesson(LessonInfo info, const Options& options)
      : LessonCore(std::move(info), options), locals_(static_cast<std::size_t>(options.grid.size())) {}
  /// @}

  /// Runs `body` on every rank and prints what the ranks show.
  void step(const std::string& title, const std::function<void(Rank&, Local&)>& body) {
    run_step(title, [&](Rank& rank) { body(rank, local(rank.rank())); });
  }

  /// Runs `body` on every rank and prints nothing: a step that is done over and over. The first two are recorded.
  void quiet_step(const std::string& title, const std::function<void(Rank&, Local&)>& body) {
    run_quiet_step(title, [&](Rank& rank) { body(rank, local(rank.rank())); });
  }

  /// Compares what every rank holds, byte by byte, with what `reference` computes for that rank in the parent. `held`
  /// is a member of Local, or a function that takes matrices out of it (Held). The lesson will fail when a bit differs.
  template <class Values, class Reference>
  void check(const std::string& what, const Values& held, const Reference& reference) {
    run_check(&LessonChecks::check, what, held_by(held), [&](const RankInfo& info) { return named(reference(info)); });
  }

  /// A check that is made over and over: it prints nothing while the ranks equal the reference. The first that finds a
  /// difference says so at once, as a check does; sum_up_checks prints one line.
  template <class Values, class Reference>
  void quiet_check(const std::string& what, const Values& held, const Reference& reference) {
    run_check(&LessonChecks::quiet_check, what, held_by(held),
              [&](const RankInfo& info) { return named(reference(info)); });
  }

  /// What every rank holds, as for check, in rank order, in the parent; empty in a process that is a rank.
  template <class Values>
  std::vector<std::vector<NamedMatrix>> collect(const Values& held) {
    return run_collect(held_by(held));
  }

  /// What rank `rank` holds. Only that rank's own process knows it, or, with fibers, everybody.
  Local& local(int rank) { return locals_[static_cast<std::size_t>(rank)]; }

 private:
  template <class Member>
  LessonCore::Held held_by(Member Local::*member) {
    return [this, member](Rank& rank) { return named(local(rank.rank()).*member); };
  }
  LessonCore::Held held_by(const Held& held) {
    return [this, held](Rank& rank) { return held(rank, local(rank.rank())); };
  }

  std::vector<Local> locals_;
};

/// Runs `program` and turns what it throws into a sentence and the exit code of the error's kind: how a lesson's main
/// deals with errors outside of the lesson's own calls.
int exit_code_of(const std::string& name, const std::function<int()>& program);

}  // namespace muonwalk::sim
