#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// What one rank did in one step that had moves in it.
struct StageStep {
  std::string title;
  std::vector<PipelineSpan> spans;
};

// A call that stages make with each other, not those that share one.
bool between_stages(const RankTrace& rank, const Span& span) {
  if (span.kind != SpanKind::call || span.group >= rank.groups.size()) return false;
  const std::string& group = rank.groups[span.group].name;
  return group == "pp" || group == "first and last stage";
}

// Phase number `phase` of a rank, without its calls between stages, and without what comes directly before a receive.
std::vector<PipelineSpan> work_in(const RankTrace& rank, std::size_t phase, PipelineMove move) {
  std::vector<PipelineSpan> work;
  std::int64_t since = rank.spans[phase].begin_ns;
  const std::int64_t end = rank.spans[phase].end_ns;
  for (std::size_t i = phase + 1; i < rank.spans.size() && rank.spans[i].begin_ns < end; ++i) {
    const Span& call = rank.spans[i];
    if (!between_stages(rank, call)) continue;
    if (call.collective != CollectiveKind::recv && call.begin_ns > since)
      work.push_back({move, {since, call.begin_ns}});
    since = call.end_ns;
  }
  if (end > since) work.push_back({move, {since, end}});
  return work;
}

std::vector<StageStep> steps_with_moves(const RankTrace& rank) {
  std::vector<StageStep> steps;
  StageStep step;
  const auto end_step = [&] {
    if (!step.spans.empty()) steps.push_back(std::move(step));
    step = StageStep();
  };
  for (std::size_t i = 0; i < rank.spans.size(); ++i) {
    const Span& span = rank.spans[i];
    if (span.kind != SpanKind::step && span.kind != SpanKind::phase) continue;
    const std::string& name = rank.names.at(static_cast<std::size_t>(span.name));
    if (span.kind == SpanKind::step) {
      end_step();
      step.title = name;
    } else if (const std::optional<PipelineMove> move = move_of_name(name)) {
      const std::vector<PipelineSpan> work = work_in(rank, i, *move);
      step.spans.insert(step.spans.end(), work.begin(), work.end());
    }
  }
  end_step();
  return steps;
}

// The micro-batches that went in this direction.
std::set<int> numbers_of(const std::vector<PipelineSpan>& spans, PipelineMove::Kind kind) {
  std::set<int> numbers;
  for (const PipelineSpan& span : spans)
    if (span.move.kind == kind) numbers.insert(span.move.micro_batch);
  return numbers;
}

bool whole(const PipelineTimeline& timeline) {
  const auto first = numbers_of(timeline.stages.at(0), PipelineMove::Kind::forward);
  return std::all_of(timeline.stages.begin(), timeline.stages.end(), [&](const auto& spans) {
    return numbers_of(spans, PipelineMove::Kind::forward) == first &&
           numbers_of(spans, PipelineMove::Kind::backward) == first;
  });
}

void begin_at_zero(PipelineTimeline& timeline) {
  const std::int64_t zero = timeline.extent().begin;
  for (auto& spans : timeline.stages)
    for (PipelineSpan& span : spans) span.time = {span.time.begin - zero, span.time.end - zero};
}

}  // namespace

NamedTimelines measured_timelines(const RunTrace& run) {
  std::vector<std::vector<StageStep>> of_stages;
  for (int stage = 0; stage < run.grid.pp(); ++stage) {
    const auto rank = static_cast<std::size_t>(run.grid.rank(0, 0, stage));
    if (rank >= run.ranks.size()) return {};
    of_stages.push_back(steps_with_moves(run.ranks[rank]));
  }
  NamedTimelines measured;
  for (std::size_t i = 0; i < of_stages[0].size(); ++i) {
    const std::string title = of_stages[0][i].title;
    PipelineTimeline timeline;
    timeline.clock = PipelineClock::nanoseconds;
    for (auto& steps : of_stages)
      if (i < steps.size() && steps[i].title == title) timeline.stages.push_back(std::move(steps[i].spans));
    if (timeline.stages.size() < of_stages.size() || !whole(timeline)) continue;
    begin_at_zero(timeline);
    measured.emplace_back(title, std::move(timeline));
  }
  return measured;
}

std::string measured_bubbles(const NamedTimelines& measured) {
  std::vector<std::string> lines;
  for (const auto& [title, timeline] : measured) {
    const Interval extent = timeline.extent();
    append(lines, wrap_text(fmt::format("measured, {} · {} ms · {}", shorten(visible_name(title), 40),
                                        ms_text(extent.end - extent.begin), bubble_text(timeline)),
                            4));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace muonwalk::sim
