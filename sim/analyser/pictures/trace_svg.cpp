#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/analyser/pictures/picture.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kWidth = 960;
constexpr double kMargin = 24;
constexpr double kLeft = 140;  // where lanes and bars begin: the names of the lanes end before
constexpr double kRight = kWidth - kMargin;
constexpr double kHeadingPitch = 26;
constexpr double kRowHeight = 15;
constexpr double kRowPitch = 17;
constexpr double kLetterWidth = 7.3;  // of 12 units of a monospaced font, rounded up
constexpr double kBarHeight = 20;
constexpr double kBarPitch = 66;
constexpr double kPixelsToMerge = 0.5;  // events that together are narrower than this are drawn as one

SvgStyle style() {
  SvgStyle style(".mw-trace", 12, 17, 13);
  style.colour(".mw-ground", "fill", kPadding);
  style.colour(".mw-tick", "stroke", kHatch);
  style.colour(".mw-halo", "stroke", kPaper);
  for (int i = 0; i < kLaneKinds; ++i)
    style.colour(fmt::format(".mw-lane{}", i), "fill", lane_kind_colour(static_cast<LaneKind>(i)));
  for (int i = 0; i < kSpanParts; ++i)
    style.colour(fmt::format(".mw-part{}", i), "fill", span_part_colour(static_cast<SpanPart>(i)));
  return style;
}

std::string rectangle(double x, double y, double width, double height, const std::string& css_class,
                      const std::string& title = "") {
  return svg_rectangle(x, y, width, height, fmt::format("class=\"{}\"", css_class),
                       title.empty() ? "" : "<title>" + xml_text(title) + "</title>");
}

// A round step that cuts the span into at most eight parts, in nanoseconds.
double tick_step(std::int64_t span_ns) {
  const double rough = std::max(1.0, static_cast<double>(span_ns) / 8);
  const double ten = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * ten >= rough) return factor * ten;
  return 10 * ten;
}

class TraceDrawing {
 public:
  explicit TraceDrawing(TracePicture picture) : picture_(std::move(picture)), span_ns_(longest_span(picture_)) {
    const double ns_per_unit = static_cast<double>(span_ns_) / (kRight - kLeft);
    for (PictureRun& run : picture_.runs)
      merge_short_slices(run.timeline, static_cast<std::int64_t>(kPixelsToMerge * ns_per_unit));
  }

  std::string draw() {
    std::string body = svg_text(kMargin, 34, "mw-title", picture_title(picture_));
    y_ = 58;
    for (const std::string& line : wrap_text(drawn_text(picture_, slices_of(picture_)), 0, 126)) {
      body += svg_text(kMargin, y_, "mw-prose mw-quiet", line);
      y_ += 18;
    }
    body += timeline();
    body += bars();  // below it
    const double height = y_ + kMargin;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mw-trace\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" "
               "aria-labelledby=\"mw-trace-title mw-trace-desc\">\n"
               "<title id=\"mw-trace-title\">{}</title>\n<desc id=\"mw-trace-desc\">{}</desc>\n",
               kWidth, height, xml_text(picture_title(picture_)), xml_text(description())) +
           "<style>\n" + style().rules() + "</style>\n" + rectangle(0, 0, kWidth, height, "mw-paper") + body +
           "</svg>\n";
  }

 private:
  double x(std::int64_t ns) const {
    return kLeft +
           (kRight - kLeft) * static_cast<double>(ns) / static_cast<double>(std::max<std::int64_t>(1, span_ns_));
  }

  std::string timeline() {
    std::string lanes;
    y_ += 18;
    const double top = y_;
    for (const PictureLine& line : picture_lines(picture_)) {
      if (line.row == nullptr) {
        y_ += kHeadingPitch;
        lanes += svg_text(kMargin, y_ - 6, "mw-strong mw-halo", shorten(line.text, 120));
        continue;
      }
      lanes += svg_text(kMargin, y_ + 12, "mw-quiet", line.text);
      lanes += rectangle(kLeft, y_, kRight - kLeft, kRowHeight, "mw-ground");
      for (const TimelineSlice& slice : *line.row) lanes += slice_at(line, slice);
      y_ += kRowPitch;
    }
    return ticks(top) + lanes;
  }

  std::string slice_at(const PictureLine& line, const TimelineSlice& slice) const {
    const double width = std::max(0.4, x(slice.end_ns()) - x(slice.begin_ns) - 0.2);
    std::string svg =
        rectangle(x(slice.begin_ns), y_, width, kRowHeight, fmt::format("mw-lane{}", static_cast<int>(line.kind)),
                  slice_text(*line.timeline, slice));
    const int room = static_cast<int>((width - 6) / kLetterWidth);
    if (slice.name < 0 || room < 4) return svg;
    const std::string& name = line.timeline->texts[static_cast<std::size_t>(slice.name)];
    return svg + svg_text(x(slice.begin_ns) + 3, y_ + 11.5, "mw-ink", shorten(name, room));
  }

  std::string ticks(double top) const {
    std::string svg = svg_text(kMargin, top, "mw-quiet", "ms");
    for (double ns = 0; ns <= static_cast<double>(span_ns_); ns += tick_step(span_ns_)) {
      const double at = x(static_cast<std::int64_t>(ns));
      svg += svg_line(at, top + 4, at, y_, "class=\"mw-tick\"");
      svg += svg_text(at, top, "mw-middle mw-quiet", fmt::format("{:g}", ns / 1e6));
    }
    return svg;
  }

  std::string bars() {
    std::int64_t longest = 1;
    for (const PictureRun& run : picture_.runs)
      for (const RankSummary& rank : run.summary.ranks) longest = std::max(longest, rank.span_ns);
    y_ += 40;
    std::string svg = svg_text(kMargin, y_, "mw-title", "Where the time goes");
    for (int part = 0; part < kSpanParts; ++part) {
      svg += rectangle(column(part), y_ + 16, 12, 12, fmt::format("mw-part{}", part));
      svg += svg_text(column(part) + 18, y_ + 26, "mw-quiet", span_part_text(static_cast<SpanPart>(part)));
    }
    y_ += 44;
    for (const PictureRun& run : picture_.runs)
      for (const RankSummary& rank : run.summary.ranks) svg += bar(run, rank, longest);
    return svg;
  }

  static double column(int part) { return kMargin + (kRight - kMargin) * part / kSpanParts; }

  std::string bar(const PictureRun& run, const RankSummary& rank, std::int64_t longest) {
    const std::string heading = rank_heading(picture_, run, rank.label);
    if (rank.basis == TimeBasis::none) return bar_heading(heading + ": nothing that could be timed");
    std::string svg = bar_heading(fmt::format("{} · {} ms", heading, ms_text(rank.span_ns)));
    const auto parts = span_parts(rank);
    double left = kMargin;
    for (int part = 0; part < kSpanParts; ++part) {
      const std::int64_t ns = parts[static_cast<std::size_t>(part)];
      const double width = (kRight - kMargin) * static_cast<double>(ns) / static_cast<double>(longest);
      svg += rectangle(left, y_ - 34, width, kBarHeight, fmt::format("mw-part{}", part));
      svg += svg_text(column(part) + 18, y_, "mw-ink", span_part_figures(ns, rank.span_ns));
      left += width;
    }
    return svg;
  }

  std::string bar_heading(const std::string& text) {
    y_ += kBarPitch;
    return svg_text(kMargin, y_ - 40, "mw-strong", shorten(text, 120));
  }

  // What the picture shows, in sentences for those who can't see it.
  std::string description() const {
    std::string text =
        "Lanes for each rank show when it computed, communicated and copied, and the ranges that the "
        "program named. Bars show how the span of each rank divides.";
    for (const PictureRun& run : picture_.runs) {
      for (const RankSummary& rank : run.summary.ranks) {
        text += fmt::format(" {}: span {} ms", rank_heading(picture_, run, rank.label), ms_text(rank.span_ns));
        const auto parts = span_parts(rank);
        for (int part = 0; part < kSpanParts; ++part)
          text += fmt::format(", {} {}", span_part_text(static_cast<SpanPart>(part)),
                              span_part_figures(parts[static_cast<std::size_t>(part)], rank.span_ns));
        text += '.';
      }
    }
    return text;
  }

  TracePicture picture_;
  std::int64_t span_ns_;
  double y_ = 0;  // how far the picture is drawn
};

}  // namespace

std::string trace_svg(const TracePicture& picture) { return TraceDrawing(picture).draw(); }

}  // namespace muonwalk::sim
