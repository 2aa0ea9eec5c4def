#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lessons/lesson_14_memory/memory_tables.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units.
constexpr double kMargin = 24;
constexpr double kPlotWidth = 860;
constexpr double kPlotHeight = 200;
constexpr double kRowGap = 74;  // room for a heading, and for the phase that holds most
constexpr int kNameLength = 24;

const char* const kKinds[] = {"weights", "gradients", "master weights", "momentum", "first moments", "second moments"};
constexpr int kMoment = 7;  // the colour of what is held for a moment

SvgStyle memory_style() {
  SvgStyle style(".mw-memory", 12, 17, 13);
  style.colours(".mw-p", "fill", parameter_colour);
  style.colour(".mw-axis", "stroke", kQuiet);
  return style;
}

std::string about(const PhaseMemory& phase, const Layout& layout) {
  if (phase.parameter < 0) return phase.phase;
  return fmt::format("{} of {}", phase.phase, visible_name(layout.meta(phase.parameter).name, kNameLength));
}

std::string bar(double x, double width, double bottom, double height, int colour, const std::string& title) {
  return svg_rectangle(x, bottom - height, width, height, fmt::format("class=\"mw-p{}\"", colour % kColours),
                       fmt::format("<title>{}</title>", xml_text(title)));
}

// The bars of one way, which stand on `bottom`.
std::string bars(const RankMemory& memory, const Layout& layout, double bottom, double per_byte) {
  std::string svg;
  const double width = kPlotWidth / static_cast<double>(std::max<std::size_t>(memory.phases.size(), 1));
  for (std::size_t i = 0; i < memory.phases.size(); ++i) {
    const PhaseMemory& phase = memory.phases[i];
    const double x = kMargin + width * static_cast<double>(i);
    double top = bottom;
    for (int kind = 0; kind < static_cast<int>(std::size(kKinds)); ++kind) {
      const auto found = memory.kept.find(kKinds[kind]);
      if (found == memory.kept.end()) continue;
      const double height = static_cast<double>(found->second) * per_byte;
      svg += bar(x, width, top, height, kind, fmt::format("{}: {}", kKinds[kind], bytes_text(found->second)));
      top -= height;
    }
    const Index moment = phase.most - memory.held();
    svg += bar(x, width * 0.86, top, static_cast<double>(moment) * per_byte, kMoment,
               fmt::format("{}: {} for a moment", about(phase, layout), bytes_text(moment)));
  }
  return svg;
}

std::string legend(double y) {
  std::string svg;
  double x = kMargin;
  const auto entry = [&](int colour, const std::string& name) {
    svg += svg_rectangle(x, y - 10, 12, 12, fmt::format("rx=\"2\" class=\"mw-p{}\"", colour % kColours));
    svg += svg_text(x + 17, y, "mw-quiet", name);
    x += 36 + 7.4 * static_cast<double>(name.size());
  };
  for (int kind = 0; kind < static_cast<int>(std::size(kKinds)); ++kind) entry(kind, kKinds[kind]);
  entry(kMoment, "for a moment");
  return svg;
}

}  // namespace

std::string memory_picture(int rank, const std::vector<std::pair<std::string, RankMemory>>& ways,
                           const Layout& layout) {
  Index most = 1;
  for (const auto& [name, memory] : ways) most = std::max(most, memory.most());
  const double per_byte = kPlotHeight / static_cast<double>(most);
  const std::string title = fmt::format("Bytes that rank {} holds through a step", rank);
  std::string body = svg_text(kMargin, 38, "mw-title", title);
  body += svg_text(kMargin, 60, "mw-prose mw-quiet",
                   "A bar per phase, in the order of the step: as high as the most that it holds.");
  body += legend(86);
  std::string description = title + ".";
  double y = 86;
  for (const auto& [name, memory] : ways) {
    y += kRowGap + kPlotHeight;
    const auto highest = std::max_element(memory.phases.begin(), memory.phases.end(),
                                          [](const PhaseMemory& a, const PhaseMemory& b) { return a.most < b.most; });
    std::string words = fmt::format("{}: {} between two steps", name, bytes_text(memory.held()));
    if (highest != memory.phases.end())
      words += fmt::format(", at most {}, in {}", bytes_text(highest->most), about(*highest, layout));
    body += svg_text(kMargin, y - kPlotHeight - 16, "mw-prose mw-strong", words);
    body += bars(memory, layout, y, per_byte);
    body += svg_line(kMargin, y, kMargin + kPlotWidth, y, "class=\"mw-axis\"");
    description += " " + words + ".";
  }
  return svg_page("mw-memory", kPlotWidth + 2 * kMargin, y + kMargin, title, description, memory_style(), body);
}

}  // namespace muonwalk::sim
