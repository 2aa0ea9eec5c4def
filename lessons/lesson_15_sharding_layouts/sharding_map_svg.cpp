#include <fmt/format.h>

#include <algorithm>
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
constexpr double kMargin = 24;
constexpr double kRowWidth = 560;  // of the buffers of a layout
constexpr double kRowHeight = 34;
constexpr double kBandHeight = 12;
constexpr double kBarsLeft = kMargin + kRowWidth + 44;
constexpr double kBarsWidth = kWidth - kMargin - kBarsLeft;
constexpr double kBarsHeight = 66;
constexpr double kPanelPitch = 112;
constexpr double kLegendPitch = 22;
constexpr int kLegendColumns = 6;
constexpr int kMostLabels = 16;  // ranks that have room for a number below their bars

SvgStyle style() {
  SvgStyle style(".mw-sharding", 12, 17, 13);
  style.rule(".mw-small", "font-size:10.5px");
  style.rule(".mw-cut", "fill:url(#mw-cuts);stroke-width:2");
  style.rule(".mw-share", "stroke-width:1;stroke-dasharray:4 3");
  style.colour(".mw-cut", "stroke", kInk);
  style.colour(".mw-lines", "stroke", kInk);
  style.colour(".mw-padding", "fill", kPadding);
  style.colour(".mw-span", "stroke", kInk);
  style.colour(".mw-share", "stroke", kInk);
  style.colour(".mw-elements", "fill", kHatch);
  style.colour(".mw-work", "fill", kInk);
  style.colours(".mw-p", "fill", parameter_colour);
  style.rule(".mw-none", "fill:none");
  style.rule(".mw-owner", "stroke-width:2.5");
  style.colour(".mw-dots", "fill", kInk);
  style.colour(".mw-hatch", "stroke", kHatch);
  style.colours(".mw-r", "stroke", rank_colour);
  return style;
}

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

// The buffers one after the other in a row.
std::string buffers_in_row(const Layout& layout, double top) {
  Index size = 0;
  for (const Buffer& buffer : layout.buffers) size += buffer.size;
  const double scale = size == 0 ? 0 : kRowWidth / static_cast<double>(size);
  std::string svg =
      svg_rectangle(kMargin, top, kRowWidth, kRowHeight, "class=\"mw-padding\"") +
      svg_rectangle(kMargin, top, kRowWidth, kRowHeight, "fill=\"url(#mw-hatching)\"", "<title>padding</title>");
  std::string cuts, band;
  double left = kMargin;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    const auto x = [&](Index element) { return left + scale * static_cast<double>(element); };
    for (const DistMeta& meta : buffer.parameters) {
      const std::vector<int> owners = layout.owners(meta);
      const Range range = meta.global_range;
      const double width = x(range.end) - x(range.begin);
      const std::string title =
          fmt::format("<title>{}: elements {}, DP ranks {}</title>", xml_text(visible_name(meta.name)),
                      range_text(range), range_text({owners.front(), owners.back() + 1}));
      svg += svg_rectangle(x(range.begin), top, width, kRowHeight,
                           fmt::format("class=\"mw-p{} mw-span\" stroke-width=\"{:.2f}\"", meta.parameter % kColours,
                                       std::min(1.0, width / 4)),
                           title);
      if (owners.size() > 1) cuts += svg_rectangle(x(range.begin), top, width, kRowHeight, "class=\"mw-cut\"", title);
    }
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k)
      for (int rank = 0; rank < layout.grid.dp(); ++rank) {
        const Range own = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), rank);
        if (own.empty()) continue;
        band += svg_rectangle(x(own.begin), top + kRowHeight + 4, x(own.end) - x(own.begin), kBandHeight,
                              fmt::format("class=\"mw-r{} mw-none mw-owner\"", rank % kColours),
                              fmt::format("<title>bucket {}: DP rank {} owns {}</title>", k, rank, range_text(own)));
        if (x(own.end) - x(own.begin) >= 14)
          band += svg_text((x(own.begin) + x(own.end)) / 2, top + kRowHeight + 14, "mw-middle mw-small",
                           std::to_string(rank));
      }
    left = x(buffer.size);
  }
  return svg + cuts + band;
}

// Two bars for each rank: its elements and its work; `most` is the height of the highest of all.
std::string bars(const Panel& panel, double top, double most) {
  const std::size_t ranks = panel.work.size();
  const double pitch = kBarsWidth / static_cast<double>(ranks), bar = pitch * 0.36, bottom = top + kBarsHeight;
  const double unit = kBarsHeight / most;
  std::string svg;
  const auto bar_of = [&](double left, double load, const char* of, std::size_t rank) {
    if (load == 0) return std::string();
    return svg_rectangle(left, bottom - unit * load, bar, unit * load, fmt::format("class=\"mw-{}\"", of),
                         fmt::format("<title>DP rank {}: {:.2f} of an equal share of the {}</title>", rank, load, of));
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    const double x = kBarsLeft + pitch * static_cast<double>(r) + pitch * 0.12;
    svg += bar_of(x, panel.elements[r], "elements", r) + bar_of(x + bar, panel.work[r], "work", r);
    if (ranks <= static_cast<std::size_t>(kMostLabels))
      svg += svg_text(x + bar, bottom + 13, "mw-middle mw-small mw-quiet", std::to_string(r));
  }
  svg += svg_line(kBarsLeft, bottom, kBarsLeft + kBarsWidth, bottom, "class=\"mw-lines\"");
  return svg + svg_line(kBarsLeft, bottom - unit, kBarsLeft + kBarsWidth, bottom - unit, "class=\"mw-share\"");
}

// A swatch with its words.
std::string legend_entry(double x, double y, const std::string& attributes, const std::string& words) {
  return svg_rectangle(x, y, 14, 14, "class=\"mw-padding\"") + svg_rectangle(x, y, 14, 14, attributes) +
         svg_text(x + 20, y + 11, "mw-small", words);
}

// Parameters, ranks and marks, in as many columns as fit; `y` is moved below them.
std::string legend(const Layout& layout, double& y) {
  std::vector<std::pair<std::string, std::string>> entries = {{"class=\"mw-cut\"", "cut: several owners"},
                                                              {"fill=\"url(#mw-hatching)\"", "padding"},
                                                              {"class=\"mw-elements\"", "elements"},
                                                              {"class=\"mw-work\"", "work"}};
  for (int rank = 0; rank < std::min(layout.grid.dp(), kColours); ++rank)
    entries.emplace_back(fmt::format("class=\"mw-owner mw-none mw-r{}\"", rank), fmt::format("DP rank {}", rank));
  std::vector<const DistMeta*> metas;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) metas.push_back(&meta);
  std::sort(metas.begin(), metas.end(), [](auto* a, auto* b) { return a->parameter < b->parameter; });
  for (const DistMeta* meta : metas)
    entries.emplace_back(fmt::format("class=\"mw-p{}\"", meta->parameter % kColours), visible_name(meta->name, 16));

  std::string svg;
  const double column = (kWidth - 2 * kMargin) / kLegendColumns;
  for (std::size_t i = 0; i < entries.size(); ++i)
    svg +=
        legend_entry(kMargin + column * static_cast<double>(i % kLegendColumns),
                     y + kLegendPitch * static_cast<double>(i / kLegendColumns), entries[i].first, entries[i].second);
  y += kLegendPitch * static_cast<double>((entries.size() + kLegendColumns - 1) / kLegendColumns);
  return svg;
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

  const std::string grid = layouts[0].second.grid.text();
  std::string body = svg_text(kMargin, 38, "mw-title", "Who owns what, and how much work that is · " + grid);
  body += svg_text(kMargin, 60, "mw-prose mw-quiet",
                   "Dotted matrices have several owners. The dashed line is an equal share of all elements, or of all "
                   "work done once.");
  std::string description;
  double y = 92;
  for (const Panel& panel : panels) {
    body += svg_text(kMargin, y, "mw-prose mw-strong", visible_name(panel.name) + " · " + panel.cut_text());
    body += buffers_in_row(*panel.layout, y + 12) + bars(panel, y - 2, most);
    const double slowest = *std::max_element(panel.work.begin(), panel.work.end());
    const double fullest = *std::max_element(panel.elements.begin(), panel.elements.end());
    body += svg_text(
        kMargin, y + 76, "mw-small mw-quiet",
        fmt::format("the most of a rank, over an equal share: {:.2f} of elements, {:.2f} of work", fullest, slowest));
    description +=
        fmt::format("{}{}: {}; no rank has more than {:.2f} of an equal share of the elements, and {:.2f} of the work.",
                    description.empty() ? "" : " ", visible_name(panel.name), panel.cut_text(), fullest, slowest);
    y += kPanelPitch;
  }
  y -= 14;
  body += legend(layouts[0].second, y);
  const std::string patterns =
      "<defs><pattern id=\"mw-hatching\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"mw-hatch\" "
      "stroke-width=\"3\"/></pattern><pattern id=\"mw-cuts\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\"><circle cx=\"3\" cy=\"3\" r=\"1.1\" class=\"mw-dots\"/></pattern></defs>\n";
  return svg_page("mw-sharding", kWidth, y + 8, "Layouts of the same matrices, " + grid, description, style(),
                  patterns + body);
}

}  // namespace muonwalk
