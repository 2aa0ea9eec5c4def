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
constexpr double kMargin = SvgPicture::kMargin;
constexpr double kPlotWidth = 860;
constexpr double kPlotHeight = 200;
constexpr double kRowGap = 52;  // room for a heading, and for the phase that holds most
constexpr int kNameLength = 24;

const char* const kKinds[] = {"weights", "gradients", "master weights", "momentum", "first moments", "second moments"};
constexpr int kMoment = 7;  // the colour of what is held for a moment

std::string about(const PhaseMemory& phase, const Layout& layout) {
  if (phase.parameter < 0) return phase.phase;
  return fmt::format("{} of {}", phase.phase, visible_name(layout.meta(phase.parameter).name, kNameLength));
}

// The bars of one way, which stand on `bottom`.
void draw_bars(SvgPicture& picture, const RankMemory& memory, const Layout& layout, double bottom, double per_byte) {
  const double width = kPlotWidth / static_cast<double>(std::max<std::size_t>(memory.phases.size(), 1));
  for (std::size_t i = 0; i < memory.phases.size(); ++i) {
    const PhaseMemory& phase = memory.phases[i];
    double top = bottom;
    const auto bar = [&](double share_of_width, Index bytes, int colour, const std::string& what) {
      const double height = static_cast<double>(bytes) * per_byte;
      top -= height;
      picture.box(kMargin + width * static_cast<double>(i), top, width * share_of_width, height,
                  fmt::format("mw-p{}", colour), what);
    };
    for (int kind = 0; kind < static_cast<int>(std::size(kKinds)); ++kind)
      if (const auto found = memory.kept.find(kKinds[kind]); found != memory.kept.end())
        bar(1, found->second, kind, fmt::format("{}: {}", kKinds[kind], bytes_text(found->second)));
    const Index moment = phase.most - memory.held();
    bar(0.86, moment, kMoment, fmt::format("{}: {} for a moment", about(phase, layout), bytes_text(moment)));
  }
}

}  // namespace

std::string memory_picture(int rank, const std::vector<std::pair<std::string, RankMemory>>& ways,
                           const Layout& layout) {
  Index most = 1;
  for (const auto& [name, memory] : ways) most = std::max(most, memory.most());
  const double per_byte = kPlotHeight / static_cast<double>(most);
  SvgPicture picture(kPlotWidth + 2 * kMargin, fmt::format("Bytes that rank {} holds through a step", rank),
                     "A bar per phase, in the order of the step: as high as the most that it holds.");
  std::vector<std::pair<std::string, std::string>> kinds;
  for (std::size_t kind = 0; kind < std::size(kKinds); ++kind)
    kinds.emplace_back(fmt::format("mw-p{}", kind), kKinds[kind]);
  kinds.emplace_back(fmt::format("mw-p{}", kMoment), "for a moment");
  double y = 76 + picture.legend(76, kinds);
  for (const auto& [name, memory] : ways) {
    y += kRowGap + kPlotHeight;
    const auto highest = std::max_element(memory.phases.begin(), memory.phases.end(),
                                          [](const PhaseMemory& a, const PhaseMemory& b) { return a.most < b.most; });
    std::string words = fmt::format("{}: {} between two steps", name, bytes_text(memory.held()));
    if (highest != memory.phases.end())
      words += fmt::format(", at most {}, in {}", bytes_text(highest->most), about(*highest, layout));
    picture.text(kMargin, y - kPlotHeight - 16, "mw-prose mw-strong", words);
    draw_bars(picture, memory, layout, y, per_byte);
    picture.line(kMargin, y, kMargin + kPlotWidth, y, "mw-rule");
    picture.say(words + ".");
  }
  return picture.svg(y + kMargin);
}

}  // namespace muonwalk::sim
