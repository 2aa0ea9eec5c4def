#include "sim/classroom/lesson.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sim/classroom/comparison.hpp"
#include "sim/classroom/cost_table.hpp"
#include "sim/classroom/run_files.hpp"
#include "sim/classroom/step_lines.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/ranks/launched_process.hpp"
#include "sim/ranks/rank_groups.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/progress_line.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/layout/grid.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// "05" and "TP gather" as "Lesson 05 · TP gather".
std::string heading(const LessonInfo& info) {
  const std::string number = lesson_number(info);
  return number.empty() ? info.title : fmt::format("Lesson {} · {}", number, info.title);
}

// A phase of a quiet step as a step prints it: what all ranks moved, and what rank 0 held and said then. Nothing of a
// phase in which there was neither.
std::string phase_text(const Grid& grid, PhaseRecords phase) {
  std::vector<std::string> lines = moved_lines(phase.reports, true);
  StepReports of_rank_0(phase.reports.size());
  of_rank_0[0] = std::move(phase.reports[0]);
  append(lines, step_lines(grid, of_rank_0, false));
  return lines.empty() ? "" : fmt::format("{}\n{}\n", phase.title, fmt::join(lines, "\n"));
}

// `launched` where the line is to tell of a launch, which is over `hosts` hosts.
std::string world_text(const Options& options, bool launched, int hosts) {
  constexpr const char* kOverWhat[] = {"over Gloo", "through memory", "over NCCL"};  // [TransportKind]
  const int ranks = options.grid.size();
  const bool fibers = options.world == WorldKind::fibers;
  return fmt::format("{} · {} {}{} {}{} · {}", options.grid.text(), ranks,
                     fibers ? (ranks == 1 ? "fiber" : "fibers") : (ranks == 1 ? "process" : "processes"),
                     launched && hosts > 1 ? fmt::format(" on {} hosts", hosts) : "",
                     kOverWhat[static_cast<int>(options.talks_over())],
                     launched ? ", started by " + options.launch->launcher : "", precision_name(options.precision));
}

// What the lessons of this program have done so far: there are several where it goes on with another layout.
struct Program {
  FilesBeside files;                // of one layout; those of another one would take their place
  bool has_failed = false;          // a check of any layout found a difference
  bool has_told_of_launch = false;  // its first line says who has started it
} program;

// Quiet steps are done over and over. Of those that prepare and those that repeat, the first one tells the story.
constexpr int kRecordedQuietSteps = 2;

// Where ranks that are processes have more OpenMP threads together than the machine has cores, starts the program anew
// with OMP_WAIT_POLICY=passive, unless the reader has set that variable: threads that wait for each other then sleep.
// Otherwise they spin and keep the core from the thread they wait for, which makes a run many times slower. OpenMP
// reads the variable when a program is loaded and never again; hence the new start.
void let_idle_threads_sleep(const Options& options, char** argv) {
  const int threads = options.threads_per_rank();
  const bool crowded = threads > 1 && static_cast<unsigned>(threads * options.ranks_on_this_host()) >
                                          std::thread::hardware_concurrency();
  // Ranks that are fibers compute one at a time.
  if (!crowded || options.world != WorldKind::processes || getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // returns only where that is not possible; then it is slow, and right
}

}  // namespace

// The ranks of a lesson, and how it went so far.
struct LessonCore::State {
  explicit State(LessonCore& lesson)
      : checks(lesson.options_.grid, [this, &lesson](const std::string& line) {
          const bool first = !std::exchange(checked, true);
          if (first && lesson.options_.verbose > 0 && steps > 0) lesson.print();
          lesson.print(line);
        }) {}

  std::unique_ptr<World> world;  // the ranks; none before the first step
  RunFiles files;
  LessonChecks checks;
  bool checked = false;                                  // a check has printed a line
  Paint paint;                                           // colours for the terminal
  int steps = 0;                                         // printed steps so far
  int quiet_steps = 0;                                   // steps so far that printed nothing
  std::string phases_told;                               // what quiet steps did since take_phases
  std::vector<std::string> phases;                       // in order of first use
  std::map<std::string, std::map<int, double>> seconds;  // [phase][rank]
  long peak_kilobytes = 0;                               // of the rank that held most
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
  end_launched(code);
  state_->world.reset();
  std::exit(code);
}

int exit_code_of(const std::string& name, const std::function<int()>& program) {
  try {
    return program();
  } catch (const UsageError& error) {
    if (tells_refusals()) print_error_line(fmt::format("{}: {}", name, error.what()));
    hand_refusal_on(error.what());
    return 2;
  } catch (const std::exception& error) {
    print_error_line(fmt::format("{}: {}", name, error_text(error)));
    return 3;
  } catch (...) {
    print_error_line(fmt::format("{}: {}", name, kUnknownError));
    return 3;
  }
}

LessonCore::LessonCore(LessonInfo info, const Grid& grid, int argc, char** argv)
    : info_(std::move(info)), program_(true), state_(std::make_unique<State>(*this)) {
  options_.grid = grid;
  reset_inherited_signals();
  guarded([&] {
    open_standard_files();
    speak_only_as_rank_0(argc, argv);
    if (!parse_options(info_, argc, argv, options_)) {
      finish_output();
      std::exit(0);
    }
    if (!program.files.empty()) options_.record_file = options_.trace_file = "";
    require_transport(info_, options_);
    let_idle_threads_sleep(options_, argv);
    show_progress(options_.verbose > 0);
    handle_interrupts(info_.name);
    if (is_agent() && !options_.launch->by_hand) end_without_a_word();
    options_.set_up.traced = info_.traced;
    options_.set_up.groups = info_.groups;
  });
  if (!is_agent()) state_->files = RunFiles(info_, options_);  // the parent records and traces
}

LessonCore::LessonCore(LessonInfo info, const Options& options)
    : info_(std::move(info)), options_(options), program_(false), state_(std::make_unique<State>(*this)) {
  require_valid(info_, options_);
  require_transport(info_, options_);
  options_.set_up.traced = options_.set_up.traced || info_.traced;
  options_.set_up.groups = info_.groups;
  state_->files = RunFiles(info_, options_);
}

LessonCore::~LessonCore() {
  if (options_.set_up.stops) take_no_requests(options_.set_up.stops->asked());
}

bool LessonCore::is_agent() const { return options_.launch && options_.launch->rank != 0; }

bool LessonCore::is_parent() const { return state_->world == nullptr || state_->world->is_parent(); }

void LessonCore::require(const std::function<void(const RankInfo&)>& plan) {
  guarded([&] { plan(rank_info()); });
}

void LessonCore::print(const std::string& line) {
  print_line(line);
  if (state_->files.recording != nullptr) state_->files.recording->line(line);
}

void LessonCore::begin(int hosts) {
  const bool launched = options_.launch && !std::exchange(program.has_told_of_launch, true);
  const std::string first = left_and_right(state_->paint.bold(heading(info_)), world_text(options_, launched, hosts));
  if (state_->files.recording != nullptr) state_->files.recording->heading(first);
  if (options_.verbose == 0) return;
  print(first);
  if (!info_.question.empty()) {
    for (const std::string& line : wrap_text("Question: " + info_.question, 10)) print(line);
    print(fmt::format("Read:     lessons/{0}/{0}.cpp", info_.name));
  }
  print();
}

void LessonCore::start() {
  if (state_->world != nullptr) return;
  int hosts = 1;
  guarded([&] {
    if (options_.set_up.link && options_.transport == TransportKind::nccl)
      throw UsageError("a slower link can't be made of NCCL, which moves bytes by itself; leave --transport nccl out");
    if (options_.talks_over() != TransportKind::gloo) options_.set_up.host_of_rank.clear();
    hosts = meet_launched(options_, info_.name);
    if (is_agent()) return;
    try {
      require_writable(options_);
    } catch (const UsageError& error) {
      if (options_.launch) refuse_launched(error.what());
      throw;
    }
  });
  begin(hosts);
  if (state_->files.tracer != nullptr) state_->files.tracer->begin();
  guarded([&] { state_->world = start_world(options_); });
}

void LessonCore::say(const std::string& text) {
  start();
  if (is_parent() && options_.verbose > 0) print(text);
}

void LessonCore::detail(const std::string& text) {
  if (options_.verbose > 1) say(text);
}

void LessonCore::plan(const std::string& text) {
  if (!plans_only(info_)) return detail(text);
  guarded([&] {
    print_line(text);
    finish_output();
  });
  if (program_) std::exit(0);
}

void LessonCore::instead(const char* option, const std::function<int()>& work) {
  int code = 0;
  guarded([&] {
    require_no_files(options_, option);
    if (!is_agent()) {
      options_.launch.reset();  // what it runs are runs of its own
      code = work();
    }
    finish_output();
  });
  if (program_) std::exit(code);
}

// Runs a step of the lesson and keeps the times of its phases.
StepReports LessonCore::run_on_ranks(const std::string& title, const std::function<void(Rank&)>& body, bool recorded) {
  start();
  StepReports reports;
  const auto recorded_body = [&body](Rank& rank) {
    rank.start_recording();
    body(rank);
  };
  guarded([&] { reports = recorded ? state_->world->step(title, recorded_body) : state_->world->step(title, body); });
  if (state_->files.tracer != nullptr)
    state_->files.tracer->step(reports);  // in a process that is a rank there are none
  for_each<PhaseEnded>(reports, [&](int rank, const PhaseEnded& phase) {
    if (state_->seconds.count(phase.name) == 0) state_->phases.push_back(phase.name);
    state_->seconds[phase.name][rank] += phase.seconds;
  });
  return reports;
}

void LessonCore::run_step(const std::string& title, const std::function<void(Rank&)>& body) {
  auto reports = run_on_ranks(title, body, options_.recording());
  ++state_->steps;
  if (!is_parent()) return;
  if (state_->files.recording != nullptr) state_->files.recording->step(title, reports);
  if (options_.verbose == 0) return;
  print(state_->paint.bold(fmt::format("step {} · {}", state_->steps, title)));
  for (const std::string& line : moved_lines(reports, options_.verbose >= 2)) print(line);
  for (const std::string& line : step_lines(options_.grid, reports, options_.verbose >= 2)) print(line);
  if (state_->files.recording != nullptr) state_->files.recording->step_printed();
  std::fflush(stdout);
}

void LessonCore::run_quiet_step(const std::string& title, const std::function<void(Rank&)>& body) {
  const bool recorded = options_.recording() && state_->quiet_steps++ < kRecordedQuietSteps;
  auto reports = run_on_ranks(title, body, recorded);
  if (!recorded || !is_parent()) return;
  for (PhaseRecords& phase : phases_of(title, std::move(reports))) {
    if (state_->files.recording != nullptr) state_->files.recording->step(phase.title, phase.reports);
    if (options_.set_up.recorded) state_->phases_told += phase_text(options_.grid, std::move(phase));
  }
}

std::string LessonCore::take_phases() { return std::exchange(state_->phases_told, ""); }

const RunTrace& LessonCore::trace() const {
  if (state_->files.tracer == nullptr)
    throw UsageError(
        "there is no trace, because the run was not traced; set `traced` in the LessonInfo of the lesson to true");
  return state_->files.tracer->run();
}

void LessonCore::in_parent(const std::function<void()>& work) {
  if (is_parent()) guarded(work);
}

void LessonCore::stop_when_asked() {
  if (state_->world != nullptr)
    throw std::logic_error("a lesson stops when asked from before its first step, or not at all");
  if (options_.launch || options_.set_up.stops) return;
  guarded([&] { options_.set_up.stops = std::make_shared<StopRequest>(); });
  if (program_)  // a notebook has signals of its own
    take_requests(options_.set_up.stops->asked(), info_.name + ": stopping after this step; Ctrl-C again ends at once");
}

bool LessonCore::stops() const {
  return options_.set_up.stops && state_->world != nullptr &&
         options_.set_up.stops->stops_after(state_->world->steps());
}

int LessonCore::interrupted(const std::string& text) {
  start();
  if (!is_parent()) {
    state_->world.reset();
    return 3;
  }
  guarded([&] {
    state_->world->finish();
    state_->world.reset();
    finish_output();
    print_error_line(fmt::format("{}: {}", info_.name, text));
  });
  return 3;
}

int LessonCore::answer(const std::string& text) {
  start();
  program.has_failed = program_ && (program.has_failed || !state_->checks.all_equal());
  const bool ok = state_->checks.all_equal() && !program.has_failed;
  if (!is_parent()) {
    state_->world.reset();  // a rank that is a process ends here: what main does after the answer is not its business
    return ok ? 0 : 1;
  }
  guarded([&] {
    if (options_.fault.kind != Fault::Kind::none && options_.fault.step > state_->world->steps())
      throw UsageError(fmt::format("--fault names step {}, but this run has only the steps 0 (the rendezvous) to {}",
                                   options_.fault.step, state_->world->steps()));
    std::vector<std::string> last;
    if (!text.empty() && options_.verbose > 0) {
      std::vector<std::string> tries;
      for (const Bug& bug : info_.bugs) tries.push_back("--bug " + bug.name);
      tries.insert(tries.end(), info_.also_try.begin(), info_.also_try.end());
      append(last, wrap_items("try     ", tries));
      append(last, wrap_text("Answer: " + text, 8));
    }
    if (!text.empty())
      last.push_back(ok ? fmt::format("{}: {}", info_.name, state_->paint.good("OK"))
                        : fmt::format("{}: {}", info_.name, state_->paint.bad("FAILED")));
    state_->world->finish();
    state_->world.reset();
    // "OK" is the last word, and only when nothing is left to go wrong.
    if (state_->files.recording != nullptr)
      for (const std::string& line : last) state_->files.recording->line(line);
    // Files take their places at the end of the program, and from there on no signal ends it: either all of them are
    // there, or it is said that nothing was left behind.
    write_or_fail([&] {
      FilesBeside files;
      if (program_) files.swap(program.files);
      state_->files.write(options_, ok, files);
      if (program_ && text.empty()) return program.files.swap(files);
      FileBeside::commit_together(files);
      if (program_ && !files.empty()) ignore_end_signals();
    });
    for (const std::string& line : last) print_line(line);
    finish_output();
  });
  return ok ? 0 : 1;
}

std::vector<std::vector<NamedMatrix>> LessonCore::run_collect(const Held& held) {
  start();
  std::vector<std::vector<NamedMatrix>> collected;
  guarded([&] {
    StepReports reports = state_->world->hand_over("hand over results", [&](Rank& rank) {
      MemoryMeter uncounted;  // copies for the check do not count as the lesson's memory
      const MeterScope scope(uncounted);
      for (NamedMatrix& matrix : held(rank)) rank.add(std::move(matrix));
    });
    for (auto& of_rank : reports) {
      collected.emplace_back();
      for (Report& report : of_rank)
        if (auto* matrix = std::get_if<NamedMatrix>(&report)) collected.back().push_back(std::move(*matrix));
    }
  });
  return collected;
}

// Compares what every rank holds with what it should hold.
void LessonCore::run_check(Check check, const std::string& what, const Held& held, const Expected& expected) {
  auto collected = run_collect(held);
  if (!is_parent()) return;
  Comparison comparison;
  const auto in_words =
      [&](std::vector<NamedMatrix> matrices) {  // what has no name of its own is called as the check is
        for (NamedMatrix& matrix : matrices)
          if (matrix.name.empty()) matrix.name = what;
        return matrices;
      };
  guarded([&] {
    for (std::size_t rank = 0; rank < collected.size(); ++rank)
      compare(rank_label(options_.grid, static_cast<int>(rank)), in_words(std::move(collected[rank])),
              in_words(expected(options_.rank_info(static_cast<int>(rank)))), comparison);
  });
  if (comparison.elements == 0 && comparison.first.empty())
    comparison.first = {"there was nothing to compare: neither the ranks nor the reference hold an element"};
  (state_->checks.*check)(what, comparison);
}

void LessonCore::sum_up_checks(const std::string& what) {
  start();
  if (is_parent()) state_->checks.sum_up(what);
}

void LessonCore::check_numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected) {
  start();
  if (is_parent()) state_->checks.numbers(what, read, expected);
}

void LessonCore::cost(const std::function<Prediction(const RankInfo&)>& predict, bool in_one_line) {
  start();
  std::vector<RankCost> costs;
  guarded([&] {
    const auto reports = state_->world->hand_over("count", [&](Rank& rank) {
      RankGroups& groups = rank.groups();
      RankCost cost;
      cost.counted = groups.ledger;
      cost.counted_peak = groups.memory.peak();
      cost.header_sent = groups.header_bytes_sent();
      if (options_.world == WorldKind::processes) {
        cost.kernel_sent = groups.kernel_bytes_sent();
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        cost.kilobytes = usage.ru_maxrss;
      }
      rank.add(std::move(cost));
    });
    for_each<RankCost>(reports, [&](int rank, const RankCost& cost) {
      costs.push_back(cost);
      const Prediction prediction = predict(options_.rank_info(rank));
      costs.back().predicted = prediction.ledger;
      costs.back().predicted_peak = prediction.peak_elements;
      state_->peak_kilobytes = std::max(state_->peak_kilobytes, cost.kilobytes);
    });
  });
  if (!is_parent()) return;
  CostTable table = cost_table(
      costs, options_.transport == TransportKind::nccl ? "NCCL's bytes pass its sockets by" : "", options_.verbose > 1);
  if (in_one_line && table.equal && options_.verbose == 1) table.lines = {table.sum};
  if (options_.verbose > 0 || !table.equal)
    for (std::size_t i = 0; i < table.lines.size(); ++i) print((i == 0 ? "cost  " : "      ") + table.lines[i]);
  if (!table.equal) state_->checks.fail();
}

bool LessonCore::all_equal() const {
  if (!is_parent()) throw std::logic_error("a rank asked how the checks went, which only the parent knows");
  return state_->checks.all_equal();
}

void LessonCore::timings() {
  if (!is_parent() || options_.verbose == 0) return;
  print_error_line(fmt::format("{}: measured on this machine, seconds per rank", info_.name));
  print_error_line(fmt::format("  {:<32}{:>10}{:>10}", "phase", "mean", "most"));
  for (const std::string& phase : state_->phases) {
    double sum = 0, most = 0;
    for (const auto& [rank, seconds] : state_->seconds[phase]) {
      sum += seconds;
      most = std::max(most, seconds);
    }
    print_error_line(
        fmt::format("  {}{:>10.3f}{:>10.3f}", pad_right(phase + " ", 32), sum / options_.grid.size(), most));
  }
  // Ranks that are fibers share the memory of one process, in a notebook with its kernel.
  if (state_->peak_kilobytes > 0 && options_.world == WorldKind::processes)
    print_error_line(fmt::format("  {:<32}{:>16.1f} MiB", "peak memory of a rank",
                                 static_cast<double>(state_->peak_kilobytes) / 1024));
}

}  // namespace muonwalk::sim
