#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/cost_model/sweet_spot_output.hpp"
#include "sim/cost_model/sweet_spot_words.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units. It is narrow, so that a phone shows its letters nearly as large as they are.
constexpr double kWidth = 480;
constexpr double kMargin = 14;
constexpr double kLeft = kMargin + 58;  // of the cells
constexpr double kTop = 118;
constexpr double kCellHeight = 36;
constexpr double kLegendLeft = kMargin + 50;  // of its words
constexpr double kLegendPitch = 21, kLegendLine = 14, kLegendGap = 6, kProseLine = 17;
constexpr int kLegendColumns = 64, kProseColumns = 62;  // letters that a line has room for

SvgStyle style() {
  SvgStyle style(".mw-sweet", 12, 17, 13);
  style.rule(".mw-ratio", "font-size:13px;font-weight:bold");
  style.rule(".mw-small", "font-size:11px");
  style.rule(".mw-legend", fmt::format("font-family:{}", kSvgSans));
  style.rule(".mw-end", "text-anchor:end");
  style.rule(".mw-outside", "fill:url(#mw-outside)");
  style.rule(".mw-line", "stroke-width:3.5;stroke-linecap:round");
  style.rule(".mw-casing", "stroke-width:7;stroke-linecap:round");
  style.rule(".mw-frame", "fill:none;stroke-width:1");
  style.rule(".mw-halo", "stroke-width:4px");
  style.colour(".mw-halo", "stroke", kPaper);
  style.colour(".mw-none", "fill", kPadding);
  style.rule(".mw-hatch", "stroke-width:1.4;stroke-opacity:0.28");
  style.colour(".mw-hatch", "stroke", kInk);
  style.colour(".mw-frame", "stroke", kHatch);
  style.colour(".mw-line", "stroke", kInk);
  style.colour(".mw-casing", "stroke", kPaper);
  style.colour(".mw-own", "fill", kInk);
  for (int band = 0; band < kMapBands; ++band) {
    style.rule(fmt::format(".mw-b{}", band), fmt::format("fill-opacity:{}", band_opacity(band)));
    style.colour(fmt::format(".mw-b{}", band), "fill", band_colour(band));
  }
  return style;
}

// Where a map is drawn.
struct Frame {
  const SweetSpotMap& map;
  double cell_width;

  explicit Frame(const SweetSpotMap& of)
      : map(of), cell_width((kWidth - kMargin - kLeft) / static_cast<double>(of.column_values.size())) {}
  double x(double column) const { return kLeft + cell_width * column; }
  double y(double row) const { return kTop + kCellHeight * row; }
  double bottom() const { return y(static_cast<double>(map.gpus.size())); }
};

// What a cell is filled with: its band, or nothing, and hatching.
std::string fill(const Frame& frame, std::size_t row, std::size_t column, const SweetSpotCell& cell) {
  const double x = frame.x(static_cast<double>(column)), y = frame.y(static_cast<double>(row));
  const auto rectangle = [&](const std::string& css_class, const std::string& inside = "") {
    return svg_rectangle(x + 1, y + 1, frame.cell_width - 2, kCellHeight - 2, "class=\"" + css_class + "\"", inside);
  };
  const std::string title = "<title>" + xml_text(fmt::format("{}", fmt::join(cell_facts(cell), "; "))) + "</title>";
  const std::optional<double> ratio = ratio_of(cell, MapQuantity::communication);
  if (!ratio) return rectangle("mw-none", title);
  std::string svg = rectangle(fmt::format("mw-b{}", band_of(*ratio, MapQuantity::communication)), title);
  if (is_extrapolated(cell, MapQuantity::communication) || is_extrapolated(cell, MapQuantity::step))
    svg += rectangle("mw-outside", title);
  return svg;
}

std::string words(const Frame& frame, std::size_t row, std::size_t column, const SweetSpotCell& cell) {
  const double x = frame.x(static_cast<double>(column) + 0.5), y = frame.y(static_cast<double>(row) + 0.5);
  const std::optional<double> ratio = ratio_of(cell, MapQuantity::communication);
  if (!ratio) return svg_text(x, y + 4, "mw-middle mw-small mw-quiet", obstacle_word(cell.obstacle));
  const bool alone = cell.step_obstacle == Obstacle::unasked;
  std::string svg = svg_text(x, y + (alone ? 4.5 : -2), "mw-middle mw-ratio mw-halo", ratio_text(*ratio));
  if (cell.step)
    svg += svg_text(x, y + 12, "mw-middle mw-small mw-halo",
                    fmt::format("{} {}", ratio_text(cell.step->ratio()), cell.step->best));
  else if (!alone)
    svg += svg_text(x, y + 12, "mw-middle mw-small mw-halo mw-quiet", obstacle_word(cell.step_obstacle));
  return svg;
}

std::string line(const Frame& frame) {
  std::string casing, ink;
  for (const InversionSegment& segment : inversion_line(frame.map)) {
    const auto stroke = [&](const char* attributes) {
      return svg_line(frame.x(segment.from.column), frame.y(segment.from.row), frame.x(segment.to.column),
                      frame.y(segment.to.row), attributes);
    };
    casing += stroke("class=\"mw-casing\"");
    ink += stroke("class=\"mw-line\"");
  }
  return casing + ink;
}

// Points down; its upper edge begins at y and has its middle at x.
std::string triangle(double x, double y) {
  return fmt::format("<path d=\"M{:.2f} {:.2f}h10l-5 8z\" class=\"mw-own\"/>\n", x - 5, y);
}

// Over the column of the cluster's own links, or between columns where their speed lies between.
std::string own_link(const Frame& frame) {
  const SweetSpotMap& map = frame.map;
  if (map.columns != MapColumns::links) return "";
  const double column = std::log2(map.own_link_bytes_per_second / map.column_values.front()) + 0.5;
  const double x = frame.x(std::clamp(column, 0.0, static_cast<double>(map.column_values.size())));
  return triangle(x, kTop - 10);
}

std::string headings(const Frame& frame) {
  const SweetSpotMap& map = frame.map;
  std::string svg = svg_text(kMargin, 34, "mw-title", "Sweet-spot map: Muon over AdamW") +
                    svg_text(kMargin, 56, "mw-prose mw-strong", map.subject()) +
                    svg_text(kLeft + 2, 82, "mw-prose mw-quiet", columns_heading(map)) +
                    svg_text(kLeft - 8, 102, "mw-end mw-prose mw-quiet", "GPUs");
  for (std::size_t c = 0; c < map.column_values.size(); ++c)
    svg += svg_text(frame.x(static_cast<double>(c) + 0.5), 102, "mw-middle", column_text(map, c));
  for (std::size_t r = 0; r < map.gpus.size(); ++r)
    svg += svg_text(kLeft - 8, frame.y(static_cast<double>(r) + 0.5) + 4, "mw-end", number_text(map.gpus[r]));
  return svg;
}

// A mark at the left, and words beside it in as many lines as they need; `y` is moved below them.
std::string legend_entry(const std::string& mark, const std::string& text, double& y) {
  std::string svg = mark;
  for (const std::string& words : wrap_text(text, 0, kLegendColumns)) {
    svg += svg_text(kLegendLeft, y + 11, "mw-small mw-legend", words);
    y += kLegendLine;
  }
  y += kLegendGap;
  return svg;
}

std::string swatch(double x, double y, const std::string& css_class) {
  return svg_rectangle(x, y, 14, 14, "class=\"" + css_class + "\"");
}

std::string bands_legend(double& y) {
  std::string svg;
  for (int band = 0; band < kMapBands; ++band) {
    const double x = kMargin + (band % 3) * 150, top = y + (band < 3 ? 0 : kLegendPitch);
    svg += swatch(x, top, fmt::format("mw-b{}", band)) + swatch(x, top, "mw-frame") +
           svg_text(x + 20, top + 11, "mw-small mw-legend", band_text(band, MapQuantity::communication));
  }
  y += 2 * kLegendPitch;
  return svg;
}

// Fills, hatching, the line, words and letters; `y` is moved below them.
std::string legend(const SweetSpotMap& map, double& y) {
  std::string svg = bands_legend(y);
  const bool steps = map.has_steps();
  svg +=
      legend_entry(svg_text(kMargin, y + 11, "mw-ratio", "0.57"),
                   "communication: below 1, Muon's optimizer sends for less time than AdamW's; above 1, for more", y);
  if (steps)
    svg += legend_entry(svg_text(kMargin, y + 11, "mw-small", "1.02 d"),
                        "the whole step: Muon's time over AdamW's, and the letter of the best strategy", y);
  for (const auto& [letter, name] : best_strategies({map}))
    svg += legend_entry(svg_text(kMargin + 33, y + 11, "mw-small", std::string(1, letter)), name, y);
  const double middle = y + 7;
  svg += legend_entry(svg_line(kMargin + 2, middle, kMargin + 34, middle, "class=\"mw-line\""),
                      "here both send for as long: the gain inverts", y);
  svg += legend_entry(swatch(kMargin, y, "mw-outside") + swatch(kMargin, y, "mw-frame"),
                      "a figure lies outside of what was measured", y);
  if (map.columns == MapColumns::links)
    svg += legend_entry(triangle(kMargin + 7, y + 3),
                        fmt::format("the links of {} as it is: {:.4g} GB/s", visible_name(map.cluster, 24),
                                    map.own_link_bytes_per_second / kGigabyte),
                        y);
  for (const Obstacle obstacle : map.obstacles())
    svg += legend_entry(svg_text(kMargin, y + 11, "mw-small mw-quiet", obstacle_word(obstacle)),
                        obstacle_sentence(obstacle), y);
  y += kLegendGap;
  for (const std::string& note : map.notes) {
    for (const std::string& words : wrap_text(note, 0, kProseColumns)) {
      svg += svg_text(kMargin, y + 11, "mw-prose mw-quiet", words);
      y += kProseLine;
    }
    y += kLegendGap;
  }
  return svg;
}

}  // namespace

std::string sweet_spot_svg(const SweetSpotMap& map) {
  const Frame frame(map);
  std::string body =
      "<defs><pattern id=\"mw-outside\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" "
      "class=\"mw-hatch\"/></pattern></defs>\n" +
      headings(frame) + own_link(frame);
  std::string labels;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      body += fill(frame, r, c, map.cells[r][c]);
      labels += words(frame, r, c, map.cells[r][c]);
    }
  body += line(frame) + labels;
  double y = frame.bottom() + 16;
  body += legend(map, y);
  const std::string title = "Sweet-spot map of Muon over AdamW, " + map.subject();
  const std::string description =
      fmt::format("Rows: {} to {} GPUs. Columns: {}, {} to {}. {} {}", number_text(map.gpus.front()),
                  number_text(map.gpus.back()), columns_heading(map), column_text(map, 0),
                  column_text(map, map.column_values.size() - 1), sides_text(map), fmt::join(map.notes, " "));
  return svg_page("mw-sweet", kWidth, y + 6, title, description, style(), body);
}

}  // namespace muonwalk::sim
