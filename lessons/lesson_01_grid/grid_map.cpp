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

class TextGrid {
 public:
  TextGrid(const Grid& grid, int columns) : grid_(grid) {
    cell_ = std::max(text_width("tp " + std::to_string(grid.tp() - 1)) + 2,
                     text_width(std::to_string(grid.size() - 1)) + 4);
    label_ = text_width("dp " + std::to_string(grid.dp() - 1)) + 2;
    const int room = columns - label_;
    tp_a_panel_ = std::clamp((room - 1) / (cell_ + 1), 1, grid.tp());
    panels_a_line_ = std::max(1, (room + kGap) / (panel_width(tp_a_panel_) + kGap));
  }

  std::string text() const {
    std::vector<Panel> panels;
    for (int pp = 0; pp < grid_.pp(); ++pp)
      for (int tp = 0; tp < grid_.tp(); tp += tp_a_panel_)
        panels.push_back({pp, tp, std::min(tp + tp_a_panel_, grid_.tp())});
    std::string text;
    for (std::size_t first = 0; first < panels.size(); first += static_cast<std::size_t>(panels_a_line_)) {
      const std::size_t end = std::min(first + static_cast<std::size_t>(panels_a_line_), panels.size());
      if (first > 0) text += "\n";
      text += panel_lines(
          {panels.begin() + static_cast<std::ptrdiff_t>(first), panels.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    return text;
  }

 private:
  int panel_width(int ranks) const { return ranks * (cell_ + 1) + 1; }

  // One line through all panels of a row: what `of_panel` gives for each, after a label.
  template <class OfPanel>
  std::string line(const std::string& label, const std::vector<Panel>& panels, const OfPanel& of_panel) const {
    std::string text = pad_right(label, label_);
    for (std::size_t i = 0; i < panels.size(); ++i) text += std::string(i > 0 ? kGap : 0, ' ') + of_panel(panels[i]);
    return text.erase(text.find_last_not_of(' ') + 1) + "\n";
  }

  std::string rule(const Panel& panel, const char* left, const char* middle, const char* right) const {
    std::string text = left;
    for (int tp = panel.first_tp; tp < panel.end_tp; ++tp) {
      for (int i = 0; i < cell_; ++i) text += "─";
      text += tp + 1 < panel.end_tp ? middle : right;
    }
    return text;
  }

  std::string panel_lines(const std::vector<Panel>& panels) const {
    std::string text;
    if (grid_.pp() > 1) {
      text += line("", panels, [&](const Panel& panel) {
        return centred("pp " + std::to_string(panel.pp), panel_width(panel.end_tp - panel.first_tp));
      });
    }
    text += line("", panels, [&](const Panel& panel) {
      std::string heading = " ";
      for (int tp = panel.first_tp; tp < panel.end_tp; ++tp) heading += centred(fmt::format("tp {}", tp), cell_) + " ";
      return heading;
    });
    text += line("", panels, [&](const Panel& panel) { return rule(panel, "┌", "┬", "┐"); });
    for (int dp = 0; dp < grid_.dp(); ++dp) {
      if (dp > 0 && grid_.dp() <= kMostRuledRows)
        text += line("", panels, [&](const Panel& panel) { return rule(panel, "├", "┼", "┤"); });
      text += line(fmt::format("dp {}", dp), panels, [&](const Panel& panel) {
        std::string row = "│";
        for (int tp = panel.first_tp; tp < panel.end_tp; ++tp)
          row += centred(std::to_string(grid_.rank(dp, tp, panel.pp)), cell_) + "│";
        return row;
      });
    }
    return text + line("", panels, [&](const Panel& panel) { return rule(panel, "└", "┴", "┘"); });
  }

  const Grid& grid_;
  int cell_ = 0;   // characters in a box
  int label_ = 0;  // characters before the first box
  int tp_a_panel_ = 1;
  int panels_a_line_ = 1;
};

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
  std::string text = TextGrid(grid, columns).text() + "\n";
  for (const char* name : {"tp", "dp", "pp"}) text += groups_text(grid, name, columns);
  return text;
}

}  // namespace muonwalk
