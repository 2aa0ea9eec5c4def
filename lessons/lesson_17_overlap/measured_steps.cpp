#include "lessons/lesson_17_overlap/measured_steps.hpp"

#include <algorithm>

#include "src/numerics/interval_set.hpp"
#include "src/text/table.hpp"

namespace muonwalk::sim {
namespace {

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
