#include "sim/cluster/lesson.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "sim/cluster/comparison.hpp"
#include "sim/cluster/cost_table.hpp"
#include "sim/cluster/idle_threads.hpp"
#include "sim/cluster/interrupt.hpp"
#include "sim/cluster/ledger_record.hpp"
#include "sim/cluster/record.hpp"
#include "sim/cluster/recorder.hpp"
#include "sim/cluster/step_lines.hpp"
#include "sim/cluster/tracer.hpp"
#include "sim/cluster/world.hpp"
#include "sim/pictures/strip.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/layout/grid.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

Record held_record(const NamedMatrix& held) {
  Record record;
  record.kind = "held";
  record.fields = {{"name", held.name},
                   {"rows", held.matrix.rows()},
                   {"cols", held.matrix.cols()},
                   {"first_row", held.first_row},
                   {"first_col", held.first_col}};
  const auto* bytes = reinterpret_cast<const std::byte*>(held.matrix.data());
  record.payload.assign(bytes, bytes + held.matrix.bytes());
  return record;
}

NamedMatrix held_matrix(const Record& record) {
  const auto* values = reinterpret_cast<const float*>(record.payload.data());
  Flat flat(values, values + record.payload.size() / sizeof(float));
  return {record.fields.at("name"), Matrix(record.fields.at("rows"), record.fields.at("cols"), std::move(flat)),
          record.fields.at("first_row"), record.fields.at("first_col")};
}

// "05" and "TP gather" as "Lesson 05 · TP gather".
std::string heading(const LessonInfo& info) {
  const std::string number = lesson_number(info);
  return number.empty() ? info.title : fmt::format("Lesson {} · {}", number, info.title);
}

std::string world_text(const Options& options) {
  const int ranks = options.grid.size();
  const bool threads = options.world == WorldKind::threads;
  return fmt::format("{} · {} {} {} · {}", options.grid.text(), ranks,
                     threads ? (ranks == 1 ? "thread" : "threads") : (ranks == 1 ? "process" : "processes"),
                     options.transport == TransportKind::memory ? "through memory" : "over Gloo",
                     precision_name(options.precision));
}

// A program records and traces one layout: a lesson that goes on with another one does not overwrite it.
bool program_has_recorded = false;
// And it has failed when a check of any of its layouts did.
bool program_has_failed = false;

// Quiet steps are done over and over. Of those that prepare and those that repeat, the first one tells the story.
constexpr int kRecordedQuietSteps = 2;

}  // namespace

struct LessonCore::State {
  std::unique_ptr<Recorder> recorder;  // in the process that prints; none where nothing is recorded
  std::unique_ptr<Tracer> tracer;      // the same for a trace
  int quiet_steps = 0;
  std::unique_ptr<World> world;
  Paint paint;
  int steps = 0;
  int checks = 0;
  int failed_checks = 0;
  bool cost_failed = false;
  std::vector<std::string> phases;                               // in order of first use
  std::map<std::string, std::map<std::size_t, double>> seconds;  // [phase][rank]
  std::map<std::size_t, long> peak_kilobytes;
};

int exit_code_of(const std::string& name, const std::function<int()>& program) {
  try {
    return program();
  } catch (const UsageError& error) {
    print_error_line(fmt::format("{}: {}", name, error.what()));
    return 2;
  } catch (const std::exception& error) {
    print_error_line(fmt::format("{}: {}", name, error.what()));
    return 3;
  } catch (...) {
    print_error_line(name + ": something was thrown that is no std::exception");
    return 3;
  }
}

// Runs a piece of the lesson. In a program, an error ends it here with its sentence and its code, and no rank is left.
template <class Work>
void LessonCore::guarded(const Work& work) {
  if (!program_) return work();
  bool done = false;
  const int code = exit_code_of(info_.name, [&] {
    work();
    done = true;
    return 0;
  });
  if (done) return;
  state_->world.reset();
  std::exit(code);
}

LessonCore::LessonCore(LessonInfo info, const Grid& grid, int argc, char** argv)
    : info_(std::move(info)), program_(true), state_(std::make_unique<State>()) {
  options_.grid = grid;
  guarded([&] {
    open_standard_files();
    if (!parse_options(info_, argc, argv, options_)) {
      finish_output();
      std::exit(0);
    }
    if (program_has_recorded)
      options_.record_file = options_.svg_path = options_.trace_file = options_.trace_folder = "";
    let_idle_threads_sleep(options_, argv);
    handle_interrupts(info_.name);
    options_.traced = info_.traced;
  });
  if (options_.recording()) state_->recorder = std::make_unique<Recorder>(info_, options_);
  if (options_.tracing()) state_->tracer = std::make_unique<Tracer>(info_, options_);
}

LessonCore::LessonCore(LessonInfo info, const Options& options)
    : info_(std::move(info)), options_(options), program_(false), state_(std::make_unique<State>()) {
  require_valid(info_, options_);
  options_.traced = options_.traced || info_.traced;
  if (options_.recording()) state_->recorder = std::make_unique<Recorder>(info_, options_);
  if (options_.tracing()) state_->tracer = std::make_unique<Tracer>(info_, options_);
}

LessonCore::~LessonCore() = default;

bool LessonCore::reporting() const { return state_->world == nullptr || state_->world->reporting(); }

void LessonCore::require(const std::function<void(const Seat&)>& plan) {
  guarded([&] { plan(seat()); });
}

void LessonCore::print(const std::string& line) {
  print_line(line);
  if (state_->recorder != nullptr) state_->recorder->line(line);
}

void LessonCore::begin() {
  const std::string first = left_and_right(state_->paint.bold(heading(info_)), world_text(options_));
  if (state_->recorder != nullptr) state_->recorder->heading(first);
  if (options_.verbose == 0) return;
  print(first);
  if (!info_.question.empty())
    for (const std::string& line : wrap_text("Question: " + info_.question, 10)) print(line);
  print();
}

void LessonCore::start() {
  if (state_->world != nullptr) return;
  guarded([&] {
    require_writable(options_);
    require_trace_writable(options_);
  });
  begin();
  if (state_->tracer != nullptr) state_->tracer->begin();
  guarded([&] { state_->world = start_world(options_); });
}

void LessonCore::say(const std::string& text) {
  start();
  if (reporting() && options_.verbose > 0) print(text);
}

void LessonCore::plan(const std::string& text) {
  if (info_.plans_only == nullptr || !*info_.plans_only) {
    if (options_.verbose > 1) say(text);
    return;
  }
  guarded([&] {
    print_line(text);
    finish_output();
  });
  if (program_) std::exit(0);
}

// Runs a step of the lesson and keeps the times of its phases.
std::vector<std::vector<Record>> LessonCore::run_on_ranks(const std::string& title,
                                                          const std::function<void(Rank&)>& body, bool recorded) {
  start();
  std::vector<std::vector<Record>> records;
  const auto recorded_body = [&body](Rank& rank) {
    rank.start_recording();
    body(rank);
  };
  guarded([&] { records = recorded ? state_->world->step(title, recorded_body) : state_->world->step(title, body); });
  if (state_->tracer != nullptr) state_->tracer->step(records);  // in a process that is a rank there are none
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    for (const Record& record : records[rank]) {
      if (record.kind != "phase") continue;
      const std::string name = record.fields.at("name");
      if (state_->seconds.count(name) == 0) state_->phases.push_back(name);
      state_->seconds[name][rank] += record.fields.at("seconds").get<double>();
    }
  return records;
}

void LessonCore::run_step(const std::string& title, const std::function<void(Rank&)>& body) {
  auto records = run_on_ranks(title, body, options_.recording());
  ++state_->steps;
  if (!reporting()) return;
  if (state_->recorder != nullptr) state_->recorder->step(title, records);
  if (options_.verbose == 0) return;
  for (auto& of_rank : records)
    for (Record& record : of_rank)
      if (record.kind == "show" && !record.payload.empty())
        record.fields["digest"] = fmt::format("{:016x}", XXH3_64bits(record.payload.data(), record.payload.size()));
  print(state_->paint.bold(fmt::format("step {} · {}", state_->steps, title)));
  for (const std::string& line : moved_lines(records)) print(line);
  for (const std::string& line : step_lines(options_.grid, records, options_.verbose >= 2)) print(line);
  if (state_->recorder != nullptr) state_->recorder->step_printed();
  std::fflush(stdout);
}

void LessonCore::run_quiet_step(const std::string& title, const std::function<void(Rank&)>& body) {
  const bool recorded = options_.recording() && state_->quiet_steps++ < kRecordedQuietSteps;
  const auto records = run_on_ranks(title, body, recorded);
  if (recorded && reporting()) state_->recorder->quiet_step(title, records);
}

std::vector<std::vector<NamedMatrix>> LessonCore::run_collect(const Held& held) {
  start();
  std::vector<std::vector<NamedMatrix>> collected;
  guarded([&] {
    const auto records = state_->world->errand("hand over results", [&](Rank& rank) {
      MemoryMeter uncounted;  // copies for the check are none of the lesson's memory
      const MeterScope scope(uncounted);
      for (const NamedMatrix& matrix : held(rank)) rank.add_record("held") = held_record(matrix);
    });
    for (const auto& of_rank : records) {
      collected.emplace_back();
      for (const Record& record : of_rank)
        if (record.kind == "held") collected.back().push_back(held_matrix(record));
    }
  });
  return collected;
}

bool LessonCore::run_check(const std::string& what, const Held& held, const Expected& expected) {
  auto collected = run_collect(held);
  if (!reporting()) return true;
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
              in_words(expected(options_.seat(static_cast<int>(rank)))), comparison);
  });
  if (state_->checks++ == 0 && options_.verbose > 0 && state_->steps > 0) print();
  const Paint& paint = state_->paint;
  const std::string who = collected.size() == 1 ? "1 rank" : fmt::format("{} ranks", collected.size());
  const bool equal = comparison.equal() && comparison.elements > 0;
  if (!equal) ++state_->failed_checks;
  const std::vector<std::string> result =
      aligned_lines(fmt::format("check   {}: {} {} the reference", what, who,
                                equal ? (collected.size() == 1 ? "equals" : "equal")
                                      : (collected.size() == 1 ? "differs from" : "differ from")),
                    equal ? fmt::format("{} {}, bit for bit   {}", number_text(comparison.elements),
                                        comparison.elements == 1 ? "element" : "elements", paint.good("✔"))
                          : fmt::format("{} of {} elements differ   {}", number_text(comparison.different),
                                        number_text(comparison.elements), paint.bad("✘")));
  for (const std::string& line : result) print(line);
  if (comparison.elements == 0 && comparison.first.empty())
    comparison.first = {"there was nothing to compare: neither the ranks nor the reference hold an element"};
  for (const std::string& line : comparison.first) print("        " + line);
  return equal;
}

bool LessonCore::check_numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected) {
  start();
  if (!reporting()) return true;
  const std::string difference = first_difference(read, expected);
  const bool equal = difference.empty() && !expected.empty();
  if (!equal) ++state_->failed_checks;
  if (state_->checks++ == 0 && options_.verbose > 0 && state_->steps > 0) print();
  const Paint& paint = state_->paint;
  for (const std::string& line :
       aligned_lines(fmt::format("check   {}", what),
                     equal ? fmt::format("{} numbers, all equal   {}",
                                         number_text(static_cast<long long>(expected.size())), paint.good("✔"))
                           : fmt::format("not equal   {}", paint.bad("✘"))))
    print(line);
  if (!equal)
    for (const std::string& line :
         wrap_text("first difference: " + (expected.empty() ? "there is nothing to compare with" : difference), 2,
                   kColumns - 8))
      print("        " + line);
  return equal;
}

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

void LessonCore::in_parent(const std::function<void()>& work) {
  if (reporting()) guarded(work);
}

bool LessonCore::cost(const std::function<Prediction(const Seat&)>& predict) {
  start();
  std::vector<RankCost> costs;
  guarded([&] {
    const auto records = state_->world->errand("count", [&](Rank& rank) {
      RankGroups& groups = rank.groups();
      KernelTraffic kernel;
      long long headers = 0;
      kernel.known = options_.world == WorldKind::processes;
      for (GlooTransport* transport : groups.gloo) {
        if (transport == nullptr) continue;
        const KernelTraffic of_group = transport->kernel_traffic();
        kernel.known = kernel.known && of_group.known;
        kernel.bytes_sent += of_group.bytes_sent;
        headers += transport->header_bytes_sent();
      }
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      rank.add_record("cost").fields = {
          {"ledger", ledger_fields(groups.ledger)}, {"peak", groups.memory.peak()}, {"kernel_known", kernel.known},
          {"kernel_sent", kernel.bytes_sent},       {"header_sent", headers},       {"kilobytes", usage.ru_maxrss}};
    });
    for (std::size_t rank = 0; rank < records.size(); ++rank)
      for (const Record& record : records[rank]) {
        if (record.kind != "cost") continue;
        const Prediction prediction = predict(options_.seat(static_cast<int>(rank)));
        RankCost cost;
        cost.predicted = prediction.ledger;
        cost.counted = ledger_from(record.fields.at("ledger"));
        cost.predicted_peak = prediction.peak_elements;
        cost.counted_peak = record.fields.at("peak");
        cost.kernel_known = record.fields.at("kernel_known");
        cost.kernel_sent = record.fields.at("kernel_sent");
        cost.header_sent = record.fields.at("header_sent");
        state_->peak_kilobytes[rank] = record.fields.at("kilobytes");
        costs.push_back(std::move(cost));
      }
  });
  if (!reporting()) return true;
  const CostTable table = cost_table(costs);
  if (options_.verbose > 0 || !table.equal)
    for (std::size_t i = 0; i < table.lines.size(); ++i) print((i == 0 ? "cost  " : "      ") + table.lines[i]);
  state_->cost_failed = state_->cost_failed || !table.equal;
  return table.equal;
}

void LessonCore::timings() {
  if (!reporting() || options_.verbose == 0) return;
  print_error_line(fmt::format("{}: measured on this machine, seconds a rank", info_.name));
  print_error_line(fmt::format("  {:<32}{:>10}{:>10}", "phase", "mean", "most"));
  for (const std::string& phase : state_->phases) {
    double sum = 0, most = 0;
    for (const auto& [rank, seconds] : state_->seconds[phase]) {
      sum += seconds;
      most = std::max(most, seconds);
    }
    const std::string space(static_cast<std::size_t>(std::max(1, 32 - text_width(phase))), ' ');
    print_error_line(fmt::format("  {}{:>10.3f}{:>10.3f}", phase + space, sum / options_.grid.size(), most));
  }
  long kilobytes = 0;
  for (const auto& [rank, of_rank] : state_->peak_kilobytes) kilobytes = std::max(kilobytes, of_rank);
  if (kilobytes > 0)
    print_error_line(
        fmt::format("  {:<32}{:>16.1f} MiB", "peak memory of a rank", static_cast<double>(kilobytes) / 1024));
}

int LessonCore::answer(const std::string& text) {
  start();
  program_has_failed = program_ && (program_has_failed || state_->failed_checks > 0 || state_->cost_failed);
  const bool ok = state_->failed_checks == 0 && !state_->cost_failed && !program_has_failed;
  if (!reporting()) {
    state_->world.reset();  // a rank that is a process ends here: what main does after the answer is not its business
    return ok ? 0 : 1;
  }
  guarded([&] {
    if (options_.fault.kind != Fault::Kind::none && options_.fault.step > state_->world->steps())
      throw UsageError(fmt::format("--fault names step {}, but this run has only the steps 0 (the rendezvous) to {}",
                                   options_.fault.step, state_->world->steps()));
    if (text.empty()) {
      state_->world.reset();
      write_recording(ok);
      return;
    }
    if (options_.verbose > 0) {
      std::vector<std::string> tries;
      for (const Bug& bug : info_.bugs) tries.push_back("--bug " + bug.name);
      tries.insert(tries.end(), info_.also_try.begin(), info_.also_try.end());
      for (const std::string& line : wrap_items("try     ", tries)) print(line);
      for (const std::string& line : wrap_text("Answer: " + text, 8)) print(line);
    }
    print(ok ? fmt::format("{}: {}", info_.name, state_->paint.good("OK"))
             : fmt::format("{}: {}", info_.name, state_->paint.bad("FAILED")));
    state_->world.reset();
    finish_output();
    write_recording(ok);
  });
  return ok ? 0 : 1;
}

void LessonCore::write_recording(bool ok) {
  if (state_->recorder != nullptr) {
    state_->recorder->finish(ok);
    state_->recorder->write();
  }
  if (state_->tracer != nullptr) state_->tracer->write(ok);
  if (options_.recording() || options_.tracing()) program_has_recorded = program_;
}

void LessonCore::picture(const std::string& name, const std::string& svg) {
  if (state_->recorder != nullptr) state_->recorder->picture(name, svg);
}

const Recording& LessonCore::recording_with_steps() const {
  if (state_->recorder == nullptr)
    throw UsageError(
        "there is no picture of the last step, because nothing is recorded; set `recorded` in the Options of the "
        "lesson to true");
  const Recording& recording = state_->recorder->recording();
  if (recording.steps.empty()) throw UsageError("there is no picture of the last step before the first one has run");
  return recording;
}

std::string LessonCore::picture_of_last_step() const {
  const Recording& recording = recording_with_steps();
  return strip_svg(recording, static_cast<int>(recording.steps.size()) - 1);
}

std::string LessonCore::words_of_last_step() const {
  const Recording& recording = recording_with_steps();
  return strip_words(recording, static_cast<int>(recording.steps.size()) - 1);
}

std::vector<NamedMatrix> named(const Matrix& matrix) { return {NamedMatrix{"", matrix, 0, 0}}; }
std::vector<NamedMatrix> named(const Flat& values) {
  return {NamedMatrix{"", Matrix(1, static_cast<Index>(values.size()), values), 0, 0}};
}
std::vector<NamedMatrix> named(std::vector<NamedMatrix> matrices) { return matrices; }

}  // namespace muonwalk::sim
