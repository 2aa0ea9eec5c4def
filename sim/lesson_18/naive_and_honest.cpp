#include "sim/lesson_18/naive_and_honest.hpp"

#include <fmt/format.h>

#include <set>

#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/name_match.hpp"

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

}  // namespace

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

std::vector<std::string> naive_and_honest(const std::vector<TraceFile>& files, const Summary& summary) {
  if (files.empty() || summary.ranks.empty()) return {};
  const RankSummary& rank = summary.ranks.front();
  const NameTally by_name = tally_by_name(file_of(files, rank), rank);
  const std::int64_t busy = rank.computation_ns + rank.communication_ns - rank.overlap_ns;
  const bool device = rank.optimizer_host.ranges > 0;
  std::vector<std::vector<std::string>> rows = {
      {rank.label, "as it is often read", "read again"},
      {"  collectives", fmt::format("{} events with their names", by_name.events),
       fmt::format("{} {}", rank.collective_calls, rank.collective_calls == 1 ? "call" : "calls")},
      {"  their time", fmt::format("{} ms, these events added up", ms_text(by_name.total_ns)),
       fmt::format("{} ms, the union of the calls", ms_text(rank.communication_ns))},
      {"  busy", fmt::format("{} ms, kernels added up", ms_text(rank.computation_ns + rank.communication_sum_ns)),
       fmt::format("{} ms, their union, of {} ms", ms_text(busy), ms_text(rank.span_ns))},
      {"  overlap", "not looked at",
       fmt::format("{} ms, {} of the communication", ms_text(rank.overlap_ns),
                   percent_text(rank.overlap_share().value_or(0)))},
      {"  optimizer", device ? share_text(rank.optimizer_host) + ", on the host" : "the same: there is no device",
       share_text(rank.optimizer_device)},
      {"  waiting", "one rank can't tell",
       rank.waiting.matched_calls > 0 ? fmt::format("{} ms, until the last rank came", ms_text(rank.waiting.waiting_ns))
                                      : "other ranks were not traced"}};
  return figure_table(rows, 3);
}

}  // namespace muonwalk::sim
