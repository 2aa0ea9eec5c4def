#include "sim/analyser/pictures/picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

const char* span_part_text(SpanPart part) {
  constexpr std::array<const char*, kSpanParts> kTexts = {"computation alone", "overlap", "communication alone",
                                                          "copies alone", "idle"};
  return kTexts[static_cast<std::size_t>(part)];
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
PictureRun picture_run(const std::vector<TraceFile>& files, const Summary& summary) {
  PictureRun run{visible_name(summary.title), make_timeline(files), summary};
  if (run.name.empty() && !summary.paths.empty()) {
    const std::string& path = summary.paths.front();
    run.name = visible_name(path.substr(path.find_last_of('/') + 1));
  }
  if (summary.title.empty() && summary.paths.size() > 1)
    run.name += fmt::format(" and {} more", summary.paths.size() - 1);
  return run;
}

std::vector<PictureLine> picture_lines(const TracePicture& picture) {
  std::vector<PictureLine> lines;
  for (const PictureRun& run : picture.runs) {
    for (const TimelineRank& rank : run.timeline.ranks) {
      const std::string heading = rank_heading(picture, run, rank.label);
      lines.push_back({heading, heading, nullptr, &run.timeline, {}});
      for (const TimelineLane& lane : rank.lanes)
        for (const TimelineRow& row : lane.rows)
          lines.push_back({&row == &lane.rows.front() ? lane_kind_text(lane.kind) : "",
                           fmt::format("{}, {}", heading, lane_kind_text(lane.kind)), &row, &run.timeline, lane.kind});
    }
  }
  return lines;
}

char run_letter(const TracePicture& picture, const PictureRun& run) {
  return static_cast<char>('A' + (&run - picture.runs.data()));
}

std::string rank_heading(const TracePicture& picture, const PictureRun& run, const std::string& label) {
  return picture.runs.size() == 1 ? visible_name(label)
                                  : fmt::format("{} · {}", run_letter(picture, run), visible_name(label));
}

std::string picture_title(const TracePicture& picture) {
  if (picture.runs.size() == 1) return "Trace of " + picture.runs.front().name;
  std::string names;
  for (const PictureRun& run : picture.runs)
    names += fmt::format("{}{}: {}", names.empty() ? "" : " · ", run_letter(picture, run), run.name);
  return names;
}

std::string drawn_text(const TracePicture& picture, std::int64_t drawn_as) {
  std::int64_t events = 0;
  std::map<std::string, std::int64_t> not_drawn;
  for (const PictureRun& run : picture.runs) {
    events += run.timeline.events;
    for (const auto& [which, many] : run.timeline.not_drawn) not_drawn[which] += many;
  }
  std::string text = drawn_as == events ? fmt::format("{} events, each drawn.", number_text(events))
                                        : fmt::format(
                                              "{} events, drawn as {}: neighbours that are too short to be "
                                              "told apart are drawn as one.",
                                              number_text(events), number_text(drawn_as));
  for (const auto& [which, many] : not_drawn) text += fmt::format(" Not drawn: {} {}.", number_text(many), which);
  return text;
}

std::string slice_text(const Timeline& timeline, const TimelineSlice& slice) {
  const auto text = [&](std::int32_t number) { return timeline.texts[static_cast<std::size_t>(number)]; };
  std::string words = slice.name >= 0 ? text(slice.name) : "events of several names";
  if (slice.events > 1) words = fmt::format("{} events: {}", slice.events, words);
  words += fmt::format(", {} ms from {} ms", ms_text(slice.duration_ns), ms_text(slice.begin_ns));
  if (slice.busy_ns != slice.duration_ns) words += fmt::format(", {} ms of it covered", ms_text(slice.busy_ns));
  if (slice.type >= 0) words += ", " + text(slice.type);
  if (slice.group >= 0) words += ", group " + text(slice.group);
  if (slice.message_bytes >= 0) words += ", message " + bytes_text(slice.message_bytes);
  if (slice.sent_bytes >= 0) words += ", sent " + bytes_text(slice.sent_bytes);
  return words;
}

std::int64_t slices_of(const TracePicture& picture) {
  std::int64_t sum = 0;
  for (const PictureRun& run : picture.runs) sum += run.timeline.slices();
  return sum;
}

std::int64_t longest_span(const TracePicture& picture) {
  std::int64_t span = 0;
  for (const PictureRun& run : picture.runs) span = std::max(span, run.timeline.span_ns);
  return span;
}

Colour span_part_colour(SpanPart part) {
  constexpr std::array<Colour, kSpanParts> kFills = {parameter_colour(0), parameter_colour(2), parameter_colour(4),
                                                     parameter_colour(3), kPadding};
  return kFills[static_cast<std::size_t>(part)];
}

Colour lane_kind_colour(LaneKind kind) {
  const std::array<Colour, kLaneKinds> fills = {span_part_colour(SpanPart::computation_alone),
                                                span_part_colour(SpanPart::communication_alone),
                                                span_part_colour(SpanPart::copies_alone),
                                                parameter_colour(5),
                                                parameter_colour(7),
                                                parameter_colour(7),
                                                span_part_colour(SpanPart::communication_alone)};
  return fills[static_cast<std::size_t>(kind)];
}

}  // namespace muonwalk::sim
