#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lessons/lesson_12_matched_rms/tables.hpp"
#include "sim/replay/svg_parts.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units.
constexpr double kLeft = 110, kRight = 30, kTop = 116, kRowHeight = 40, kAxisWidth = 520, kDot = 6, kStagger = 6;
constexpr double kWidth = kLeft + kAxisWidth + kRight;

// A logarithmic axis from a power of ten to another.
struct Axis {
  int from = 0, to = 0;  // exponents
  double at(double value) const {
    return kLeft + kAxisWidth * (std::log10(value) - from) / static_cast<double>(to - from);
  }
};

Axis axis_of(const std::vector<UpdateRms>& all) {
  double least = 1, most = 1e-3;
  for (const UpdateRms& each : all) {
    for (const Scale scale : kScales) {
      least = std::min(least, each.scaled(scale));
      most = std::max(most, each.scaled(scale));
    }
    least = std::min(least, each.adamw);
    most = std::max(most, each.adamw);
  }
  return {static_cast<int>(std::floor(std::log10(least))), static_cast<int>(std::ceil(std::log10(most)))};
}

SvgStyle rms_style() {
  SvgStyle style(".mw-rms", 12, 17, 13);
  style.rule(".mw-dot", "stroke-width:1.5px");
  style.rule(".mw-adamw", "stroke-width:3px");
  style.rule(".mw-rule", "stroke-width:1px");
  style.colours(".mw-s", "fill", parameter_colour);
  style.colour(".mw-dot", "stroke", kInk);
  style.colour(".mw-adamw", "stroke", kInk);
  style.colour(".mw-rule", "stroke", kHatch);
  return style;
}

std::string dot(double x, double y, std::size_t scale, const std::string& title) {
  return fmt::format(
      "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\" class=\"mw-dot mw-s{}\"><title>{}</title></circle>\n", x, y, kDot,
      scale, xml_text(title));
}

// What each dot is, in one line below the title.
std::string legend() {
  std::string svg = svg_line(kLeft, 74, kLeft, 90, "class=\"mw-adamw\"") + svg_text(kLeft + 8, 86, "", "AdamW");
  double x = kLeft + 78;
  for (std::size_t s = 0; s < std::size(kScales); ++s) {
    svg += dot(x, 82, s, scale_name(kScales[s])) + svg_text(x + 12, 86, "", scale_name(kScales[s]));
    x += 88;
  }
  return svg;
}

}  // namespace

std::string update_rms_picture(const std::vector<UpdateRms>& all) {
  const Axis axis = axis_of(all);
  const double bottom = kTop + kRowHeight * static_cast<double>(all.size());
  std::string body = svg_text(24, 34, "mw-title", "Root mean square of an update, for a learning rate of 1");
  body += svg_text(24, 56, "mw-prose mw-quiet",
                   "A scale matches AdamW's where its dots keep their distance from AdamW's line in every row.");
  body += legend();
  for (int power = axis.from; power <= axis.to; ++power) {
    const double x = axis.at(std::pow(10.0, power));
    body += svg_line(x, kTop, x, bottom, "class=\"mw-rule\"") +
            svg_text(x, bottom + 18, "mw-middle mw-quiet", fmt::format("{:g}", std::pow(10.0, power)));
  }
  std::string description;
  for (std::size_t row = 0; row < all.size(); ++row) {
    const UpdateRms& each = all[row];
    const double y = kTop + kRowHeight * (static_cast<double>(row) + 0.5);
    const std::string shape = shape_text(each.shape.rows, each.shape.cols);
    const std::string adamw = fmt::format("AdamW {:.3f}", each.adamw);
    body += svg_text(24, y + 4, "", shape);
    body += svg_line(axis.at(each.adamw), y - kRowHeight / 2, axis.at(each.adamw), y + kRowHeight / 2,
                     "class=\"mw-adamw\"");
    description += fmt::format("{}{}: {}", row > 0 ? "; " : "", shape, adamw);
    for (std::size_t s = 0; s < std::size(kScales); ++s) {
      const std::string title = fmt::format("{} {:.3f}", scale_name(kScales[s]), each.scaled(kScales[s]));
      // Above or below the middle, so that equal ones do not hide each other.
      const double above = kStagger * (static_cast<double>(s) - (std::size(kScales) - 1) / 2.0);
      body += dot(axis.at(each.scaled(kScales[s])), y + above, s, shape + ", " + title);
      description += ", " + title;
    }
  }
  return svg_page("mw-rms", kWidth, bottom + 32, "Root mean square of an update, by shape and scale", description + ".",
                  rms_style(), body);
}

}  // namespace muonwalk::sim
