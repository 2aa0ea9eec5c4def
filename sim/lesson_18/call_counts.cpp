#include "sim/lesson_18/call_counts.hpp"

#include <fmt/format.h>

#include "sim/analyser/trace_reader.hpp"
#include "sim/recording/chrome_trace_writer.hpp"

namespace muonwalk::sim {
namespace {

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
      for (const GroupKind kind : {GroupKind::dp, GroupKind::tp, GroupKind::pp})
        if (line.group == group_name(kind))
          add_calls(counts, rank, collective_name(line.kind), element_name(line.type),
                    group_ranks_text(run.grid, kind, rank), line.calls, line.traffic.bytes_sent);
  }
  return counts;
}

TraceFile written_and_read(const RunTrace& run) {
  return read_trace_text("the run's own trace", chrome_trace_text(run));
}

}  // namespace muonwalk::sim
