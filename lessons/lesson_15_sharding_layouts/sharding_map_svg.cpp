#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "lessons/lesson_15_sharding_layouts/sharding_map.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/layout/sharding.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kWidth = 960;
constexpr double kMargin = SvgPicture::kMargin;
constexpr double kRowWidth = 560;  // of the buffers of a layout
constexpr double kRowHeight = 34;
constexpr double kBandHeight = 12;
constexpr double kBarsLeft = kMargin + kRowWidth + 44;
constexpr double kBarsWidth = kWidth - kMargin - kBarsLeft;
constexpr double kBarsHeight = 66;
constexpr double kPanelPitch = 112;
constexpr std::size_t kMostLabels = 16;  // ranks that have room for a number below their bars

// Loads over an equal share of what there is once.
std::vector<double> over_share(const std::vector<double>& loads, double once) {
  std::vector<double> over;
  for (const double load : loads) over.push_back(once == 0 ? 0 : load * static_cast<double>(loads.size()) / once);
  return over;
}

// One layout, and what it means for the ranks.
struct Panel {
  std::string name;
  const Layout* layout;
  int cut = 0, matrices = 0;
  std::vector<double> elements, work;  // of each DP rank, over an equal share

  Panel(std::string of, const Layout& shown) : name(std::move(of)), layout(&shown) {
    const Sharding sharding = sharding_of(shown);
    cut = sharding.cut;
    matrices = sharding.matrices;
    const std::vector<double> owned(sharding.elements.begin(), sharding.elements.end());
    double all = 0;
    for (const double each : owned) all += each;
    elements = over_share(owned, all);
    work = over_share(sharding.flops, sharding.flops_once);
  }
  double most() const {
    return std::max(*std::max_element(elements.begin(), elements.end()), *std::max_element(work.begin(), work.end()));
  }
  std::string cut_text() const { return fmt::format("{} of {} cut", number_text(cut), number_text(matrices)); }
};

// The buffers one after the other in a row, and below them who owns what.
void draw_buffers(SvgPicture& picture, const Layout& layout, double top) {
  Index size = 0;
  for (const Buffer& buffer : layout.buffers) size += buffer.size;
  const double scale = size == 0 ? 0 : kRowWidth / static_cast<double>(size);
  for (const char* ground : {"mw-padding", "mw-hatching"})
    picture.box(kMargin, top, kRowWidth, kRowHeight, ground, "padding");
  double left = kMargin;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    const auto box = [&](const Range& range, double y, double height, const std::string& classes,
                         const std::string& tip, const std::string& label) {
      picture.box(left + scale * static_cast<double>(range.begin), y, scale * static_cast<double>(range.size()), height,
                  classes, tip, label);
    };
    for (const DistMeta& meta : buffer.parameters) {
      const std::vector<int> owners = layout.owners(meta);
      const std::string tip =
          fmt::format("{}: elements {}, DP ranks {}", visible_name(meta.name), range_text(meta.global_range),
                      range_text({owners.front(), owners.back() + 1}));
      box(meta.global_range, top, kRowHeight, fmt::format("mw-p{} mw-line", meta.parameter % kColours), tip, "");
      if (owners.size() > 1) box(meta.global_range, top, kRowHeight, "mw-dots mw-line", tip, "");
    }
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k)
      for (int rank = 0; rank < layout.grid.dp(); ++rank) {
        const Range own = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), rank);
        if (own.empty()) continue;
        box(own, top + kRowHeight + 4, kBandHeight, fmt::format("mw-none mw-o{} mw-wide", rank % kColours),
            fmt::format("bucket {}: DP rank {} owns {}", k, rank, range_text(own)), std::to_string(rank));
      }
    left += scale * static_cast<double>(buffer.size);
  }
}

// Two bars for each rank: its elements and its work; `most` is the height of the highest of all.
void draw_bars(SvgPicture& picture, const Panel& panel, double top, double most) {
  const std::size_t ranks = panel.work.size();
  const double pitch = kBarsWidth / static_cast<double>(ranks), width = pitch * 0.36, bottom = top + kBarsHeight;
  const double unit = kBarsHeight / most;
  const auto bar = [&](double left, double load, const char* classes, const char* of, std::size_t rank) {
    if (load > 0)
      picture.box(left, bottom - unit * load, width, unit * load, classes,
                  fmt::format("DP rank {}: {:.2f} of an equal share of the {}", rank, load, of));
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    const double x = kBarsLeft + pitch * (static_cast<double>(r) + 0.12);
    bar(x, panel.elements[r], "mw-grey", "elements", r);
    bar(x + width, panel.work[r], "mw-ink", "work", r);
    if (ranks <= kMostLabels) picture.text(x + width, bottom + 13, "mw-middle mw-small mw-quiet", std::to_string(r));
  }
  picture.line(kBarsLeft, bottom, kBarsLeft + kBarsWidth, bottom, "mw-line");
  picture.line(kBarsLeft, bottom - unit, kBarsLeft + kBarsWidth, bottom - unit, "mw-line mw-dashed");
}

// Marks, ranks and parameters, each with its words.
std::vector<std::pair<std::string, std::string>> legend_of(const Layout& layout) {
  std::vector<std::pair<std::string, std::string>> entries = {{"mw-dots mw-line", "cut: several owners"},
                                                              {"mw-hatching", "padding"},
                                                              {"mw-grey", "elements"},
                                                              {"mw-ink", "work"}};
  for (int rank = 0; rank < std::min(layout.grid.dp(), kColours); ++rank)
    entries.emplace_back(fmt::format("mw-none mw-o{} mw-wide", rank), fmt::format("DP rank {}", rank));
  std::map<int, std::string> names;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) names[meta.parameter] = visible_name(meta.name, 16);
  for (const auto& [parameter, name] : names) entries.emplace_back(fmt::format("mw-p{}", parameter % kColours), name);
  return entries;
}

}  // namespace

std::string sharding_map_svg(const std::vector<std::pair<std::string, Layout>>& layouts) {
  if (layouts.empty()) throw std::invalid_argument("a picture of layouts needs at least one of them");
  std::vector<Panel> panels;
  double most = 1;
  for (const auto& [name, layout] : layouts) {
    panels.emplace_back(name, layout);
    most = std::max(most, panels.back().most());
  }
  SvgPicture picture(kWidth, "Who owns what, and how much work that is · " + layouts[0].second.grid.text(),
                     "Dotted matrices have several owners. The dashed line is an equal share of all elements, or of "
                     "all work done once.");
  double y = 92;
  for (const Panel& panel : panels) {
    const std::string name = visible_name(panel.name);
    picture.text(kMargin, y, "mw-prose mw-strong", name + " · " + panel.cut_text());
    draw_buffers(picture, *panel.layout, y + 12);
    draw_bars(picture, panel, y - 2, most);
    const double slowest = *std::max_element(panel.work.begin(), panel.work.end());
    const double fullest = *std::max_element(panel.elements.begin(), panel.elements.end());
    picture.text(
        kMargin, y + 76, "mw-small mw-quiet",
        fmt::format("the most of a rank, over an equal share: {:.2f} of elements, {:.2f} of work", fullest, slowest));
    picture.say(
        fmt::format("{}: {}; no rank has more than {:.2f} of an equal share of the elements, and {:.2f} of the work.",
                    name, panel.cut_text(), fullest, slowest));
    y += kPanelPitch;
  }
  y += picture.legend(y - 14, legend_of(layouts[0].second)) - 14;
  return picture.svg(y + 8);
}

}  // namespace muonwalk
