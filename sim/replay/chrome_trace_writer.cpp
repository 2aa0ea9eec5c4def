#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/replay/collective.hpp"
#include "sim/replay/trace_writers.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kComputation = 1;  // the threads of a rank
constexpr int kCommunication = 2;
constexpr int kTransfers = 3;  // and so on, as many as there are messages under way at a time

using Json = nlohmann::ordered_json;

Json ledger_json(const Ledger& ledger) {
  Json lines = Json::array();
  for (const LedgerLine& line : ledger.lines())
    lines.push_back({{"group", line.group},
                     {"collective", collective_name(line.kind)},
                     {"type", element_name(line.type)},
                     {"calls", line.calls},
                     {"bytes", line.traffic.bytes_sent},
                     {"messages", line.traffic.messages_sent}});
  return lines;
}

// What stands beside the events. The ledger is what the transports counted, by which the slices can be checked.
std::string fields_of(const RunTrace& run) {
  Json dropped = Json::array(), ledger = Json::array();
  for (const RankTrace& rank : run.ranks) {
    dropped.push_back(rank.dropped);
    ledger.push_back(ledger_json(rank.ledger));
  }
  const Json about = {{"version", 1},
                      {"name", visible_name(run.name)},
                      {"title", visible_name(run.title)},
                      {"ranks", run.ranks.size()},
                      {"grid", {{"dp", run.grid.dp()}, {"tp", run.grid.tp()}, {"pp", run.grid.pp()}}},
                      {"precision", run.precision},
                      {"backend", run.backend},
                      {"ok", run.ok},
                      {"dropped_events", dropped},
                      {"ledger", ledger}};
  return fmt::format("\"displayTimeUnit\":\"ms\",\n\"muonwalk\":{}",
                     about.dump(-1, ' ', false, Json::error_handler_t::replace));
}

class ChromeWriter {
 public:
  ChromeWriter(TraceFileWriter::Sink sink, const RunTrace& run)
      : run_(run), file_(std::move(sink), fields_of(run), run.began_ns) {}

  void write() {
    for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      rank_ = static_cast<int>(rank);
      of_rank_ = &run_.ranks[rank];
      names();
      steps_and_phases();
      calls();
      transfers();
      held();
    }
    arrows();
    file_.finish();
  }

 private:
  void names() {
    file_.name("process", rank_, 0, of_rank_->label, rank_);
    file_.name("thread", rank_, kComputation, "computation", kComputation);
    file_.name("thread", rank_, kCommunication, "communication", kCommunication);
  }

  // A viewer that meets two slices of the same begin takes the first one for the outer one.
  void steps_and_phases() {
    const std::vector<ComputationSlice> computation = computation_of(*of_rank_);
    std::size_t next = 0;
    const auto computation_before = [&](std::int64_t moment) {
      for (; next < computation.size() && computation[next].begin_ns < moment; ++next)
        file_.slice(rank_, kComputation, "computation", computation[next].name, computation[next].begin_ns,
                    computation[next].end_ns);
    };
    for (const Span& span : of_rank_->spans) {
      if (span.kind != SpanKind::step && span.kind != SpanKind::phase) continue;
      computation_before(span.begin_ns);
      const std::string& name = of_rank_->names[static_cast<std::size_t>(span.name)];
      const bool step = span.kind == SpanKind::step && is_optimizer_step(name);
      file_.slice(rank_, kComputation, step ? "step" : "phase", name, span.begin_ns, span.end_ns);
    }
    computation_before(INT64_MAX);
  }

  void calls() {
    std::int64_t sent = 0;
    for (const Span& span : of_rank_->spans) {
      if (span.kind == SpanKind::sent || span.kind == SpanKind::received) message(span);
      if (span.kind != SpanKind::call) continue;
      call_ = &span;
      file_.slice(rank_, kCommunication, "communication", collective_name(span.collective), span.begin_ns, span.end_ns,
                  arguments(span));
      counter("bytes sent", "bytes", span.end_ns, sent += span.bytes);
    }
  }

  std::string arguments(const Span& call) const {
    const Group& group = of_rank_->groups[call.group];
    const int members = group.size();
    const char* collective = collective_name(call.collective);
    const auto ns = static_cast<double>(std::max<std::int64_t>(1, call.end_ns - call.begin_ns));
    const double algorithm_bandwidth = static_cast<double>(call.message_bytes()) / ns;  // bytes a nanosecond are GB/s
    return fmt::format(R"("collective":"{}","group":"{}","group_size":{},"group_ranks":"{}","type":"{}","elements":{},)"
                       R"("bytes":{},"messages":{},"message_bytes":{},"algbw":{:.6g},"busbw":{:.6g})",
                       collective, group.name, members, group_ranks_text(group), element_name(call.type),
                       call.bytes / element_size(call.type), call.bytes, call.messages, call.message_bytes(),
                       algorithm_bandwidth, algorithm_bandwidth * bus_factor(collective_of(collective), members));
  }

  void counter(const char* name, const char* unit, std::int64_t moment, std::int64_t value) {
    file_.event(fmt::format(R"({{"ph":"C","pid":{},"name":"{}","ts":{},"args":{{"{}":{}}}}})", rank_, name,
                            file_.time(moment), unit, value));
  }

  void held() {
    std::vector<std::pair<std::int64_t, std::int64_t>> moments;  // and how many elements were held then
    for (const Span& span : of_rank_->spans) {
      if (span.kind == SpanKind::sent || span.kind == SpanKind::received) continue;
      moments.emplace_back(span.begin_ns, span.held_at_begin);
      moments.emplace_back(span.end_ns, span.held_at_end);
    }
    std::stable_sort(moments.begin(), moments.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::int64_t before = -1;
    for (const auto& [moment, elements] : moments)
      if (elements != before) counter("elements held", "elements", moment, before = elements);
  }

  struct Arrow {
    std::optional<std::int64_t> leaves, arrives;
  };

  // Messages of one kind from a sender to a receiver in a group are matched in the order in which they were posted, so
  // their number names both ends. An end lies inside of the slice of its call, which is the last one that began before
  // it.
  void message(const Span& span) {
    const bool posted = span.collective == CollectiveKind::send;
    if (posted && span.kind == SpanKind::received && span.begin_ns < call_->begin_ns) transfers_.push_back(&span);
    if (span.kind == SpanKind::sent)
      arrows_[{span.group, posted, rank_, span.peer, span.number}].leaves = span.begin_ns;
    else
      arrows_[{span.group, posted, span.peer, rank_, span.number}].arrives = std::min(span.end_ns, call_->end_ns - 1);
  }

  // What was received by irecv, from the post until the wait for it had returned. They begin and end in any order, and
  // slices of a thread nest, so those that are under way at the same time are on threads of their own.
  void transfers() {
    std::stable_sort(transfers_.begin(), transfers_.end(),
                     [](const Span* a, const Span* b) { return a->begin_ns < b->begin_ns; });
    std::vector<std::int64_t> ends;  // of the last one on each thread
    for (const Span* span : transfers_) {
      const auto free = std::find_if(ends.begin(), ends.end(), [&](std::int64_t end) { return end <= span->begin_ns; });
      const int thread = kTransfers + static_cast<int>(free - ends.begin());
      if (free == ends.end()) {
        const std::string number = ends.empty() ? "" : fmt::format(" {}", ends.size() + 1);
        file_.name("thread", rank_, thread, "transfers" + number, thread);
        ends.push_back(span->end_ns);
      } else {
        *free = span->end_ns;
      }
      file_.slice(rank_, thread, "transfer", fmt::format("message from rank {}", span->peer), span->begin_ns,
                  span->end_ns, fmt::format(R"("bytes":{})", span->bytes));
    }
    transfers_.clear();
  }

  void arrows() {
    std::int64_t id = 0;
    for (const auto& [key, arrow] : arrows_) {
      if (!arrow.leaves || !arrow.arrives) continue;
      ++id;
      arrow_end(R"("ph":"s")", id, std::get<2>(key), *arrow.leaves);
      arrow_end(R"("ph":"f","bp":"e")", id, std::get<3>(key), *arrow.arrives);
    }
  }

  void arrow_end(const char* which, std::int64_t id, int rank, std::int64_t moment) {
    file_.event(fmt::format(R"({{{},"id":{},"pid":{},"tid":{},"cat":"message","name":"message","ts":{}}})", which, id,
                            rank, kCommunication, file_.time(moment)));
  }

  const RunTrace& run_;
  TraceFileWriter file_;
  int rank_ = 0;
  const RankTrace* of_rank_ = nullptr;
  const Span* call_ = nullptr;          // the last one that was written
  std::vector<const Span*> transfers_;  // of the rank, as they ended
  // By group, whether from rank to rank or of collectives, sender, receiver and number.
  std::map<std::tuple<int, bool, int, int, std::int32_t>, Arrow> arrows_;
};

}  // namespace

TraceFileWriter::TraceFileWriter(Sink sink, const std::string& fields, std::int64_t began_ns)
    : sink_(std::move(sink)), began_ns_(began_ns), unwritten_(fmt::format("{{{},\n\"traceEvents\":[", fields)) {}

void TraceFileWriter::event(const std::string& json) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  unwritten_ += first_ ? "\n" : ",\n";
  unwritten_ += json;
  first_ = false;
  if (unwritten_.size() >= kPiece) sink_(std::exchange(unwritten_, ""));
}

void TraceFileWriter::slice(int process, int thread, const char* category, const std::string& name,
                            std::int64_t begin_ns, std::int64_t end_ns, const std::string& arguments) {
  event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{},"dur":{},"args":{{{}}}}})", process,
                    thread, category, quoted(name), time(begin_ns), microseconds_text(end_ns - begin_ns), arguments));
}

void TraceFileWriter::name(const char* what, int process, int thread, const std::string& text, int place) {
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_name","args":{{"name":{}}}}})", process, thread, what,
                    quoted(text)));
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_sort_index","args":{{"sort_index":{}}}}})", process,
                    thread, what, place));
}

std::string TraceFileWriter::time(std::int64_t moment_ns) const { return microseconds_text(moment_ns - began_ns_); }

void TraceFileWriter::finish() { sink_(std::exchange(unwritten_, "") + "\n]}\n"); }

std::string microseconds_text(std::int64_t ns) {
  const std::int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(visible_name(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::unique_ptr<FileBeside> write_chrome_trace(const std::string& path, const RunTrace& run) {
  auto file = std::make_unique<FileBeside>(path);
  ChromeWriter([&file](const std::string& piece) { file->write(piece.data(), piece.size()); }, run).write();
  return file;
}

std::string chrome_trace_text(const RunTrace& run) {
  std::string text;
  ChromeWriter([&text](const std::string& piece) { text += piece; }, run).write();
  return text;
}

}  // namespace muonwalk::sim
