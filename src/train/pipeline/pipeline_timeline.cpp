#include "src/train/pipeline/pipeline_timeline.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>

namespace muonwalk::sim {
namespace {

using Kind = PipelineMove::Kind;

const std::vector<PipelineSpan>& spans_of(const PipelineTimeline& timeline, int stage) {
  return timeline.stages.at(static_cast<std::size_t>(stage));
}

// When a stage has ended its moves, [kind][micro-batch]; those that it has not made are missing.
using Ends = std::array<std::map<int, std::int64_t>, 2>;

// Where a move's input comes from: the stage before, going forward; the one behind, going backward.
int stage_before(int stage, PipelineMove move) { return move.kind == Kind::forward ? stage - 1 : stage + 1; }

}  // namespace

Interval PipelineTimeline::extent() const {
  Interval extent;
  bool any = false;
  for (const auto& spans : stages)
    for (const PipelineSpan& span : spans) {
      extent.begin = any ? std::min(extent.begin, span.time.begin) : span.time.begin;
      extent.end = any ? std::max(extent.end, span.time.end) : span.time.end;
      any = true;
    }
  return extent;
}

int PipelineTimeline::micro_batches() const {
  std::set<int> numbers;
  if (!stages.empty())
    for (const PipelineSpan& span : stages[0]) numbers.insert(span.move.micro_batch);
  return static_cast<int>(numbers.size());
}

std::int64_t PipelineTimeline::busy(int stage) const {
  std::int64_t time = 0;
  for (const PipelineSpan& span : spans_of(*this, stage)) time += span.time.end - span.time.begin;
  return time;
}

std::int64_t PipelineTimeline::idle(int stage) const {
  const Interval all = extent();
  return all.end - all.begin - busy(stage);
}

double PipelineTimeline::bubble(int stage) const {
  const std::int64_t useful = busy(stage);
  return useful == 0 ? 0 : static_cast<double>(idle(stage)) / static_cast<double>(useful);
}

PipelineTimeline play_pipeline(PipelineSchedule schedule, int stages, int micro_batches, std::int64_t forward,
                               std::int64_t backward) {
  if (stages < 1) throw std::invalid_argument("a pipeline needs at least one stage");
  if (forward < 0 || backward < 0) throw std::invalid_argument("no move takes less than no time");
  const auto count = static_cast<std::size_t>(stages);
  std::vector<std::vector<PipelineMove>> moves;
  for (int s = 0; s < stages; ++s) moves.push_back(pipeline_moves(schedule, stages, s, micro_batches));
  std::vector<Ends> ends(count);
  PipelineTimeline played;
  played.stages.resize(count);
  // Stage after stage makes as many moves as it has the input for, until none of them can make another one.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < count; ++s) {
      auto& spans = played.stages[s];
      for (; spans.size() < moves[s].size(); moved = true) {
        const PipelineMove move = moves[s][spans.size()];
        const auto kind = static_cast<std::size_t>(move.kind);
        std::int64_t begin = spans.empty() ? 0 : spans.back().time.end;
        const int from = stage_before(static_cast<int>(s), move);
        if (from >= 0 && from < stages) {
          const auto& sent = ends[static_cast<std::size_t>(from)][kind];
          const auto found = sent.find(move.micro_batch);
          if (found == sent.end()) break;
          begin = std::max(begin, found->second);
        }
        const std::int64_t end = begin + (move.kind == Kind::forward ? forward : backward);
        spans.push_back({move, {begin, end}});
        ends[s][kind][move.micro_batch] = end;
      }
    }
  }
  for (std::size_t s = 0; s < count; ++s)
    if (played.stages[s].size() < moves[s].size())
      throw std::logic_error("the stages of a pipeline wait for each other");
  return played;
}

}  // namespace muonwalk::sim
