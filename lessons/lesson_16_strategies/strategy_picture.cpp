#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_16_strategies/strategy_tables.hpp"
#include "sim/replay/svg_parts.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units.
constexpr double kMargin = 24;
constexpr double kNames = 190;  // room for the strategies' names
constexpr double kBars = 560;   // the longest bar
constexpr double kBarHeight = 11;
constexpr double kRowHeight = 54;
constexpr double kTop = 104;

struct Kind {
  const char* name;
  const char* unit;
  double (*of)(const StrategyCost&);
};

const Kind kKinds[] = {
    {"bytes sent", "B", [](const StrategyCost& c) { return c.most_bytes_sent; }},
    {"operations", "FLOP", [](const StrategyCost& c) { return c.most_flops; }},
    {"held for a moment", "B", [](const StrategyCost& c) { return static_cast<double>(c.most_transient_bytes); }}};

SvgStyle costs_style() {
  SvgStyle style(".mw-costs", 12, 17, 13);
  style.colours(".mw-p", "fill", parameter_colour);
  return style;
}

}  // namespace

std::string strategy_picture(const StrategyCosts& costs, const Grid& grid) {
  const std::string heading = fmt::format("What a step costs the busiest rank of {}", grid.text());
  std::string body = svg_text(kMargin, 38, "mw-title", heading);
  std::string description = heading + ".";
  double x = kMargin;
  for (int kind = 0; kind < 3; ++kind) {
    body += svg_rectangle(x, 62, 12, 12, fmt::format("rx=\"2\" class=\"mw-p{}\"", kind));
    body += svg_text(x + 17, 72, "mw-quiet", kKinds[kind].name);
    x += 150;
  }
  double y = kTop;
  for (const auto& [strategy, cost] : costs) {
    body += svg_text(kMargin, y + 22, "mw-prose mw-strong", title(strategy));
    for (int kind = 0; kind < 3; ++kind) {
      double most = 0;
      for (const auto& each : costs) most = std::max(most, kKinds[kind].of(each.second));
      const double value = kKinds[kind].of(cost), width = most > 0 ? kBars * value / most : 0;
      const double top = y + kind * (kBarHeight + 2);
      const std::string words = fmt::format("{:.3g} {}", value, kKinds[kind].unit);
      body +=
          svg_rectangle(kMargin + kNames, top, std::max(width, 1.0), kBarHeight, fmt::format("class=\"mw-p{}\"", kind),
                        fmt::format("<title>{}: {}</title>", kKinds[kind].name, xml_text(words)));
      description += fmt::format(" {}, {}: {}.", title(strategy), kKinds[kind].name, words);
    }
    y += kRowHeight;
  }
  return svg_page("mw-costs", kMargin + kNames + kBars + kMargin, y + 6, heading, description, costs_style(), body);
}

}  // namespace muonwalk::sim
