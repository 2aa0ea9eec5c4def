#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_01_grid/grid_map.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kMargin = 24;
constexpr double kFewestWidth = 560;  // room for the lines of prose
constexpr double kBoxWidth = 62;
constexpr double kBoxHeight = 40;
constexpr double kPitchX = kBoxWidth + 10;
constexpr double kPitchY = kBoxHeight + 10;
constexpr double kLabel = 44;     // "dp 0" before a panel
constexpr double kStageGap = 26;  // between pipeline stages

SvgStyle style() {
  SvgStyle style(".mw-grid", 12, 17, 13);
  style.rule(".mw-rank", "font-size:15px;font-weight:bold");
  style.rule(".mw-small", "font-size:10px");
  style.colours(".mw-p", "fill", parameter_colour);
  return style;
}

// The rank's box in the colour of its group of this kind, number `group_idx` among them.
std::string rank_box(const Grid& grid, const std::string& name, int group_idx, int rank, double x, double y) {
  const Place place = grid.place(rank);
  const std::vector<int> members = grid.group(name, rank).ranks;
  const std::string title = fmt::format("<title>rank {}: dp {}, tp {}, pp {}; {} group {}: ranks {}</title>", rank,
                                        place.dp, place.tp, place.pp, name, group_idx, fmt::join(members, ", "));
  return svg_rectangle(x, y, kBoxWidth, kBoxHeight,
                       fmt::format("rx=\"6\" class=\"mw-box mw-p{}\"", group_idx % kColours), title) +
         svg_text(x + kBoxWidth / 2, y + 19, "mw-middle mw-rank", std::to_string(rank)) +
         svg_text(x + kBoxWidth / 2, y + 33, "mw-middle mw-small", fmt::format("group {}", group_idx));
}

double stage_width(const Grid& grid) { return kPitchX * grid.tp() + kStageGap; }

// The whole grid, coloured by the groups of one kind; its boxes begin at `top`.
std::string coloured_grid(const Grid& grid, const std::string& name, double top) {
  std::string svg;
  for (int pp = 0; pp < grid.pp(); ++pp) {
    const double left = kMargin + kLabel + stage_width(grid) * pp;
    for (int tp = 0; tp < grid.tp(); ++tp) {
      const std::string label = grid.pp() > 1 ? fmt::format("tp {} pp {}", tp, pp) : fmt::format("tp {}", tp);
      svg += svg_text(left + kPitchX * tp + kBoxWidth / 2, top - 8, "mw-middle mw-quiet mw-small", label);
    }
    for (int dp = 0; pp == 0 && dp < grid.dp(); ++dp)
      svg += svg_text(kMargin, top + kPitchY * dp + 24, "mw-quiet", fmt::format("dp {}", dp));
  }
  const std::vector<Group> groups = grid.groups(name);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const int rank : groups[g].ranks) {
      const Place place = grid.place(rank);
      const double x = kMargin + kLabel + stage_width(grid) * place.pp + kPitchX * place.tp;
      svg += rank_box(grid, name, static_cast<int>(g), rank, x, top + kPitchY * place.dp);
    }
  }
  return svg;
}

std::string what_it_joins(const std::string& name) {
  if (name == "tp") return "a row of a stage: the slices of the same matrices";
  if (name == "dp") return "a column of a stage: the same slices, different data";
  return "the same place in every stage: different layers";
}

}  // namespace

std::string grid_map_svg(const Grid& grid) {
  const double width =
      std::max(kFewestWidth, 2 * kMargin + kLabel + stage_width(grid) * grid.pp() - kStageGap - (kPitchX - kBoxWidth));
  std::string body = svg_text(kMargin, 38, "mw-title", "Grid of ranks · " + grid.text());
  body += svg_text(kMargin, 60, "mw-prose mw-quiet", "The same grid three times: ranks of one colour form a group.");
  std::string description = fmt::format("{} in a grid, {}.", count_text(grid.size(), "rank"), grid.text());
  double y = 96;
  for (const char* name : {"tp", "dp", "pp"}) {
    const std::vector<Group> groups = grid.groups(name);
    const std::string heading = fmt::format(
        "{} · {} of {}", name, count_text(static_cast<std::int64_t>(groups.size()), "group"), grid.size(name));
    body += svg_text(kMargin, y, "mw-prose mw-strong", heading + " · " + what_it_joins(name));
    description += " " + heading + ":";
    for (const Group& group : groups) description += fmt::format(" {{{}}}", fmt::join(group.ranks, " "));
    description += ".";
    body += coloured_grid(grid, name, y + 36);
    y += 36 + kPitchY * grid.dp() + 30;
  }
  y -= 22;
  return svg_page("mw-grid", width, y, "Grid of ranks, " + grid.text(), description, style(), body);
}

}  // namespace muonwalk
