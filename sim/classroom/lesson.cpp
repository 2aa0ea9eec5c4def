#include "sim/classroom/lesson.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sim/classroom/lesson_state.hpp"
#include "sim/classroom/step_lines.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/ranks/launched_process.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/openmp_environment.hpp"
#include "sim/ranks/stop_request.hpp"
#include "sim/terminal/error_text.hpp"
#include "sim/terminal/inherited_signals.hpp"
#include "sim/terminal/progress_line.hpp"
#include "sim/terminal/terminal.hpp"
#include "sim/terminal/write_or_fail.hpp"
#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "src/layout/grid.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// "05" and "TP gather" as "Lesson 05 · TP gather".
std::string heading(const LessonInfo& info) {
  const std::string number = lesson_number(info);
  return number.empty() ? info.title : fmt::format("Lesson {} · {}", number, info.title);
}

// Refuses files of a run that does not come about, because `option` asks for something in its place.
void require_no_files(const Options& options, const char* option) {
  for (const auto& [file_option, path] : {std::pair("--record", &options.record_file),
                                          {"--svg", &options.svg_path},
                                          {"--trace", &options.trace_file},
                                          {"--trace-per-rank", &options.trace_folder}})
    if (!path->empty())
      throw UsageError(
          fmt::format("{} writes a file of the lesson's run, and {} does something else in its place; leave "
                      "one of them out.",
                      file_option, option));
}

// Throws UsageError when a file that was asked for can't be written where it should be, before any rank is started;
// makes the folders of pictures and traces if there are none.
void require_writable(const Options& options) {
  if (!options.record_file.empty()) FileBeside(options.record_file);
  const std::string& svg = options.svg_path;
  const bool folder = !svg.empty() && svg.back() == '/';
  if (folder) make_folder("--svg", svg);
  if (!svg.empty()) FileBeside(folder ? svg + "picture.svg" : svg);
  require_trace_writable(options);
}

// A phase of a quiet step as a step prints it: what all ranks moved, and what rank 0 held and said then. Nothing of a
// phase in which there was neither.
std::string phase_text(const Grid& grid, PhaseRecords phase) {
  std::vector<std::string> lines = moved_lines(phase.reports);
  StepReports of_rank_0(phase.reports.size());
  of_rank_0[0] = std::move(phase.reports[0]);
  append(lines, step_lines(grid, of_rank_0, false));
  return lines.empty() ? "" : fmt::format("{}\n{}\n", phase.title, fmt::join(lines, "\n"));
}

const char* over_what(TransportKind transport) {
  switch (transport) {
    case TransportKind::gloo:
      return "over Gloo";
    case TransportKind::memory:
      return "through memory";
    case TransportKind::nccl:
      return "over NCCL";
  }
  return "";
}

// `launched` where the line is to tell of a launch, which is over `hosts` hosts.
std::string world_text(const Options& options, bool launched, int hosts) {
  const int ranks = options.grid.size();
  const bool threads = options.world == WorldKind::threads;
  return fmt::format("{} · {} {}{} {}{} · {}", options.grid.text(), ranks,
                     threads ? (ranks == 1 ? "thread" : "threads") : (ranks == 1 ? "process" : "processes"),
                     launched && hosts > 1 ? fmt::format(" on {} hosts", hosts) : "", over_what(options.transport),
                     launched ? ", started by " + options.launch->launcher : "", precision_name(options.precision));
}

// A program records and traces one layout: a lesson that goes on with another one does not overwrite it.
bool program_has_recorded = false;
// And it has failed when a check of any of its layouts did.
bool program_has_failed = false;
// Its first line has told who has started it.
bool program_has_told_of_launch = false;

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
  // Ranks that are threads need no help: OpenMP sees all of them, and spins less by itself.
  if (!crowded || options.world != WorldKind::processes || getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // returns only where that is not possible; then it is slow, and right
}

}  // namespace

int exit_code_of(const std::string& name, const std::function<int()>& program) {
  try {
    return program();
  } catch (const UsageError& error) {
    if (tells_refusals())
      print_error_line(fmt::format("{}: {}", name, error.what()));
    else
      let_refusal_be_told();
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
    : info_(std::move(info)), program_(true), state_(std::make_unique<State>()) {
  options_.grid = grid;
  options_.products = info_.products;
  reset_inherited_signals();
  guarded([&] {
    open_standard_files();
    speak_only_as_rank_0(argc, argv);
    if (!parse_options(info_, argc, argv, options_)) {
      finish_output();
      std::exit(0);
    }
    if (program_has_recorded)
      options_.record_file = options_.svg_path = options_.trace_file = options_.trace_folder = "";
    require_transport(info_, options_);
    require_openmp_environment(options_.threads_per_rank());
    let_idle_threads_sleep(options_, argv);
    show_progress(options_.verbose > 0);
    handle_interrupts(info_.name);
    if (is_agent() && !options_.launch->by_hand) end_without_a_word();
    options_.traced = info_.traced;
    options_.groups = info_.groups;
  });
  if (is_agent()) return;  // the parent records and traces
  if (!options_.record_file.empty()) state_->recording = std::make_unique<RecordingBuilder>(info_, options_);
  if (options_.tracing()) state_->tracer = std::make_unique<Tracer>(info_, options_);
}

LessonCore::LessonCore(LessonInfo info, const Options& options)
    : info_(std::move(info)), options_(options), program_(false), state_(std::make_unique<State>()) {
  require_valid(info_, options_);
  require_transport(info_, options_);
  options_.traced = options_.traced || info_.traced;
  options_.groups = info_.groups;
  if (!options_.record_file.empty()) state_->recording = std::make_unique<RecordingBuilder>(info_, options_);
  if (options_.tracing()) state_->tracer = std::make_unique<Tracer>(info_, options_);
}

LessonCore::~LessonCore() {
  if (options_.stops) take_no_requests(options_.stops->asked());
}

bool LessonCore::is_agent() const { return options_.launch && options_.launch->rank != 0; }

bool LessonCore::is_parent() const { return state_->world == nullptr || state_->world->is_parent(); }

void LessonCore::require(const std::function<void(const RankInfo&)>& plan) {
  guarded([&] { plan(rank_info()); });
}

void LessonCore::print(const std::string& line) {
  print_line(line);
  if (state_->recording != nullptr) state_->recording->line(line);
}

void LessonCore::begin(int hosts) {
  const bool launched = options_.launch && !std::exchange(program_has_told_of_launch, true);
  const std::string first = left_and_right(state_->paint.bold(heading(info_)), world_text(options_, launched, hosts));
  if (state_->recording != nullptr) state_->recording->heading(first);
  if (options_.verbose == 0) return;
  print(first);
  if (!info_.question.empty())
    for (const std::string& line : wrap_text("Question: " + info_.question, 10)) print(line);
  print();
}

void LessonCore::start() {
  if (state_->world != nullptr) return;
  LaunchedRun* run = nullptr;
  guarded([&] {
    if (options_.launch) run = &LaunchedRun::of_this_program(options_, info_.name);
    if (is_agent()) return;
    try {
      require_writable(options_);
    } catch (const UsageError&) {
      if (run != nullptr) run->refuse();
      throw;
    }
  });
  begin(run != nullptr ? run->hosts() : 1);
  if (state_->tracer != nullptr) state_->tracer->begin();
  guarded([&] { state_->world = run != nullptr ? start_launched_world(options_, *run) : start_world(options_); });
}

void LessonCore::say(const std::string& text) {
  start();
  if (is_parent() && options_.verbose > 0) print(text);
}

void LessonCore::plan(const std::string& text) {
  if (!plans_only(info_)) {
    if (options_.verbose > 1) say(text);
    return;
  }
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
  if (state_->tracer != nullptr) state_->tracer->step(reports);  // in a process that is a rank there are none
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
  if (state_->recording != nullptr) state_->recording->step(title, reports);
  if (options_.verbose == 0) return;
  print(state_->paint.bold(fmt::format("step {} · {}", state_->steps, title)));
  for (const std::string& line : moved_lines(reports)) print(line);
  for (const std::string& line : step_lines(options_.grid, reports, options_.verbose >= 2)) print(line);
  if (state_->recording != nullptr) state_->recording->step_printed();
  std::fflush(stdout);
}

void LessonCore::run_quiet_step(const std::string& title, const std::function<void(Rank&)>& body) {
  const bool recorded = options_.recording() && state_->quiet_steps++ < kRecordedQuietSteps;
  auto reports = run_on_ranks(title, body, recorded);
  if (!recorded || !is_parent()) return;
  for (PhaseRecords& phase : phases_of(title, std::move(reports))) {
    if (state_->recording != nullptr) state_->recording->step(phase.title, phase.reports);
    if (options_.recorded) state_->phases_told += phase_text(options_.grid, std::move(phase));
  }
}

std::string LessonCore::take_phases() { return std::exchange(state_->phases_told, ""); }

const RunTrace& LessonCore::trace() const {
  if (state_->tracer == nullptr)
    throw UsageError(
        "there is no trace, because the run was not traced; set `traced` in the LessonInfo of the lesson to true");
  return state_->tracer->run();
}

void LessonCore::trains(const std::vector<Parameter>& parameters) {
  if (state_->tracer == nullptr) return;
  std::vector<TrainedMatrix> matrices;
  for (const Parameter& each : parameters) matrices.push_back({each.name, each.shape.rows, each.shape.cols});
  state_->tracer->trains(matrices);
}

void LessonCore::on_hosts(std::vector<int> host_of_rank) {
  if (!options_.launch && options_.transport == TransportKind::gloo) options_.host_of_rank = std::move(host_of_rank);
}

void LessonCore::over_link(const LinkSpeed& link) {
  guarded([&] {
    if (options_.transport == TransportKind::nccl)
      throw UsageError("a slower link can't be made of NCCL, which moves bytes by itself; leave --transport nccl out");
    options_.link = link;
  });
}

void LessonCore::in_parent(const std::function<void()>& work) {
  if (is_parent()) guarded(work);
}

void LessonCore::stop_when_asked() {
  if (state_->world != nullptr)
    throw std::logic_error("a lesson stops when asked from before its first step, or not at all");
  if (options_.launch || options_.stops) return;
  guarded([&] { options_.stops = std::make_shared<StopRequest>(); });
  if (program_)  // a notebook has signals of its own
    take_requests(options_.stops->asked(), info_.name + ": stopping after this step; Ctrl-C again ends at once");
}

bool LessonCore::stops() const {
  return options_.stops && state_->world != nullptr && options_.stops->stops_after(state_->world->steps());
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
  program_has_failed = program_ && (program_has_failed || state_->failed_checks > 0);
  const bool ok = state_->failed_checks == 0 && !program_has_failed;
  if (!is_parent()) {
    state_->world.reset();  // a rank that is a process ends here: what main does after the answer is not its business
    return ok ? 0 : 1;
  }
  guarded([&] {
    if (options_.fault.kind != Fault::Kind::none && options_.fault.step > state_->world->steps())
      throw UsageError(fmt::format("--fault names step {}, but this run has only the steps 0 (the rendezvous) to {}",
                                   options_.fault.step, state_->world->steps()));
    if (text.empty()) {
      state_->world->finish();
      state_->world.reset();
      write_files(ok);
      return;
    }
    std::vector<std::string> last;
    if (options_.verbose > 0) {
      std::vector<std::string> tries;
      for (const Bug& bug : info_.bugs) tries.push_back("--bug " + bug.name);
      tries.insert(tries.end(), info_.also_try.begin(), info_.also_try.end());
      append(last, wrap_items("try     ", tries));
      append(last, wrap_text("Answer: " + text, 8));
    }
    last.push_back(ok ? fmt::format("{}: {}", info_.name, state_->paint.good("OK"))
                      : fmt::format("{}: {}", info_.name, state_->paint.bad("FAILED")));
    state_->world->finish();
    state_->world.reset();
    // "OK" is the last word, and only when nothing is left to go wrong.
    if (state_->recording != nullptr)
      for (const std::string& line : last) state_->recording->line(line);
    write_files(ok);
    for (const std::string& line : last) print_line(line);
    finish_output();
  });
  return ok ? 0 : 1;
}

void LessonCore::write_files(bool ok) {
  const auto write = [](const std::string& path, const std::string& text) {
    write_or_fail([&] { write_text_file(path, text); });
  };
  if (state_->recording != nullptr) {
    state_->recording->finish(ok);
    write(options_.record_file, recording_json(state_->recording->recording()));
  }
  const std::string& svg = options_.svg_path;
  for (const auto& [name, picture] : state_->pictures) {
    if (svg.empty()) break;
    const bool folder = svg.back() == '/';
    write(folder ? fmt::format("{}{}.svg", svg, name) : svg, picture);
    if (!folder) break;
  }
  if (state_->tracer != nullptr) state_->tracer->write(ok);
  program_has_recorded = program_;
}

void LessonCore::picture(const std::string& name, const std::string& svg) { state_->pictures.emplace_back(name, svg); }

}  // namespace muonwalk::sim
