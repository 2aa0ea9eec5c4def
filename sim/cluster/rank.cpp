#include "sim/cluster/rank.hpp"

#include <chrono>
#include <cstring>

#include "sim/cluster/fault.hpp"
#include "sim/cluster/rank_session.hpp"
#include "sim/cluster/tracer.hpp"

namespace muonwalk::sim {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::byte> as_payload(const float* values, Index count) {
  std::vector<std::byte> payload(static_cast<std::size_t>(count) * sizeof(float));
  if (count > 0) std::memcpy(payload.data(), values, payload.size());
  return payload;
}

}  // namespace

struct Rank::State {
  RankGroups* groups = nullptr;
  std::vector<std::unique_ptr<Record>> records;  // pointers, so that a Shown stays valid while others are added
  bool prints_values = false;                    // --verbose 2
  bool recorded = false;                         // this step is recorded, with its values and messages
  std::string phase;
  double phase_began = 0;
  std::ptrdiff_t traced_phase = SpanBuffer::kNoRoom;  // its entry in the trace

  bool keeps_values() const { return prints_values || recorded; }
};

Rank::Rank(const Seat& seat, RankGroups& groups) : Seat(seat), state_(std::make_unique<State>()) {
  state_->groups = &groups;
}
Rank::~Rank() = default;

Communicator& Rank::dp() { return group(GroupKind::dp); }
Communicator& Rank::tp() { return group(GroupKind::tp); }
Communicator& Rank::pp() { return group(GroupKind::pp); }
Communicator& Rank::group(GroupKind kind) { return groups().communicator(kind); }
RankGroups& Rank::groups() { return *state_->groups; }
bool Rank::recorded() const { return state_->recorded; }
Ledger& Rank::ledger() { return groups().ledger; }
MemoryMeter& Rank::memory() { return groups().memory; }

Record& Rank::add_record(const std::string& kind) {
  state_->records.push_back(std::make_unique<Record>());
  state_->records.back()->kind = kind;
  return *state_->records.back();
}

Shown Rank::show(const std::string& name, Shape shape) {
  Record& record = add_record("show");
  record.fields = {{"name", name}, {"rows", shape.rows}, {"cols", shape.cols}, {"bytes", 4 * shape.size()}};
  return Shown(record);
}

Shown Rank::show(const std::string& name, const Matrix& matrix) {
  Shown shown = show(name, Shape{matrix.rows(), matrix.cols()});
  if (state_->keeps_values()) shown.record_->payload = as_payload(matrix.data(), matrix.size());
  return shown;
}

Shown Rank::show(const std::string& name, Index count) {
  Shown shown = show(name, Shape{1, count});
  shown.record_->fields["flat"] = true;
  return shown;
}

Shown Rank::show(const std::string& name, const Flat& values) {
  const Index count = static_cast<Index>(values.size());
  Shown shown = show(name, count);
  if (state_->keeps_values()) shown.record_->payload = as_payload(values.data(), count);
  return shown;
}

void Rank::say(const std::string& line) { add_record("say").fields = {{"line", line}}; }

void Rank::phase(const std::string& name) {
  const double now = now_seconds();
  if (!state_->phase.empty())
    add_record("phase").fields = {{"name", state_->phase}, {"seconds", now - state_->phase_began}};
  state_->phase = name;
  state_->phase_began = now;
  if (SpanBuffer* trace = groups().trace.get()) {
    trace->close(state_->traced_phase);
    state_->traced_phase = name.empty() ? SpanBuffer::kNoRoom : trace->open_phase(name);
  }
}

Shown& Shown::part(const char* unit, Range part, Index whole) {
  record_->fields["unit"] = unit;
  record_->fields["begin"] = part.begin;
  record_->fields["end"] = part.end;
  record_->fields["of"] = whole;
  return *this;
}
Shown& Shown::rows(Range range, Index whole) { return part("rows", range, whole); }
Shown& Shown::columns(Range range, Index whole) { return part("columns", range, whole); }
Shown& Shown::elements(Range range, Index whole) { return part("elements", range, whole); }
Shown& Shown::whole() { return part("", {0, 1}, 1); }
Shown& Shown::note(const std::string& words) {
  record_->fields["note"] = words;
  return *this;
}
Shown& Shown::from(const std::string& name) {
  record_->fields["from"].push_back(name);
  return *this;
}
Shown& Shown::bytes(Index count) {
  record_->fields["bytes"] = count;
  return *this;
}

RankSession::RankSession(const Options& options, int rank, std::unique_ptr<RankGroups> groups, ProgressBoard& progress)
    : options_(options), groups_(std::move(groups)), progress_(&progress), rank_(options.seat(rank), *groups_) {
  rank_.state_->prints_values = options.verbose >= 2;
  if (options.tracing())
    groups_->trace =
        std::make_unique<SpanBuffer>(static_cast<std::size_t>(options.kept_trace_events()), groups_->memory);
}

// A message becomes a record among those of what was shown, so that it is known in which phase it was sent.
void Rank::start_recording() {
  state_->recorded = true;
  const auto calls = [this] {
    std::int64_t sum = 0;
    for (const LedgerLine& line : ledger().lines()) sum += line.calls;
    return sum;
  };
  groups().on_sent = [this, calls, before = calls()](const SentMessage& sent) {
    add_record("sent").fields = {{"from", sent.from},
                                 {"to", sent.to},
                                 {"group", group_name(sent.group)},
                                 {"collective", collective_name(sent.kind)},
                                 {"type", element_name(sent.type)},
                                 {"elements", sent.bytes / element_size(sent.type)},
                                 {"bytes", sent.bytes},
                                 {"call", calls() - before - 1}};
  };
}

std::vector<Record> RankSession::run(int step, const std::string& title, const RankBody& body) {
  progress_->enter_step(rank_.rank(), title);
  if (step > 0) have_fault(options_.fault, rank_.rank(), step);

  MeterScope metered(groups_->memory);
  rank_.state_->records.clear();
  rank_.state_->recorded = false;  // until start_recording, which the body may begin with
  groups_->on_sent = nullptr;
  const Traffic before = groups_->ledger.total();
  SpanBuffer* trace = step > 0 ? groups_->trace.get() : nullptr;  // an errand is no part of the run
  const std::ptrdiff_t traced_step = trace != nullptr ? trace->open_step(title) : SpanBuffer::kNoRoom;
  body(rank_);
  rank_.phase("");
  if (trace != nullptr) trace->close(traced_step);
  const Traffic moved = groups_->ledger.total() - before;
  rank_.add_record("moved").fields = {
      {"sent", moved.bytes_sent}, {"received", moved.bytes_received}, {"messages", moved.messages_sent}};
  std::vector<Record> records;
  for (auto& record : rank_.state_->records) records.push_back(std::move(*record));
  rank_.state_->records.clear();
  if (trace != nullptr) records.push_back(trace_record(trace->take(), groups_->ledger));
  return records;
}

}  // namespace muonwalk::sim
