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

}  // namespace

std::string update_rms_picture(const std::vector<UpdateRms>& all) {
  const Axis axis = axis_of(all);
  SvgPicture picture(kLeft + kAxisWidth + kRight, "Root mean square of an update, for a learning rate of 1",
                     "A scale matches AdamW's where its dots keep their distance from AdamW's line in every row.");
  std::vector<std::pair<std::string, std::string>> names = {{"mw-ink", "AdamW"}};
  for (std::size_t s = 0; s < std::size(kScales); ++s)
    names.emplace_back(fmt::format("mw-line mw-p{}", s), scale_name(kScales[s]));
  picture.legend(74, names);
  const double bottom = kTop + kRowHeight * static_cast<double>(all.size());
  for (int power = axis.from; power <= axis.to; ++power) {
    const double x = axis.at(std::pow(10.0, power));
    picture.line(x, kTop, x, bottom, "mw-rule");
    picture.text(x, bottom + 18, "mw-middle mw-quiet", fmt::format("{:g}", std::pow(10.0, power)));
  }
  for (std::size_t row = 0; row < all.size(); ++row) {
    const UpdateRms& each = all[row];
    const double y = kTop + kRowHeight * (static_cast<double>(row) + 0.5), adamw = axis.at(each.adamw);
    const std::string shape = shape_text(each.shape.rows, each.shape.cols);
    picture.text(24, y + 4, "", shape);
    picture.line(adamw, y - kRowHeight / 2, adamw, y + kRowHeight / 2, "mw-line mw-wide");
    std::string words = fmt::format("{}: AdamW {:.3f}", shape, each.adamw);
    for (std::size_t s = 0; s < std::size(kScales); ++s) {
      const std::string scaled = fmt::format(", {} {:.3f}", scale_name(kScales[s]), each.scaled(kScales[s]));
      // Above or below the middle, so that equal ones do not hide each other.
      const double above = kStagger * (static_cast<double>(s) - (std::size(kScales) - 1) / 2.0);
      picture.circle(axis.at(each.scaled(kScales[s])), y + above, kDot, fmt::format("mw-line mw-p{}", s),
                     shape + scaled);
      words += scaled;
    }
    picture.say(words + ".");
  }
  return picture.svg(bottom + 32);
}

}  // namespace muonwalk::sim
