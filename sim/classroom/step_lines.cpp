#include "sim/classroom/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "src/layout/parameter.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The cells of one line about something shown: name with its range, shape, bytes, bar and note.
struct ShownLine {
  std::string name, shape, bytes, bar, note;
};

ShownLine shown_line(const Shown& shown) {
  const RecordedBlock& block = shown.block;
  ShownLine line;
  line.name = block.name;
  line.shape = block.flat ? fmt::format("{}", block.cols) : shape_text(block.rows, block.cols);
  line.bytes = bytes_text(block.bytes);
  if (shown.has_bar) {
    if (!block.unit.empty()) line.name += fmt::format("[{} {}]", block.unit, range_text({block.begin, block.end}));
    line.bar = bar_text(block.begin, block.end, block.of);
  }
  line.note = block.note.value_or("");
  return line;
}

// A matrix as rows of numbers that stand `indent` columns from the left; what does not fit is left out and counted. A
// flat array continues on the next line.
std::vector<std::string> value_lines(const Shown& shown, int indent) {
  constexpr long long kMostRows = 16;
  const long long rows = shown.block.rows, cols = shown.block.cols;
  const float* values = shown.values.data();
  const bool flat = shown.block.flat;
  std::size_t width = 7;  // at least, so that matrices of small numbers look alike
  for (long long at = 0; at < rows * cols; ++at) width = std::max(width, fmt::formatted_size("{:.4g}", values[at]));
  const long long room = (output_columns() - indent) / static_cast<long long>(width + 2);
  const long long room_and_count =
      (output_columns() - indent - text_width("  … 1000000 more")) / static_cast<long long>(width + 2);
  const long long shown_cols = std::max(1LL, flat || cols <= room ? std::min(cols, room) : room_and_count);
  const long long all_rows = flat ? (cols + shown_cols - 1) / shown_cols : rows;
  std::vector<std::string> lines;
  for (long long row = 0; row < std::min(all_rows, kMostRows); ++row) {
    std::string line;
    for (long long col = 0; col < shown_cols; ++col) {
      const long long at = flat ? row * shown_cols + col : row * cols + col;
      if (at < rows * cols) line += fmt::format("{:>{}.4g}", values[at], width + 2);
    }
    lines.push_back(line + (!flat && cols > shown_cols ? fmt::format("  … {} more", cols - shown_cols) : ""));
  }
  if (all_rows > kMostRows) lines.push_back(fmt::format("… {} more lines", all_rows - kMostRows));
  return lines;
}

}  // namespace

std::vector<std::string> step_lines(const Grid& grid, const StepReports& reports, bool values) {
  std::map<const Shown*, ShownLine> lines_of;
  int label = 0, name = 0, shape = 0, bytes = 0, bar = 0;
  for (int rank = 0; rank < static_cast<int>(reports.size()); ++rank)
    label = std::max(label, text_width(rank_label(grid, rank)));
  for_each<Shown>(reports, [&](int, const Shown& shown) {
    const ShownLine& line = lines_of[&shown] = shown_line(shown);
    name = std::max(name, text_width(line.name));
    shape = std::max(shape, text_width(line.shape));
    bytes = std::max(bytes, text_width(line.bytes));
    bar = std::max(bar, text_width(line.bar));
  });
  // Each rank's lines without its label.
  std::vector<std::vector<std::string>> said_by(reports.size());
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    for (const Report& report : reports[rank]) {
      std::vector<std::string>& lines = said_by[rank];
      if (const auto* said = std::get_if<Said>(&report)) {
        lines.push_back(said->line);
      } else if (const auto* shown = std::get_if<Shown>(&report)) {
        const ShownLine& s = lines_of[shown];
        std::string line =
            fmt::format("{}   {}   {}", pad_right(s.name, name), pad_left(s.shape, shape), pad_left(s.bytes, bytes));
        if (bar > 0) line += "   " + pad_right(s.bar, bar);
        if (!s.note.empty()) line += "   " + s.note;
        lines.push_back(line);
        if (values && !shown->values.empty()) {
          lines.push_back(fmt::format("digest {}", digest_text(shown->values)));
          for (std::string& value : value_lines(*shown, label + 5)) lines.push_back(std::move(value));
        }
      }
    }
  // Ranks that say the same say it once. The label stands in the first line only.
  std::vector<std::pair<std::vector<std::string>, std::vector<int>>> sets;
  if (values)
    for (std::size_t rank = 0; rank < said_by.size(); ++rank) sets.push_back({said_by[rank], {static_cast<int>(rank)}});
  else
    sets = sets_of_equal(said_by.size(), [&](std::size_t rank) { return said_by[rank]; });
  for (const auto& [said, ranks] : sets)
    if (!said.empty()) label = std::max(label, text_width(ranks_label(grid, ranks)));
  std::vector<std::string> lines;
  for (const auto& [said, ranks] : sets) {
    std::string who = ranks_label(grid, ranks);
    for (const std::string& line : said) {
      lines.push_back(fmt::format("  {}   {}", pad_right(who, label), line));
      lines.back().erase(lines.back().find_last_not_of(' ') + 1);
      who.clear();
    }
  }
  return lines;
}

std::vector<std::string> moved_lines(const StepReports& reports, bool every_set) {
  using Amounts = std::array<std::int64_t, 3>;  // bytes sent, messages, bytes received
  std::vector<int> who;
  std::vector<Amounts> moved;
  for_each<Traffic>(reports, [&](int rank, const Traffic& of) {
    who.push_back(rank);
    moved.push_back({of.bytes_sent, of.messages_sent, of.bytes_received});
  });
  const auto sets = sets_of_equal(moved.size(), [&](std::size_t i) { return moved[i]; });
  std::vector<std::string> lines;
  if (sets.empty() || (sets.size() == 1 && sets[0].first == Amounts{})) return lines;
  const auto add = [&](const std::vector<int>& ranks, const Amounts& least, const Amounts& most) {
    const auto number = [](long long value) { return std::to_string(value); };
    lines.push_back(fmt::format("  {} sent {} in {} {} and received {}",
                                ranks_text(ranks, static_cast<int>(reports.size())),
                                span_text(least[0], most[0], bytes_text), span_text(least[1], most[1], number),
                                most[1] == 1 ? "message" : "messages", span_text(least[2], most[2], bytes_text)));
  };
  constexpr std::size_t kMostSets = 2;
  if (every_set || sets.size() <= kMostSets) {
    for (auto [amounts, ranks] : sets) {
      for (int& rank : ranks) rank = who[static_cast<std::size_t>(rank)];
      add(ranks, amounts, amounts);
    }
    return lines;
  }
  Amounts least = moved[0], most = moved[0];
  for (const Amounts& each : moved)
    for (std::size_t i = 0; i < each.size(); ++i) {
      least[i] = std::min(least[i], each[i]);
      most[i] = std::max(most[i], each[i]);
    }
  add(who, least, most);
  return lines;
}

}  // namespace muonwalk::sim
