#include "tools/check/trace_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"
#include "tools/check/dump.hpp"
#include "tools/trace/published.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::check {
namespace {

using sim::Collective, sim::EventClass, sim::Interval, sim::TraceEvent, sim::TraceFile;

// A collective and its group, "dp".
using CallKind = std::pair<Collective, std::string>;
struct Tally {
  std::int64_t calls = 0, bytes = 0;
  bool sized = true;  // all of the calls say how many bytes
};
using Tallies = std::map<CallKind, Tally>;
const CallKind kNewtonSchulz = {Collective{}, ""};  // no collective has no group; before all of them

std::string call_text(const CallKind& kind) {
  return kind == kNewtonSchulz ? "Newton–Schulz"
                               : fmt::format("{} over {}", sim::collective_text(kind.first), kind.second);
}

// The group of a call: that of these ranks, or else, where a trace names none, the one of that size.
std::string group_of(const TraceFile& file, const sim::CollectiveCall& call, const Grid& grid, int rank) {
  const std::string said = file.text_of(call.group);
  for (const bool by_size : {false, true})
    for (const char* name : {"dp", "tp"})
      if (by_size ? call.group_size == grid.size(name)
                  : said == fmt::format("[{}]", fmt::join(grid.group(name, rank).ranks, ", ")))
        return name;
  return fmt::format("{} ranks", call.group_size);
}

void add(Tallies& tallies, const CallKind& kind, std::int64_t bytes) {
  if (kind.first == Collective::barrier || kind.first == Collective::other) return;
  Tally& tally = tallies[kind];
  ++tally.calls;
  tally.bytes += bytes;
  // An all_to_all of a plan has no piece for the rank itself, and one of a program has.
  tally.sized &= bytes >= 0 && kind.first != Collective::all_to_all;
}

// The ranges of the optimizer's steps, in order: on the device where it has some, as its kernels come later than the
// host's calls.
std::vector<Interval> optimizer_ranges(const TraceFile& file, int rank) {
  const std::vector<Interval> on_device = sim::optimizer_ranges(file, rank, EventClass::device_range);
  return on_device.empty() ? sim::optimizer_ranges(file, rank, EventClass::host_range) : on_device;
}

Tallies traced(const TraceFile& file, int rank, const Grid& grid, const std::vector<Interval>& ranges) {
  Tallies tallies;
  const int number = file.ranks[static_cast<std::size_t>(rank)].rank;
  const EventClass counted = sim::communication_class(sim::time_basis(file, rank));
  for (const TraceEvent& event : file.events_of(rank)) {
    const sim::CollectiveCall* call = file.call_of(event);
    if (event.event_class != counted || call == nullptr || call->group_size < 2) continue;
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), event.begin_ns,
                                        [](std::int64_t at, const Interval& range) { return at < range.begin; });
    if (ranges.empty() || (after != ranges.begin() && event.begin_ns < std::prev(after)->end))
      add(tallies, {call->collective, group_of(file, *call, grid, number)}, call->message_bytes);
  }
  const std::int64_t products = sim::match_names(file, "newton", rank).of(EventClass::host_range).events;
  if (products > 0) tallies[kNewtonSchulz] = {products, 0, false};
  return tallies;
}

// Of as many steps as the strategy takes until it does the same again.
Tallies planned(const MeantStep& meant, const Layout& layout, const Place& place) {
  Tallies tallies;
  for (int step = 0; step < meant.strategy.period; ++step) {
    const Plan plan = meant.strategy.optimizer(layout, meant.settings, step)->plan(layout, place);
    for (const PlannedCall& each : calls_of(plan)) {
      const Call& call = each.call;
      const bool weights = each.phase == phases::gather_weights;
      const bool elsewhere =
          weights ? meant.weight_bytes == 0 : meant.reduced_before && each.phase == phases::reduce_gradients;
      if (plan.grid.size(call.group) < 2 || elsewhere) continue;
      const bool in = call.kind == CollectiveKind::all_to_all || call.elements_in > call.elements_out;
      add(tallies, {sim::collective_of(collective_name(call.kind)), call.group},
          (in ? call.elements_in : call.elements_out) * (weights ? meant.weight_bytes : element_size(call.type)));
    }
    if (const Index products = count(plan, phases::orthogonalize); products > 0)
      tallies[kNewtonSchulz] = {tallies[kNewtonSchulz].calls + products, 0, false};
  }
  return tallies;
}

// What a rank did and what it should have done, a line for each kind of call; both in so many steps, so that whole
// numbers are compared.
struct Compared {
  int rank;
  CallKind kind;
  std::int64_t steps;
  Tally is, should;

  bool equal() const { return is.calls == should.calls && (!is.sized || !should.sized || is.bytes == should.bytes); }
};

struct RankTrace {
  int rank;
  std::int64_t steps;
  Tallies tallies;
};

std::vector<Compared> compared(const std::vector<RankTrace>& ranks, const MeantStep& meant) {
  const Layout layout = meant.strategy.lay_out(meant.matrices, meant.grid, meant.bucket);
  std::vector<Compared> lines;
  for (const RankTrace& rank : ranks) {
    const Tallies plan = planned(meant, layout, meant.grid.place(rank.rank));
    Tallies kinds = rank.tallies;
    kinds.insert(plan.begin(), plan.end());
    if (rank.tallies.count(kNewtonSchulz) == 0) kinds.erase(kNewtonSchulz);  // it has no name in this trace
    const auto times = [](const Tallies& of, const CallKind& kind, std::int64_t factor) {
      const auto found = of.find(kind);
      return found == of.end() ? Tally()
                               : Tally{found->second.calls * factor, found->second.bytes * factor, found->second.sized};
    };
    for (const auto& [kind, tally] : kinds)
      lines.push_back({rank.rank, kind, rank.steps * meant.strategy.period,
                       times(rank.tallies, kind, meant.strategy.period), times(plan, kind, rank.steps)});
  }
  return lines;
}

bool all_equal(const std::vector<Compared>& lines) {
  return std::all_of(lines.begin(), lines.end(), [](const Compared& line) { return line.equal(); });
}

// The known way in which what differs does so: its kind in the catalogue, and a sentence.
std::pair<std::string, std::string> way_to_differ(const std::vector<Compared>& lines,
                                                  const std::vector<RankTrace>& ranks, const MeantStep& meant) {
  const auto all = [&](const auto& holds) { return std::all_of(lines.begin(), lines.end(), holds); };
  // Of Newton–Schulz, which comes first where it has a name; new weights may be gathered once all the same.
  const Compared& first = lines.front();
  const std::int64_t factor = first.should.calls > 0 ? first.is.calls / first.should.calls : 0;
  if (factor > 1 && all([&](const Compared& line) {
        return line.is.calls == factor * line.should.calls || (first.kind == kNewtonSchulz && line.kind != first.kind);
      }))
    return {"micro_batch_steps", fmt::format("{} comes {} times as often", call_text(first.kind), factor)};
  if (all([](const Compared& line) {
        return line.equal() || (line.should.calls == 0 && line.kind.first == Collective::all_reduce && line.is.sized &&
                                line.is.bytes <= 64 * line.is.calls);
      }))
    return {"norm_after_step", "the plan's calls are all there, and beside them an all_reduce of a number or a few"};
  const auto fits = [&](const Strategy& strategy, Precision precision) {
    MeantStep other = meant;
    other.strategy = strategy;
    other.settings.newton_schulz.precision = precision;
    try {
      return all_equal(compared(ranks, other));
    } catch (const UsageError&) {  // it can't work with these matrices
      return false;
    }
  };
  if (fits(meant.strategy, Precision::fp32))
    return {"gathered_unrounded", "the calls are the plan's, with float32 where that has bfloat16"};
  for (const Strategy& other : strategies())
    if (fits(other, meant.settings.newton_schulz.precision))
      return {"another_strategy", fmt::format("the calls are those of \"{}\"", other.name)};
  if (all([](const Compared& line) {
        return line.is.calls == line.should.calls && line.is.bytes >= line.should.bytes;
      }))
    return {"padded_calls", "the calls are the plan's, with more bytes than there are elements"};
  return {"", "calls or bytes differ, in no way that the catalogue knows"};
}

}  // namespace

std::vector<Parameter> matrices_of(const std::vector<std::string>& words) {
  static const std::regex form(R"(([1-9]\d{0,6})x([1-9]\d{0,6})(:rows|:columns)?(\*[1-9]\d{0,4})?)");
  std::vector<Parameter> matrices;
  for (const std::string& word : words) {
    std::smatch parts;
    if (!std::regex_match(word, parts, form))
      throw UsageError(
          fmt::format("--matrices {} lists no matrix; it takes ROWSxCOLS, with :rows or :columns where tp "
                      "cuts it, and *COUNT, for example 4096x1024:rows*24",
                      as_typed(word)));
    const SplitDim dim = !parts[3].matched ? SplitDim::none : parts[3] == ":rows" ? SplitDim::rows : SplitDim::columns;
    const int count = parts[4].matched ? std::stoi(parts[4].str().substr(1)) : 1;
    for (int i = 0; i < count; ++i)
      matrices.push_back({fmt::format("matrix {}", matrices.size()), {std::stoi(parts[1]), std::stoi(parts[2])}, dim});
  }
  return matrices;
}

std::pair<DumpVerdict, std::vector<std::string>> check_trace(const std::vector<TraceFile>& files,
                                                             const MeantStep& asked) {
  std::vector<RankTrace> ranks;
  bool reduces = false;
  for (const TraceFile& file : files)
    for (int at = 0; at < static_cast<int>(file.ranks.size()); ++at) {
      const sim::TraceRank& rank = file.ranks[static_cast<std::size_t>(at)];
      if (rank.rank >= asked.grid.size() || (rank.world_size > 0 && rank.world_size != asked.grid.size()))
        throw UsageError(
            fmt::format("{} is of rank {} of {}, and the plan is of {} = {} ranks; give --dp and --tp of that run",
                        in_quotes(file.path), rank.rank, rank.world_size, asked.grid.text(), asked.grid.size()));
      const std::vector<Interval> ranges = optimizer_ranges(file, at);
      const auto steps = static_cast<std::int64_t>(asked.steps > 0 ? asked.steps : ranges.size());
      if (steps == 0)
        throw UsageError(
            fmt::format("{} names no step of an optimizer (Optimizer.step#…); say how many it has with --steps",
                        in_quotes(file.path)));
      ranks.push_back({rank.rank, steps, traced(file, at, asked.grid, ranges)});
      for (const auto& [kind, tally] : ranks.back().tallies) reduces |= kind.first == Collective::reduce_scatter;
    }
  if (std::all_of(ranks.begin(), ranks.end(), [](const RankTrace& rank) { return rank.tallies.empty(); }))
    throw UsageError(
        "no collective lies in the optimizer's steps of these traces; record them with NCCL's or Gloo's calls");
  MeantStep meant = asked;
  meant.reduced_before = !reduces;
  const std::vector<Compared> found = compared(ranks, meant);

  DumpVerdict verdict;
  verdict.verdict = all_equal(found) ? Verdict::clean : Verdict::differs;
  if (verdict.verdict != Verdict::clean) {
    const auto [kind, sentence] = way_to_differ(found, ranks, meant);
    verdict.findings.push_back({kind, "", {}, sentence});
  }
  std::map<std::vector<std::string>, std::vector<int>> alike;  // what stands in a row → ranks
  std::set<std::string> calls;                                 // that differ
  for (const Compared& line : found) {
    const auto of_step = [&line](std::int64_t sum) {
      const double each = static_cast<double>(sum) / static_cast<double>(line.steps);
      return sum % line.steps == 0 ? number_text(sum / line.steps) : fixed_text(each, 2);
    };
    const auto bytes = [&](const Tally& tally) { return tally.sized ? of_step(tally.bytes) : "–"; };
    alike[{call_text(line.kind), of_step(line.is.calls), of_step(line.should.calls), bytes(line.is),
           bytes(line.should)}]
        .push_back(line.rank);
    const std::string name = fmt::format("rank {}, {}", line.rank, call_text(line.kind));
    verdict.parameters.emplace_back().name = name;
    verdict.parameters.back().verdict = line.equal() ? Verdict::clean : Verdict::differs;
    if (line.equal()) continue;
    verdict.findings[0].parameters.push_back(name);
    calls.insert(call_text(line.kind));
  }
  Table table({{"in a step"}, {"ranks"}});
  for (const char* column : {"calls", "planned", "bytes", "planned"}) table.column({column, Side::right});
  for (const auto& [row, of] : alike) table.row({row[0], ranks_list(of), row[1], row[2], row[3], row[4]});
  DumpVerdict printed = verdict;  // of each rank's calls, the table
  printed.parameters.clear();
  if (!printed.findings.empty()) printed.findings[0].parameters.assign(calls.begin(), calls.end());
  std::vector<std::string> text = verdict_text(printed);
  text.emplace_back();
  append(text, table.lines());
  return {verdict, text};
}

}  // namespace muonwalk::check
