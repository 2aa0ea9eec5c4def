#include "lessons/lesson_01_grid/grid_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/text/text.hpp"

namespace muonwalk {
namespace {

constexpr int kFewestColumns = 60;
constexpr int kGap = 4;            // between panels
constexpr int kMostRuledRows = 8;  // more DP ranks than that are drawn without lines between them

// The part of the grid that one panel shows: a pipeline stage, or as much of its TP ranks as fits on a line.
struct Panel {
  int pp = 0;
  int first_tp = 0;
  int end_tp = 0;
};

// `text` with as many spaces on both sides as make it `width` characters.
std::string centred(const std::string& text, int width) {
  const int left = std::max(0, width - text_width(text)) / 2;
  return pad_right(std::string(static_cast<std::size_t>(left), ' ') + text, width);
}

// Boxes for the ranks of a panel, a row for each DP rank, and above them their TP ranks and the stage.
std::vector<std::string> panel_lines(const Grid& grid, const Panel& panel, int cell) {
  const auto across = [&](const char* left, const char* middle, const char* right, const auto& of_tp) {
    std::string line = left;
    for (int tp = panel.first_tp; tp < panel.end_tp; ++tp) line += of_tp(tp) + (tp + 1 < panel.end_tp ? middle : right);
    return line;
  };
  const auto rule = [&](const char* left, const char* middle, const char* right) {
    return across(left, middle, right, [&](int) {
      std::string dashes;
      for (int i = 0; i < cell; ++i) dashes += "─";
      return dashes;
    });
  };
  std::vector<std::string> lines = {
      across(" ", " ", " ", [&](int tp) { return centred(fmt::format("tp {}", tp), cell); }), rule("┌", "┬", "┐")};
  if (grid.pp() > 1)
    lines.insert(lines.begin(),
                 centred(fmt::format("pp {}", panel.pp), (panel.end_tp - panel.first_tp) * (cell + 1) + 1));
  for (int dp = 0; dp < grid.dp(); ++dp) {
    if (dp > 0 && grid.dp() <= kMostRuledRows) lines.push_back(rule("├", "┼", "┤"));
    lines.push_back(
        across("│", "│", "│", [&](int tp) { return centred(std::to_string(grid.rank(dp, tp, panel.pp)), cell); }));
  }
  lines.push_back(rule("└", "┴", "┘"));
  return lines;
}

// The panels, as many beside each other as have room.
std::string panels_text(const Grid& grid, int columns) {
  const int cell =
      std::max(text_width("tp " + std::to_string(grid.tp() - 1)) + 2, text_width(std::to_string(grid.size() - 1)) + 4);
  const int label = text_width("dp " + std::to_string(grid.dp() - 1)) + 2, room = columns - label;
  const int most_tp = std::clamp((room - 1) / (cell + 1), 1, grid.tp());
  std::vector<std::string> lines;  // of the panels that stand beside each other
  std::string text;
  const auto end_row = [&] {
    int dp = 0;
    for (std::string& line : lines) {
      const bool of_ranks = line.find("│") != std::string::npos;
      line = pad_right(of_ranks ? fmt::format("dp {}", dp++) : "", label) + line;
      text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
    }
    lines.clear();
  };
  for (int pp = 0; pp < grid.pp(); ++pp)
    for (int tp = 0; tp < grid.tp(); tp += most_tp) {
      const std::vector<std::string> panel = panel_lines(grid, {pp, tp, std::min(tp + most_tp, grid.tp())}, cell);
      if (!lines.empty() && text_width(lines[0]) + kGap + most_tp * (cell + 1) + 1 > room) {
        end_row();
        text += "\n";
      }
      const bool first = lines.empty();
      lines.resize(panel.size());
      for (std::size_t i = 0; i < panel.size(); ++i) lines[i] += (first ? "" : std::string(kGap, ' ')) + panel[i];
    }
  end_row();
  return text;
}

// "tp  4 groups of 2  {0 1} {2 3} …", broken between groups, or between ranks where a group is longer than a line.
std::string groups_text(const Grid& grid, const std::string& name, int columns) {
  const std::vector<Group> groups = grid.groups(name);
  const std::string heading =
      fmt::format("{}  {} of {}", name, count_text(static_cast<std::int64_t>(groups.size()), "group"), grid.size(name));
  constexpr int kHeading = 20;
  std::string text;
  std::string line = pad_right(heading, kHeading);
  const auto add = [&](const std::string& word) {
    if (text_width(line) + 1 + text_width(word) > columns) {
      text += line + "\n";
      line = std::string(kHeading, ' ');
    }
    line += " " + word;
  };
  for (const Group& group : groups) {
    const std::string whole = fmt::format("{{{}}}", fmt::join(group.ranks, " "));
    if (text_width(whole) < columns - kHeading) {
      add(whole);
      continue;
    }
    for (const int rank : group.ranks)
      add((rank == group.ranks.front() ? "{" : "") + std::to_string(rank) + (rank == group.ranks.back() ? "}" : ""));
  }
  return text + line + "\n";
}

}  // namespace

std::string grid_map_text(const Grid& grid, int columns) {
  if (columns < kFewestColumns)
    throw std::invalid_argument("a map needs at least " + std::to_string(kFewestColumns) + " columns, not " +
                                std::to_string(columns));
  std::string text = panels_text(grid, columns) + "\n";
  for (const char* name : {"tp", "dp", "pp"}) text += groups_text(grid, name, columns);
  return text;
}

}  // namespace muonwalk
