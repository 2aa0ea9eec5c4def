#include "tools/scale/predicted_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::int64_t kMostForwards = 100'000;  // over all stages

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// One rank, as its spans come.
class RankWriter {
 public:
  RankWriter(const Grid& grid, int stage) {
    const int number = grid.rank(0, 0, stage);
    // Whoever reads the trace looks for a rank's number, below the number of ranks that are in the trace.
    rank_.label = fmt::format("rank {} (stage {}, predicted)", stage, stage);
    for (const char* name : {"dp", "tp"}) rank_.groups.push_back(grid.group(name, number));
    rank_.groups.push_back({kFirstAndLastStage, {grid.rank(0, 0, 0), grid.rank(0, 0, grid.pp() - 1)}});
  }

  void span(SpanKind kind, const std::string& name, Interval time) {
    add(kind, time).name = static_cast<std::int32_t>(rank_.names.size());
    rank_.names.push_back(name);
  }

  void call(const TermKind& kind, std::int64_t bytes, Interval time) {
    Span& each = add(SpanKind::call, time);
    each.collective = kind.collective;
    each.type = ElementType::bytes;
    each.bytes = each.elements_in = bytes;
    for (std::size_t g = 0; g < rank_.groups.size(); ++g)
      if (rank_.groups[g].name == kind.group) each.group = static_cast<std::uint8_t>(g);
  }

  RankTrace finished() {
    const auto earlier = [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; };
    std::stable_sort(rank_.spans.begin(), rank_.spans.end(), earlier);
    return std::move(rank_);
  }

 private:
  Span& add(SpanKind kind, Interval time) {
    rank_.spans.emplace_back();
    rank_.spans.back().kind = kind;
    rank_.spans.back().begin_ns = time.begin;
    rank_.spans.back().end_ns = time.end;
    return rank_.spans.back();
  }

  RankTrace rank_;
};

}  // namespace

RunTrace predicted_trace(const StepQuestion& question, const StepPrediction& prediction) {
  const TrainingLayout& layout = question.layout;
  if (std::int64_t{layout.accumulation} * layout.pp > kMostForwards)
    throw UsageError(
        fmt::format("a trace of {} forwards is too large to look at; it can have {}, so take fewer "
                    "micro-batches",
                    number_text(std::int64_t{layout.accumulation} * layout.pp), number_text(kMostForwards)));
  RunTrace run;
  run.name = "muonwalk-scale";
  run.title =
      fmt::format("Predicted: {} on {}, {}", question.model.name, visible_name(question.cluster.name), text(layout));
  run.grid = Grid().dp(layout.dp).tp(layout.tp).pp(layout.pp);
  run.precision = "bf16";
  run.backend = "predicted";

  double pipeline = 0;  // seconds before the last micro-batch has ended
  for (const Term& term : prediction.seconds)
    if (term.kind->when != TermKind::at_the_end) pipeline += term.amount;
  const double slots = layout.accumulation + layout.pp - 1;
  const std::int64_t forward = std::max<std::int64_t>(1, nanoseconds(pipeline / slots / 3));
  const PipelineTimeline timeline =
      play_pipeline(PipelineSchedule::one_f_one_b, layout.accumulation, equal_times(layout.pp, forward, 2 * forward));
  // What was rounded in one slot is not to add up over thousands of them.
  const double stretch = pipeline * 1e9 / static_cast<double>(timeline.extent().end);
  const auto stretched = [stretch](Interval time) {
    const auto at = [stretch](std::int64_t ns) { return std::llround(stretch * static_cast<double>(ns)); };
    return Interval{at(time.begin), at(time.end)};
  };
  const std::int64_t end = nanoseconds(prediction.step_seconds());
  for (int stage = 0; stage < layout.pp; ++stage) {
    RankWriter rank(run.grid, stage);
    rank.span(SpanKind::step, "training step 1", {0, end});
    for (const PipelineSpan& move : timeline.stages[static_cast<std::size_t>(stage)])
      rank.span(SpanKind::phase, move_name(move.move), stretched(move.time));
    double now = pipeline;
    for (const Term& term : prediction.seconds) {
      if (term.kind->when != TermKind::at_the_end || term.amount <= 0) continue;
      const double until = now + term.amount;
      const Interval time{nanoseconds(now), std::min(nanoseconds(until), end)};
      now = until;
      if (term.kind->group != nullptr)
        rank.call(*term.kind, std::llround(term.bytes_sent), time);
      else
        rank.span(SpanKind::phase, fmt::format("optimizer: {}", term.kind->name), time);
    }
    run.ranks.push_back(rank.finished());
  }
  return run;
}

}  // namespace muonwalk::sim
