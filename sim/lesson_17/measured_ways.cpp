#include "sim/lesson_17/measured_ways.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// What of a rank's time belongs to the part of a step that is measured; empty where the step has no such part.
Interval measured_part(const RankTrace& rank, const std::string& title, const std::string& from,
                       const std::string& to) {
  Interval part;
  bool in_step = false;
  for (const Span& span : rank.spans) {
    if (span.kind != SpanKind::step && span.kind != SpanKind::phase) continue;
    const std::string& name = rank.names[static_cast<std::size_t>(span.name)];
    if (span.kind == SpanKind::step) in_step = name == title;
    if (span.kind == SpanKind::step || !in_step) continue;
    if (name == from && part.begin == 0) part = {span.begin_ns, span.begin_ns};
    if (name == to && part.begin != 0) return {part.begin, span.begin_ns};
  }
  return {};
}

// Every title once, in the order of the steps.
std::vector<std::string> step_titles(const RunTrace& run) {
  std::vector<std::string> titles;
  if (run.ranks.empty()) return titles;
  const RankTrace& rank = run.ranks[0];
  for (const Span& span : rank.spans) {
    if (span.kind != SpanKind::step) continue;
    const std::string& title = rank.names[static_cast<std::size_t>(span.name)];
    if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
  }
  return titles;
}

bool begins_within(const Span& span, const Interval& part) {
  return span.begin_ns >= part.begin && span.begin_ns < part.end;
}

}  // namespace

std::vector<MeasuredWay> measured_ways(const RunTrace& run, const std::string& from, const std::string& to) {
  std::vector<MeasuredWay> ways;
  for (const std::string& title : step_titles(run)) {
    MeasuredWay way;
    way.title = title;
    std::int64_t first = 0, last = 0, ranks = 0, union_ns = 0, both_ns = 0;
    for (const RankTrace& rank : run.ranks) {
      const Interval part = measured_part(rank, title, from, to);
      if (part.end == part.begin) continue;
      std::vector<Interval> calls, computing, under_way;
      std::int64_t since = part.begin;
      for (const Span& span : rank.spans) {
        if (!begins_within(span, part)) continue;
        if (span.kind == SpanKind::call) {
          computing.push_back({since, span.begin_ns});
          calls.push_back({span.begin_ns, span.end_ns});
          since = span.end_ns;
        }
        if (span.kind == SpanKind::received && span.collective == CollectiveKind::send)
          under_way.push_back({span.begin_ns, span.end_ns});
      }
      computing.push_back({since, part.end});
      first = ranks++ == 0 ? part.begin : std::min(first, part.begin);
      last = std::max(last, part.end);
      way.computing_ns += sum_of(computing);
      way.in_calls_ns += sum_of(calls);
      way.under_way_ns += sum_of(under_way);
      const IntervalSet travelling(under_way);
      union_ns += travelling.length();
      both_ns += intersected(travelling, IntervalSet(computing)).length();
    }
    if (ranks == 0) continue;
    way.span_ns = last - first;
    for (std::int64_t* mean : {&way.computing_ns, &way.in_calls_ns, &way.under_way_ns}) *mean /= ranks;
    way.hidden = union_ns == 0 ? 0 : static_cast<double>(both_ns) / static_cast<double>(union_ns);
    ways.push_back(way);
  }
  return ways;
}

std::string measured_table(const std::vector<MeasuredWay>& ways) {
  std::vector<std::vector<std::string>> rows = {
      {"measured here, ms", "span", "computing", "in calls", "under way, added up", "hidden"}};
  for (const MeasuredWay& way : ways)
    rows.push_back({"  " + way.title, ms_text(way.span_ns), ms_text(way.computing_ns), ms_text(way.in_calls_ns),
                    ms_text(way.under_way_ns), percent_text(way.hidden)});
  return joined_table(rows, 1);
}

}  // namespace muonwalk::sim
