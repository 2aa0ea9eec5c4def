#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/analyser/pictures/timeline.hpp"
#include "sim/analyser/summary.hpp"
#include "sim/pictures/palette.hpp"

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

/// A run, ready to be drawn.
struct PictureRun {
  std::string name;   ///< the lesson's name, or the file's
  Timeline timeline;  ///< what is drawn of it
  Summary summary;    ///< what is said of it in figures
};

/// What a picture shows: one run, or several below each other on one time scale, each from its own beginning.
struct TracePicture {
  std::vector<PictureRun> runs;       ///< from top to bottom
  std::vector<std::string> warnings;  ///< sentences on why the runs are not comparable
};

/// Lays out what was read of a run; the files are not needed afterwards.
PictureRun picture_run(const std::vector<TraceFile>& files, const Summary& summary);

/// A static picture, light or dark by what its reader prefers: the lanes of all ranks, and how each rank's span divides
/// into computation, communication, their overlap, copies and idle time. Events shorter than a pixel are drawn
/// together.
std::string trace_svg(const TracePicture& picture);

/// A page that needs no other file and no network: the same to zoom in and to be asked for every event, with tables of
/// all figures and what was counted. It has at most `most_slices` slices: where there are more events, the shortest
/// ones are drawn together, and the page says so.
std::string trace_page(const TracePicture& picture, std::int64_t most_slices = 12'000);

/// A line of the picture: a heading, or a row of a lane.
struct PictureLine {
  std::string text;                       ///< "rank 3 (dp 1, tp 1)", "communication"; "" below the first row of a lane
  std::string lane;                       ///< whose row it is, in full: "rank 3 (dp 1, tp 1), communication"
  const TimelineRow* row = nullptr;       ///< belongs to the picture; nullptr: a heading
  const Timeline* timeline = nullptr;     ///< that the row is of; belongs to the picture
  LaneKind kind = LaneKind::computation;  ///< of the lane
};

/// The lines of a picture from top to bottom: per rank a heading, and the rows of its lanes.
std::vector<PictureLine> picture_lines(const TracePicture& picture);

/// How many slices there are in all runs.
std::int64_t slices_of(const TracePicture& picture);

/// 'A', 'B': which of the runs, as a comparison calls them. `run` is one of the picture's.
char run_letter(const TracePicture& picture, const PictureRun& run);

/// "rank 3", or with several runs "A · rank 3".
std::string rank_heading(const TracePicture& picture, const PictureRun& run, const std::string& label);

/// "Trace of lesson_09_full_step", "A: muon.json · B: adamw.json".
std::string picture_title(const TracePicture& picture);

/// "1,234 events, drawn as 567": how many, and which are not drawn at all. `drawn_as` is the number of slices.
std::string drawn_text(const TracePicture& picture, std::int64_t drawn_as);

/// "ncclKernel, 12.34 ms from 5.67 ms, float32, group [0, 2], 80 B": a slice in words.
std::string slice_text(const Timeline& timeline, const TimelineSlice& slice);

/// The span of the longest run: what the time scale has room for.
std::int64_t longest_span(const TracePicture& picture);

/// The fill of a kind of lane.
Colour lane_kind_colour(LaneKind kind);
/// The fill of a part of a rank's span.
Colour span_part_colour(SpanPart part);

/// The files that the page of a trace alone is made from, in the folder page/ (the others:
/// sim/pictures/page_texts.hpp).
namespace page_texts {

/// The text of a file: page_html is that of page.html.
/// @{
extern const char* const page_html;
extern const char* const trace_css;
extern const char* const page_js;
extern const char* const bars_js;
extern const char* const timeline_js;
/// @}

}  // namespace page_texts

}  // namespace muonwalk::sim
