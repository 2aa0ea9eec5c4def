#include "sim/analyser/pictures/span_parts.hpp"

#include <fmt/format.h>

#include "sim/analyser/figure_table.hpp"

namespace muonwalk::sim {

const char* span_part_text(SpanPart part) {
  switch (part) {
    case SpanPart::computation_alone:
      return "computation alone";
    case SpanPart::overlap:
      return "overlap";
    case SpanPart::communication_alone:
      return "communication alone";
    case SpanPart::copies_alone:
      return "copies alone";
    case SpanPart::idle:
      break;
  }
  return "idle";
}

std::array<std::int64_t, kSpanParts> span_parts(const RankSummary& summary) {
  const std::int64_t computing_or_communicating =
      summary.computation_ns + summary.communication_ns - summary.overlap_ns;
  return {summary.computation_ns - summary.overlap_ns, summary.overlap_ns,
          summary.communication_ns - summary.overlap_ns, summary.span_ns - summary.idle_ns - computing_or_communicating,
          summary.idle_ns};
}

std::string span_part_figures(std::int64_t part_ns, std::int64_t span_ns) {
  if (span_ns <= 0) return fmt::format("{} ms", ms_text(part_ns));
  return fmt::format("{} ms, {}", ms_text(part_ns),
                     percent_text(static_cast<double>(part_ns) / static_cast<double>(span_ns)));
}

}  // namespace muonwalk::sim
