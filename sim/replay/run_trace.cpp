#include "sim/replay/run_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace muonwalk::sim {

std::vector<ComputationSlice> computation_of(const RankTrace& rank) {
  const std::int64_t known_until = rank.dropped > 0 ? rank.full_since_ns : std::numeric_limits<std::int64_t>::max();
  std::vector<ComputationSlice> slices;
  // From `since` on the rank is by itself, until something begins or what it is in ends.
  std::int64_t since = 0, step_end = 0, phase_end = 0;
  std::string step, phase;
  const auto compute_until = [&](std::int64_t moment) {
    const auto add = [&](std::int64_t end, const std::string& name) {
      end = std::min(end, known_until);
      if (since < end) slices.push_back({since, end, name});
      since = std::max(since, end);
    };
    if (since < phase_end) add(std::min(moment, phase_end), phase);
    add(std::min(moment, step_end), step);
  };
  for (const Span& span : rank.spans) {
    if (span.kind == SpanKind::sent || span.kind == SpanKind::received) continue;
    compute_until(span.begin_ns);
    if (span.kind == SpanKind::call) {
      since = std::max(since, span.end_ns);
      continue;
    }
    since = span.begin_ns;
    const std::string& name = rank.names[static_cast<std::size_t>(span.name)];
    if (span.kind == SpanKind::step) {
      step = name;
      step_end = span.end_ns;
    } else {
      phase = name;
      phase_end = span.end_ns;
    }
  }
  compute_until(step_end);
  return slices;
}

bool is_optimizer_step(const std::string& title) {
  return title.rfind("optimizer step", 0) == 0 || title.rfind("training step", 0) == 0;
}

std::string group_ranks_text(const Group& group) { return fmt::format("[{}]", fmt::join(group.ranks, ", ")); }

}  // namespace muonwalk::sim
