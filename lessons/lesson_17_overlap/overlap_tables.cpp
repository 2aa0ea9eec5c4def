#include "lessons/lesson_17_overlap/overlap_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/numerics/interval_set.hpp"
#include "src/text/table.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kNeutral = 0.02;

std::string ms(std::int64_t ns) { return fixed_text(double(ns) / 1e6, 2); }

// What rank 0 sends in the gathers of the buckets.
Traffic gathered_by_rank_0(const PlannedStep& way) {
  Traffic traffic;
  for (const PlannedCall& each : calls_of(way.plans.at(0)))
    if (each.phase == phases::dp_gather && each.call.kind == CollectiveKind::send) traffic += each.traffic;
  return traffic;
}

const std::string& name_of(const RankTrace& rank, const Span& span) { return rank.names.at(std::size_t(span.name)); }

// What of a rank's time belongs to the part of a step that is measured; empty where the step has no such part.
Interval measured_part(const RankTrace& rank, const std::string& title, const std::string& from,
                       const std::string& to) {
  Interval part;
  bool in_step = false;
  for (const Span& span : rank.spans) {
    if (span.kind == SpanKind::step) in_step = name_of(rank, span) == title;
    if (span.kind != SpanKind::phase || !in_step) continue;
    if (name_of(rank, span) == from && part.begin == 0) part = {span.begin_ns, span.begin_ns};
    if (name_of(rank, span) == to && part.begin != 0) return {part.begin, span.begin_ns};
  }
  return {};
}

// Every title once, in the order of the steps.
std::vector<std::string> step_titles(const RunTrace& run) {
  std::vector<std::string> titles;
  if (run.ranks.empty()) return titles;
  for (const Span& span : run.ranks[0].spans)
    if (span.kind == SpanKind::step &&
        std::find(titles.begin(), titles.end(), name_of(run.ranks[0], span)) == titles.end())
      titles.push_back(name_of(run.ranks[0], span));
  return titles;
}

}  // namespace

PlannedStep planned_step(const std::string& name, const Layout& layout, const MuonSettings& settings,
                         Schedule schedule) {
  PlannedStep way{name, layout, {}};
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    way.plans.push_back(overlapped_plan(layout, layout.grid.place(rank), settings, schedule));
  return way;
}

std::string ways_table(const std::vector<PlannedStep>& ways) {
  Table table({{"way"},
               {"buckets", number_text},
               {"messages", number_text},
               {"bytes sent", bytes_text},
               {"Newton–Schulz", Digits{1, "MFLOP"}},
               {"peak elements", number_text}});
  for (const PlannedStep& way : ways) {
    const Traffic traffic = gathered_by_rank_0(way);
    double most = 0;
    Index peak = 0;
    for (const Plan& plan : way.plans) {
      most = std::max(most, flops(plan, phases::orthogonalize));
      peak = std::max(peak, peak_elements(plan));
    }
    table.row({way.name, way.layout.all_buckets().size(), traffic.messages_sent, traffic.bytes_sent, most / 1e6, peak});
  }
  return table.text();
}

std::string machine_table(const std::vector<PlannedStep>& ways, const PlayedMachine& machine) {
  Table table({{link_speed_text(machine.link)},
               {"span", Digits{2, "ms"}},
               {"computing", ms},
               {"waiting", ms},
               {"under way, added up", ms},
               {"hidden", percent_text}});
  for (const PlannedStep& way : ways) {
    const PlayedPlan played = play_slowest(way.plans, way.layout, machine);
    table.row({way.name, double(played.span_ns) / 1e6, played.computing_ns, played.waiting_ns, played.under_way_ns(),
               played.hidden()});
  }
  return table.text();
}

std::string links_table(const std::vector<PlannedStep>& ways, const std::vector<LinkSpeed>& links,
                        double gigaflops_per_second) {
  if (ways.size() != 4) throw std::invalid_argument("links_table compares four ways");
  Table table({{"spans, ms"}});
  for (const PlannedStep& way : ways) table.column({way.name, ms});
  table.column({"overlap", Side::right});
  for (const LinkSpeed& link : links) {
    std::vector<std::int64_t> spans;
    for (const PlannedStep& way : ways)
      spans.push_back(play_slowest(way.plans, way.layout, {link, gigaflops_per_second}).span_ns);
    table.row({link_speed_text(link), spans[0], spans[1], spans[2], spans[3],
               verdict_on(spans[2], std::min(spans[0], spans[1]))});
  }
  return table.text();
}

std::string overlap_tables(const std::vector<PlannedStep>& ways, const PlayedMachine& machine) {
  static const std::vector<LinkSpeed> kLinks = {{100, 1},      {1, 20},     {0.1, 100}, {0.02, 200}, {0.002, 200},
                                                {0.0002, 200}, {0.1, 8000}, {1, 8000},  {1, 40000}};
  return fmt::format("{}\n\nin virtual time, at {:g} GFLOP/s; hidden: of the time under way, what work hid\n{}\n\n{}",
                     ways_table(ways), machine.gigaflops_per_second, machine_table(ways, machine),
                     links_table(ways, kLinks, machine.gigaflops_per_second));
}

std::string verdict_on(std::int64_t span_ns, std::int64_t without_ns) {
  const double change = without_ns == 0 ? 0 : static_cast<double>(span_ns) / static_cast<double>(without_ns) - 1;
  if (std::abs(change) <= kNeutral) return "neutral";
  return change < 0 ? fmt::format("pays, −{:.0f} %", -100 * change) : fmt::format("loses, +{:.0f} %", 100 * change);
}

std::vector<MeasuredStep> measured_steps(const RunTrace& run, const std::string& from, const std::string& to) {
  std::vector<MeasuredStep> steps;
  for (const std::string& title : step_titles(run)) {
    MeasuredStep step;
    step.title = title;
    std::int64_t first = 0, last = 0, ranks = 0, under_way_ns = 0, hidden_ns = 0;
    for (const RankTrace& rank : run.ranks) {
      const Interval part = measured_part(rank, title, from, to);
      if (part.end == part.begin) continue;
      std::vector<Interval> computing, under_way;
      std::int64_t since = part.begin;
      for (const Span& span : rank.spans) {
        if (span.begin_ns < part.begin || span.begin_ns >= part.end) continue;
        if (span.kind == SpanKind::call) {
          computing.push_back({since, span.begin_ns});
          step.in_calls_ns += span.end_ns - span.begin_ns;
          since = span.end_ns;
        }
        if (span.kind == SpanKind::received && span.collective == CollectiveKind::send) {
          under_way.push_back({span.begin_ns, span.end_ns});
          step.under_way_ns += span.end_ns - span.begin_ns;
        }
      }
      computing.push_back({since, part.end});
      for (const Interval& each : computing) step.computing_ns += each.end - each.begin;
      first = ranks++ == 0 ? part.begin : std::min(first, part.begin);
      last = std::max(last, part.end);
      under_way_ns += IntervalSet(under_way).length();
      hidden_ns += intersected(IntervalSet(under_way), IntervalSet(computing)).length();
    }
    if (ranks == 0) continue;
    step.span_ns = last - first;
    for (std::int64_t* mean : {&step.computing_ns, &step.in_calls_ns, &step.under_way_ns}) *mean /= ranks;
    step.hidden = under_way_ns == 0 ? 0 : double(hidden_ns) / double(under_way_ns);
    steps.push_back(step);
  }
  return steps;
}

std::string measured_table(const std::vector<MeasuredStep>& steps) {
  Table table({{"measured here, ms"},
               {"span", ms_text},
               {"computing", ms_text},
               {"in calls", ms_text},
               {"under way, added up", ms_text},
               {"hidden", percent_text}},
              2);
  for (const MeasuredStep& step : steps)
    table.row({step.title, step.span_ns, step.computing_ns, step.in_calls_ns, step.under_way_ns, step.hidden});
  return table.text();
}

}  // namespace muonwalk::sim
