#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_16_strategies/strategy_tables.hpp"
#include "sim/replay/svg_parts.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units.
constexpr double kMargin = SvgPicture::kMargin;
constexpr double kNames = 190;  // room for the strategies' names
constexpr double kBars = 560;   // the longest bar
constexpr double kBarHeight = 11;
constexpr double kRowHeight = 54;
constexpr double kTop = 112;

struct Kind {
  const char* name;
  const char* unit;
  double (*of)(const StrategyCost&);
};

const Kind kKinds[] = {
    {"bytes sent", "B", [](const StrategyCost& c) { return c.most_bytes_sent; }},
    {"operations", "FLOP", [](const StrategyCost& c) { return c.most_flops; }},
    {"held for a moment", "B", [](const StrategyCost& c) { return static_cast<double>(c.most_transient_bytes); }}};

}  // namespace

std::string strategy_picture(const StrategyCosts& costs, const Grid& grid) {
  SvgPicture picture(kMargin + kNames + kBars + kMargin,
                     fmt::format("What a step costs the busiest rank of {}", grid.text()),
                     "The longest bar of each kind stands for the most that any of the ways takes.");
  picture.legend(74, {{"mw-p0", kKinds[0].name}, {"mw-p1", kKinds[1].name}, {"mw-p2", kKinds[2].name}});
  double y = kTop;
  for (const auto& [strategy, cost] : costs) {
    picture.text(kMargin, y + 22, "mw-prose mw-strong", title(strategy));
    for (int kind = 0; kind < 3; ++kind) {
      double most = 0;
      for (const auto& each : costs) most = std::max(most, kKinds[kind].of(each.second));
      const double value = kKinds[kind].of(cost), width = most > 0 ? kBars * value / most : 0;
      const std::string words = fmt::format("{}: {:.3g} {}", kKinds[kind].name, value, kKinds[kind].unit);
      picture.box(kMargin + kNames, y + kind * (kBarHeight + 2), std::max(width, 1.0), kBarHeight,
                  fmt::format("mw-p{}", kind), words);
      picture.say(fmt::format("{}, {}.", title(strategy), words));
    }
    y += kRowHeight;
  }
  return picture.svg(y + 6);
}

}  // namespace muonwalk::sim
