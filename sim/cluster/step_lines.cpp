#include "sim/cluster/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "src/layout/parameter.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The cells of one line about something shown: label, name with its range, shape, bytes, bar and note.
struct ShownLine {
  std::string label, name, shape, bytes, bar, note;
};

ShownLine shown_line(const Grid& grid, int rank, const nlohmann::json& fields) {
  ShownLine line;
  line.label = rank_label(grid, rank);
  line.name = fields.at("name");
  const long long rows = fields.at("rows"), cols = fields.at("cols");
  line.shape = fields.contains("flat") ? fmt::format("{}", cols) : shape_text(rows, cols);
  line.bytes = bytes_text(fields.at("bytes"));
  if (fields.contains("unit")) {
    const long long begin = fields.at("begin"), end = fields.at("end"), of = fields.at("of");
    const std::string unit = fields.at("unit");
    if (!unit.empty()) line.name += fmt::format("[{} {}]", unit, range_text({begin, end}));
    line.bar = bar_text(begin, end, of);
  }
  line.note = fields.value("note", "");
  return line;
}

// A matrix as rows of numbers; what does not fit is left out and counted. A flat run continues on the next line.
std::vector<std::string> value_lines(const Record& record, int indent) {
  constexpr long long kMostRows = 16;
  const long long rows = record.fields.at("rows"), cols = record.fields.at("cols");
  const auto* values = reinterpret_cast<const float*>(record.payload.data());
  const bool flat = record.fields.contains("flat");
  std::size_t width = 7;  // at least, so that matrices of small numbers look alike
  for (long long at = 0; at < rows * cols; ++at) width = std::max(width, fmt::formatted_size("{:.4g}", values[at]));
  const long long room = (kColumns - indent) / static_cast<long long>(width + 2);
  const long long room_and_count =
      (kColumns - indent - text_width("  … 1000000 more")) / static_cast<long long>(width + 2);
  const long long shown_cols = std::max(1LL, flat || cols <= room ? std::min(cols, room) : room_and_count);
  const long long all_rows = flat ? (cols + shown_cols - 1) / shown_cols : rows;
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::vector<std::string> lines;
  for (long long row = 0; row < std::min(all_rows, kMostRows); ++row) {
    std::string line = margin;
    for (long long col = 0; col < shown_cols; ++col) {
      const long long at = flat ? row * shown_cols + col : row * cols + col;
      if (at < rows * cols) line += fmt::format("{:>{}.4g}", values[at], width + 2);
    }
    lines.push_back(line + (!flat && cols > shown_cols ? fmt::format("  … {} more", cols - shown_cols) : ""));
  }
  if (all_rows > kMostRows) lines.push_back(fmt::format("{}… {} more lines", margin, all_rows - kMostRows));
  return lines;
}

}  // namespace

std::vector<std::string> step_lines(const Grid& grid, const std::vector<std::vector<Record>>& records, bool values) {
  std::map<const Record*, ShownLine> shown;
  int label = 0, name = 0, shape = 0, bytes = 0, bar = 0;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    label = std::max(label, text_width(rank_label(grid, static_cast<int>(rank))));
    for (const Record& record : records[rank]) {
      if (record.kind != "show") continue;
      const ShownLine& line = shown[&record] = shown_line(grid, static_cast<int>(rank), record.fields);
      name = std::max(name, text_width(line.name));
      shape = std::max(shape, text_width(line.shape));
      bytes = std::max(bytes, text_width(line.bytes));
      bar = std::max(bar, text_width(line.bar));
    }
  }
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    std::string who = rank_label(grid, static_cast<int>(rank));
    for (const Record& record : records[rank]) {
      if (record.kind == "say") {
        lines.push_back(fmt::format("  {}   {}", pad_right(who, label), record.fields.at("line").get<std::string>()));
      } else if (record.kind == "show") {
        const ShownLine& s = shown[&record];
        std::string line = fmt::format("  {}   {}   {}   {}", pad_right(who, label), pad_right(s.name, name),
                                       pad_left(s.shape, shape), pad_left(s.bytes, bytes));
        if (bar > 0) line += "   " + pad_right(s.bar, bar);
        if (!s.note.empty()) line += "   " + s.note;
        lines.push_back(line);
        if (values && !record.payload.empty()) {
          lines.push_back(fmt::format("  {}   digest {}", pad_right("", label), record.fields.value("digest", "")));
          for (std::string& value : value_lines(record, label + 5)) lines.push_back(std::move(value));
        }
      } else {
        continue;
      }
      who.clear();  // the label stands in a rank's first line only
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::vector<std::string> moved_lines(const std::vector<std::vector<Record>>& records) {
  using Moved = std::tuple<long long, long long, long long>;
  std::vector<std::pair<Moved, std::vector<int>>> groups;  // in order of the first rank
  for (std::size_t rank = 0; rank < records.size(); ++rank)
    for (const Record& record : records[rank]) {
      if (record.kind != "moved") continue;
      const Moved moved{record.fields.at("sent"), record.fields.at("messages"), record.fields.at("received")};
      auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == moved; });
      if (group == groups.end()) group = groups.insert(groups.end(), {moved, {}});
      group->second.push_back(static_cast<int>(rank));
    }
  std::vector<std::string> lines;
  for (const auto& [moved, ranks] : groups) {
    const auto& [sent, messages, received] = moved;
    if (messages == 0 && received == 0 && groups.size() == 1) continue;
    lines.push_back(fmt::format("  {} sent {} in {} {} and received {}",
                                ranks_text(ranks, static_cast<int>(records.size())), bytes_text(sent), messages,
                                messages == 1 ? "message" : "messages", bytes_text(received)));
  }
  return lines;
}

}  // namespace muonwalk::sim
