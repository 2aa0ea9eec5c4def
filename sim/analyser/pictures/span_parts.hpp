#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// The parts that the span of a rank falls into: each moment is in one of them.
enum class SpanPart { computation_alone, overlap, communication_alone, copies_alone, idle };
/// How many parts there are.
constexpr int kSpanParts = 5;

/// "computation alone", "computation and communication", …: a part in the words of the pictures.
const char* span_part_text(SpanPart part);

/// How long each part of the span is, in nanoseconds; they add up to RankSummary::span_ns.
std::array<std::int64_t, kSpanParts> span_parts(const RankSummary& summary);

/// "12.34 ms, 5.6 %": a part of a span, and its share; the share is left out when the span is empty.
std::string span_part_figures(std::int64_t part_ns, std::int64_t span_ns);

}  // namespace muonwalk::sim
