#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
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

std::string name_of(const ComparedRun& run) { return fmt::format("{}, {}", run.optimizer, run.grid.text()); }

// Elements of state in one copy of it: Muon's DP ranks share one, and of AdamW's each has its own.
double one_copy(const ComparedRun& run) {
  const double elements = static_cast<double>(run.state_elements);
  return run.optimizer == "Muon" ? elements : elements / run.grid.dp();
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

ComparedRun compared_run(const std::string& optimizer, const Grid& grid, const TraceFile& file, const Summary& summary,
                         std::int64_t state_elements) {
  ComparedRun run{optimizer, grid, state_elements};
  for (const RankSummary& rank : summary.ranks) {
    run.calls += rank.collective_calls;
    run.events_by_name += tally_by_name(file, rank).events;
    for (const CollectiveLine& line : rank.collectives) run.sent_bytes += line.sent_bytes.value_or(0);
  }
  run.measured =
      fmt::format("measured on this machine: {}\n{}", name_of(run), lines_text(two_readings({file}, summary)));
  return run;
}

OwnRuns own_runs(const std::vector<ComparedRun>& runs) {
  const auto find = [&runs](const char* optimizer, int dp, int tp) -> const ComparedRun* {
    for (const ComparedRun& run : runs)
      if (run.optimizer == optimizer && run.grid.dp() == dp && run.grid.tp() == tp) return &run;
    return nullptr;
  };
  const ComparedRun *adamw = find("AdamW", 4, 1), *muon = find("Muon", 2, 2), *equal = find("Muon", 4, 1);
  const auto bytes_of = [](const ComparedRun& run) { return static_cast<double>(run.sent_bytes); };
  OwnRuns own;
  if (adamw != nullptr && muon != nullptr) own.bytes_ratio = bytes_of(*muon) / bytes_of(*adamw);
  if (adamw != nullptr && equal != nullptr) own.equal_grid_ratio = bytes_of(*equal) / bytes_of(*adamw);
  if (adamw != nullptr && muon != nullptr) own.state_ratio = one_copy(*muon) / one_copy(*adamw);
  return own;
}

std::string compared_runs_text(const std::vector<ComparedRun>& runs) {
  Table table({{"runs"},
               {"calls", number_text},
               {"events by name", number_text},
               {"bytes sent", number_text},
               {"state on all ranks", number_text}},
              2);
  for (const ComparedRun& run : runs)
    table.row({name_of(run), run.calls, run.events_by_name, run.sent_bytes, run.state_elements});
  std::vector<std::string> lines = table.lines();
  append(lines, published_claims_table(own_runs(runs)));
  return lines_text(lines);
}

const std::vector<ReadAgain> kReadAgain = {
    {"communication time, Muon / AdamW", "0.57", "0.594", 0.005, "kernels of rank 0, each once", true},
    {"calls of collectives, Muon and AdamW", "40 and 110", "10 and 25", 0.5,
     "a call is one kernel; its operator and its ranges, which bear its name, are not further calls"},
    {"communication per step, of both", "139.5 and 245.8 ms", "13.75 and 23.16 ms", 0.05,
     "kernels, each once, divided by the steps in the file"},
    {"the optimizer's share of a step, Muon", "1.1 %", "61.0 %", 0.05,
     "its time on the device, in that of the device; published: on the host, which only starts it"},
    {"forward and backward, of both", "271 and 281 ms", "157.85 and 149.40 ms", 0.5,
     "kernels that compute, united; published: half of the ranges of host and device together"},
    {"async against sync, times slower", "2.1 and 1.5", "0.90 and 0.99", 0.05,
     "how long the device took in all; a call beside computation takes longer, and yet saves time"}};

bool ReadAgain::holds() const { return std::abs(std::stod(again) - std::stod(published)) <= nearness; }

std::vector<std::string> published_claims_table(const OwnRuns& own) {
  Table table({{"claims"}, {"published"}, {"read again"}, {"verdict"}}, 2);
  std::vector<std::string> rules = {""};
  const auto verdict = [](bool holds) { return holds ? "holds" : "doesn't hold"; };
  for (const ReadAgain& each : kReadAgain) {
    table.row({each.words, each.published, each.again, verdict(each.holds())});
    rules.emplace_back(each.rule);
    if (each.of_bytes && own.bytes_ratio && own.equal_grid_ratio)
      rules.back() += fmt::format("; in bytes, our own runs: {:.3f} × on these grids, {:.3f} × on dp 4",
                                  *own.bytes_ratio, *own.equal_grid_ratio);
  }
  const std::string state = own.state_ratio ? fmt::format("{:.0f} %", 100 * *own.state_ratio) : "run all layouts";
  table.row(
      {"state per weight, Muon / AdamW", "50 %", state, own.state_ratio ? verdict(state == "50 %") : "can't tell"});
  rules.emplace_back("elements of one copy of the state, in our own runs");
  table.row({"the sweet spot is dp 2 × tp 2", "best of 3", "1 of 3", "can't tell"});
  rules.emplace_back("it takes a trace of each grid, and here is one");
  std::vector<std::string> lines;
  const std::vector<std::string> cells = table.lines();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(cells[i]);
    if (i > 0) lines.push_back("    " + rules[i]);
  }
  // The link is a line of its own, so that it can be followed.
  append(lines, wrap_text("source  Jen Wei, \"Distributed Muon: Field Notes & Reproducibility Artifacts\", 2025, as we "
                          "read its four traces; `muonwalk-trace published` reads them anew",
                          8));
  lines.emplace_back("        https://huggingface.co/datasets/bird-of-paradise/muon-distributed-reproducibility");
  return lines;
}

}  // namespace muonwalk::sim
