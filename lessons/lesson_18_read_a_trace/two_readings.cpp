#include "lessons/lesson_18_read_a_trace/two_readings.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

#include "sim/replay/trace_writers.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "tools/trace/published.hpp"
#include "tools/trace/reader.hpp"

namespace muonwalk::sim {
namespace {

// The names of the collectives that a rank called.
std::set<std::string> collectives_of(const RankSummary& rank) {
  std::set<std::string> names;
  for (const CollectiveLine& line : rank.collectives) names.insert(collective_text(line.collective));
  return names;
}

std::string share_text(const OptimizerShare& share) {
  if (share.ranges == 0) return "there are no ranges of it";
  return fmt::format("{} of {} ms, {}", ms_text(share.time_ns), ms_text(share.of_ns), percent_text(share.share()));
}

// The file, and the place in it, that a rank of the summary comes from.
const TraceFile& file_of(const std::vector<TraceFile>& files, const RankSummary& rank) {
  for (const TraceFile& file : files)
    for (const TraceRank& each : file.ranks)
      if (each.rank == rank.rank) return file;
  return files.front();
}

void add_calls(NamedNumbers& counts, int rank, const std::string& collective, const std::string& type,
               const std::string& group, std::int64_t calls, std::optional<std::int64_t> bytes) {
  const std::string name = fmt::format("rank {}, {} of {} in {}", rank, collective, type, group);
  counts[name + ": calls"] += calls;
  if (bytes) counts[name + ": bytes"] += *bytes;
}

}  // namespace

NamedNumbers call_counts(const Summary& summary) {
  NamedNumbers counts;
  for (const RankSummary& rank : summary.ranks)
    for (const CollectiveLine& line : rank.collectives)
      add_calls(counts, rank.rank, collective_text(line.collective), line.type, line.group, line.calls,
                line.sent_bytes);
  return counts;
}

NamedNumbers ledger_counts(const RunTrace& run) {
  NamedNumbers counts;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    for (const LedgerLine& line : run.ranks[r].ledger.lines())
      for (const Group& group : run.ranks[r].groups)
        if (line.group == group.name)
          add_calls(counts, rank, collective_name(line.kind), element_name(line.type), group_ranks_text(group),
                    line.calls, line.traffic.bytes_sent);
  }
  return counts;
}

TraceFile written_and_read(const RunTrace& run) {
  return read_trace_text("the run's own trace", chrome_trace_text(run));
}

NameTally tally_by_name(const TraceFile& file, const RankSummary& rank) {
  int place = 0;
  for (std::size_t r = 0; r < file.ranks.size(); ++r)
    if (file.ranks[r].rank == rank.rank) place = static_cast<int>(r);
  NameTally tally;
  for (const std::string& name : collectives_of(rank)) {
    const NameMatch match = match_names(file, name, place);
    tally.events += match.all.events - match.of(EventClass::computation).events;
    tally.total_ns += match.all.total_ns - match.of(EventClass::computation).total_ns;
  }
  return tally;
}

void take_names_for_calls(const std::vector<TraceFile>& files, Summary& summary) {
  for (RankSummary& rank : summary.ranks) {
    const TraceFile& file = file_of(files, rank);
    for (CollectiveLine& line : rank.collectives) {
      RankSummary alone = rank;
      alone.collectives = {line};
      line.calls = tally_by_name(file, alone).events;
    }
    rank.collective_calls = tally_by_name(file, rank).events;
  }
}

RunTotals totals_of(const TraceFile& file, const Summary& summary) {
  RunTotals totals;
  for (const RankSummary& rank : summary.ranks) {
    totals.calls += rank.collective_calls;
    totals.events_by_name += tally_by_name(file, rank).events;
    for (const CollectiveLine& line : rank.collectives) totals.sent_bytes += line.sent_bytes.value_or(0);
  }
  return totals;
}

std::vector<std::string> two_readings(const std::vector<TraceFile>& files, const Summary& summary) {
  if (files.empty() || summary.ranks.empty()) return {};
  const RankSummary& rank = summary.ranks.front();
  const NameTally by_name = tally_by_name(file_of(files, rank), rank);
  const std::int64_t busy = rank.computation_ns + rank.communication_ns - rank.overlap_ns;
  const bool device = rank.optimizer_host.ranges > 0;
  Table table({{rank.label}, {"as it is often read"}, {"read again"}}, 2);
  for (const auto& [what, often, again] : std::initializer_list<std::array<std::string, 3>>{
           {"collectives", fmt::format("{} events with their names", by_name.events),
            count_text(rank.collective_calls, "call")},
           {"their time", fmt::format("{} ms, these events added up", ms_text(by_name.total_ns)),
            fmt::format("{} ms, the union of the calls", ms_text(rank.communication_ns))},
           {"busy", fmt::format("{} ms, kernels added up", ms_text(rank.computation_ns + rank.communication_sum_ns)),
            fmt::format("{} ms, their union, of {} ms", ms_text(busy), ms_text(rank.span_ns))},
           {"overlap", "not looked at",
            fmt::format("{} ms, {} of the communication", ms_text(rank.overlap_ns),
                        percent_text(rank.overlap_share().value_or(0)))},
           {"optimizer", device ? share_text(rank.optimizer_host) + ", on the host" : "the same: there is no device",
            share_text(rank.optimizer_device)},
           {"waiting", "one rank can't tell",
            rank.waiting.matched_calls > 0
                ? fmt::format("{} ms, until the last rank came", ms_text(rank.waiting.waiting_ns))
                : "other ranks were not traced"}})
    table.row({what, often, again});
  return table.lines();
}

}  // namespace muonwalk::sim
