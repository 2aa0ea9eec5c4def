#include <fmt/format.h>

#include <algorithm>

#include "lessons/lesson_01_grid/grid_map.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kMargin = SvgPicture::kMargin;
constexpr double kFewestWidth = 560;  // room for the lines of prose
constexpr double kBoxWidth = 62;
constexpr double kBoxHeight = 40;
constexpr double kPitchX = kBoxWidth + 10;
constexpr double kPitchY = kBoxHeight + 10;
constexpr double kLabel = 44;     // "dp 0" before a panel
constexpr double kStageGap = 26;  // between pipeline stages

double stage_width(const Grid& grid) { return kPitchX * grid.tp() + kStageGap; }

// The whole grid, coloured by the groups of one kind; its boxes begin at `top`.
void draw_coloured(SvgPicture& picture, const Grid& grid, const std::string& name, double top) {
  const auto left_of = [&](int pp, int tp) { return kMargin + kLabel + stage_width(grid) * pp + kPitchX * tp; };
  for (int pp = 0; pp < grid.pp(); ++pp)
    for (int tp = 0; tp < grid.tp(); ++tp)
      picture.text(left_of(pp, tp) + kBoxWidth / 2, top - 8, "mw-middle mw-quiet mw-small",
                   grid.pp() > 1 ? fmt::format("tp {} pp {}", tp, pp) : fmt::format("tp {}", tp));
  for (int dp = 0; dp < grid.dp(); ++dp)
    picture.text(kMargin, top + kPitchY * dp + 24, "mw-quiet", fmt::format("dp {}", dp));
  const std::vector<Group> groups = grid.groups(name);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const int rank : groups[g].ranks) {
      const Place place = grid.place(rank);
      const double x = left_of(place.pp, place.tp), y = top + kPitchY * place.dp;
      picture.box(x, y, kBoxWidth, kBoxHeight, fmt::format("mw-p{}", g % kColours),
                  fmt::format("rank {}: dp {}, tp {}, pp {}; {} group {}: ranks {}", rank, place.dp, place.tp, place.pp,
                              name, g, fmt::join(groups[g].ranks, ", ")));
      picture.text(x + kBoxWidth / 2, y + 19, "mw-middle mw-large", std::to_string(rank));
      picture.text(x + kBoxWidth / 2, y + 33, "mw-middle mw-small", fmt::format("group {}", g));
    }
  }
}

std::string what_it_joins(const std::string& name) {
  if (name == "tp") return "a row of a stage: the slices of the same matrices";
  if (name == "dp") return "a column of a stage: the same slices, different data";
  return "the same place in every stage: different layers";
}

}  // namespace

std::string grid_map_svg(const Grid& grid) {
  SvgPicture picture(
      std::max(kFewestWidth, 2 * kMargin + kLabel + stage_width(grid) * grid.pp() - kStageGap - (kPitchX - kBoxWidth)),
      "Grid of ranks, " + grid.text(), "The same grid three times: ranks of one colour form a group.");
  picture.say(fmt::format("{} in a grid, {}.", count_text(grid.size(), "rank"), grid.text()));
  double y = 96;
  for (const char* name : {"tp", "dp", "pp"}) {
    const std::vector<Group> groups = grid.groups(name);
    const std::string heading = fmt::format(
        "{} · {} of {}", name, count_text(static_cast<std::int64_t>(groups.size()), "group"), grid.size(name));
    picture.text(kMargin, y, "mw-prose mw-strong", heading + " · " + what_it_joins(name));
    std::string ranks;
    for (const Group& group : groups) ranks += fmt::format(" {{{}}}", fmt::join(group.ranks, " "));
    picture.say(heading + ":" + ranks + ".");
    draw_coloured(picture, grid, name, y + 36);
    y += 36 + kPitchY * grid.dp() + 30;
  }
  return picture.svg(y - 22);
}

}  // namespace muonwalk
