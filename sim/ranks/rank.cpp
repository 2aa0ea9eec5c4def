#include "sim/ranks/rank.hpp"

#include <deque>
#include <optional>

#include "sim/fibers/fibers.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/ranks/rank_groups.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
struct Rank::State {
  RankGroups* groups = nullptr;
  ProgressSlot* progress = nullptr;
  std::deque<Report> reports;  // in which a Shown stays where it is while others are added
  const Options* options = nullptr;
  int step = 0;           // its number in the world
  bool decides = false;   // in this step it is decided whether the run stops
  bool recorded = false;  // this step is recorded, with its values and messages
  std::string phase;
  double phase_began = 0;
  std::ptrdiff_t traced_phase = SpanBuffer::kNoRoom;  // its entry in the trace

  bool keeps_values() const { return options->verbose >= 2 || recorded; }
};

Rank::Rank(const RankInfo& info, RankGroups& groups) : RankInfo(info), state_(std::make_unique<State>()) {
  state_->groups = &groups;
}
Rank::~Rank() = default;

Communicator& Rank::dp() { return group("dp"); }
Communicator& Rank::tp() { return group("tp"); }
Communicator& Rank::pp() { return group("pp"); }
Communicator& Rank::group(const std::string& name) { return groups().communicator(name); }
RankGroups& Rank::groups() { return *state_->groups; }
void Rank::decide_whether_to_stop() {
  StopRequest* const stops = state_->options->set_up.stops.get();  // null: nobody asks
  state_->decides = stops != nullptr;
  if (stops != nullptr && rank() == 0) stops->decide(state_->step);
}

// What a rank reads before rank 0 has written could differ from what the others read.
void Rank::require_decision() const {
  if (!state_->decides || state_->options->set_up.stops->has_decided(state_->step)) return;
  throw RunError(
      "it ended the step before rank 0 had decided whether the run stops after it; between decide_whether_to_stop and "
      "the end, a step needs a call that no rank can leave before rank 0 has taken part");
}

void Rank::let_pass(std::int64_t ns) {
  if (state_->options->virtual_time()) fiber::sleep_until(fiber::clock_ns() + ns);
}

bool Rank::recorded() const { return state_->recorded; }
Ledger& Rank::ledger() { return groups().ledger; }
std::optional<int> Rank::gpu() const { return state_->groups->gpu; }
MemoryMeter& Rank::memory() { return groups().memory; }

Report& Rank::add(Report report) { return state_->reports.emplace_back(std::move(report)); }

Shown& Rank::show(const std::string& name, Shape shape) { return std::get<Shown>(add(Shown(name, shape))); }

Shown& Rank::show(const std::string& name, const Matrix& matrix) {
  Shown& shown = show(name, Shape{matrix.rows(), matrix.cols()});
  if (state_->keeps_values()) shown.values.assign(matrix.flat().begin(), matrix.flat().end());
  return shown;
}

Shown& Rank::show(const std::string& name, Index count) {
  Shown& shown = show(name, Shape{1, count});
  shown.block.flat = true;
  return shown;
}

Shown& Rank::show(const std::string& name, const Flat& values) {
  Shown& shown = show(name, static_cast<Index>(values.size()));
  if (state_->keeps_values()) shown.values.assign(values.begin(), values.end());
  return shown;
}

void Rank::say(const std::string& line) { add(Said{line}); }

void Rank::phase(const std::string& name) {
  const double now = monotonic_seconds();
  if (!state_->phase.empty()) add(PhaseEnded{state_->phase, now - state_->phase_began});
  state_->phase = name;
  state_->phase_began = now;
  ++state_->progress->signs;
  if (SpanBuffer* trace = groups().trace.get()) {
    trace->close(state_->traced_phase);
    state_->traced_phase = name.empty() ? SpanBuffer::kNoRoom : trace->open(SpanKind::phase, name);
  }
}

RankSession::RankSession(const Options& options, int rank, std::unique_ptr<RankGroups> groups, Progress& progress)
    : options_(options), groups_(std::move(groups)), progress_(&progress), rank_(options.rank_info(rank), *groups_) {
  rank_.state_->progress = &progress.slot(rank);
  rank_.state_->options = &options_;
  if (options.tracing())
    groups_->trace = std::make_unique<SpanBuffer>(static_cast<std::size_t>(options.kept_trace_events()),
                                                  groups_->memory, options.clock());
}

RankSession::~RankSession() = default;

// A message becomes a record among those of what was shown, so that it is known in which phase it was sent.
void Rank::start_recording() {
  state_->recorded = true;
  groups().calls = 0;
  groups().on_sent = [this](RecordedMove sent) { add(std::move(sent)); };
}

std::vector<Report> RankSession::run(int step, const std::string& title, const RankBody& body) {
  progress_->enter_step(rank_.rank(), title);
  if (step > 0) have_fault(options_.fault, rank_.rank(), step);

  MeterScope metered(groups_->memory);
  rank_.state_->reports.clear();
  rank_.state_->step = step;
  rank_.state_->decides = false;
  rank_.state_->recorded = false;  // until start_recording, which the body may begin with
  groups_->on_sent = nullptr;
  const Traffic before = groups_->ledger.total();
  SpanBuffer* trace = step > 0 ? groups_->trace.get() : nullptr;  // a hand-over is not part of the run
  const std::ptrdiff_t traced_step = trace != nullptr ? trace->open(SpanKind::step, title) : SpanBuffer::kNoRoom;
  {
    std::optional<ChainEngineScope> on_gpu;
    if (groups_->chain_engine) on_gpu.emplace(groups_->chain_engine);
    body(rank_);
  }
  groups_->require_whole();
  rank_.require_decision();
  rank_.phase("");
  if (trace != nullptr) trace->close(traced_step);
  rank_.add(groups_->ledger.total() - before);
  if (trace != nullptr) rank_.add(Traced{trace->take(), groups_->ledger});
  std::deque<Report>& told = rank_.state_->reports;
  std::vector<Report> reports(std::make_move_iterator(told.begin()), std::make_move_iterator(told.end()));
  told.clear();
  return reports;
}

}  // namespace muonwalk::sim
