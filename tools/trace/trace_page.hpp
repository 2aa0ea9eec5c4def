#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/trace/summary.hpp"
#include "tools/trace/timeline.hpp"

namespace muonwalk::sim {

/// The parts that the span of a rank falls into: each moment is in one of them.
enum class SpanPart { computation_alone, overlap, communication_alone, copies_alone, idle };
constexpr int kSpanParts = 5;

/// How long each part of the span is, in nanoseconds; they add up to RankSummary::span_ns.
std::array<std::int64_t, kSpanParts> span_parts(const RankSummary& summary);

/// A run, ready to be drawn.
struct PictureRun {
  std::string name;  ///< The lesson's name, or the file's.
  Timeline timeline;
  Summary summary;
};

/// What a page shows: one run, or several below each other on one time scale, each from its own beginning.
struct TracePicture {
  std::vector<PictureRun> runs;       ///< From top to bottom.
  std::vector<std::string> warnings;  ///< Sentences on why the runs are not comparable.
};

/// Lays out what was read of a run; the files are not needed afterwards.
PictureRun picture_run(const std::vector<TraceFile>& files, const Summary& summary);

/// A page that needs no other file and no network: the lanes of all ranks, to zoom in and to be asked for every event;
/// how each rank's span divides; and all that muonwalk-trace prints of them. It has at most `most_slices` slices:
/// where there are more events, the shortest ones are drawn together, and the page says so.
std::string trace_page(const TracePicture& picture, std::int64_t most_slices = 12'000);

/// The files that the page is made from, in the folder page/ and in third_party/echarts: page_html is the text of
/// page.html.
namespace page_texts {

extern const char* const page_html;
extern const char* const page_css;
extern const char* const trace_css;
extern const char* const page_js;
extern const char* const bars_js;
extern const char* const timeline_js;
extern const char* const tooltip_js;
extern const char* const echarts_js;
extern const char* const echarts_notice;

}  // namespace page_texts

}  // namespace muonwalk::sim
