#include "sim/cluster/screen.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "src/errors.hpp"
#include "src/layout/parameter.hpp"

namespace muonwalk::sim {
namespace {

LineSink output_sink = nullptr;
LineSink error_sink = nullptr;

}  // namespace

Paint::Paint() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  on_ = output_sink == nullptr && isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
        std::strcmp(terminal, "dumb") != 0;
}
std::string Paint::wrap(const char* code, const std::string& words) const {
  return on_ ? fmt::format("\033[{}m{}\033[0m", code, words) : words;
}
std::string Paint::bold(const std::string& words) const { return wrap("1", words); }
std::string Paint::good(const std::string& words) const { return wrap("32", words); }
std::string Paint::bad(const std::string& words) const { return wrap("1;31", words); }
std::string Paint::faint(const std::string& words) const { return wrap("2", words); }

void open_standard_files() {
  // The lowest free number is given out first, so what is opened here gets the number that was missing.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF) static_cast<void>(open("/dev/null", O_RDONLY));
}

void print_lines_to(LineSink output, LineSink error) {
  output_sink = output;
  error_sink = error;
}

void print_line(const std::string& line) {
  if (output_sink != nullptr) return output_sink(line.c_str());
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void print_error_line(const std::string& line) {
  if (error_sink != nullptr) return error_sink(line.c_str());
  std::fflush(stdout);
  std::fputs((line + "\n").c_str(), stderr);
}

void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw RunError(fmt::format("the output could not be written: {}", std::strerror(errno)));
}

int text_width(const std::string& text) {
  int width = 0;
  bool in_escape = false;   // a colour: ESC [ … m
  for (const char c : text) {
    if (c == '\033') in_escape = true;
    if (!in_escape && (c & 0xC0) != 0x80) ++width;
    if (c == 'm') in_escape = false;
  }
  return width;
}

std::string left_and_right(const std::string& left, const std::string& right) {
  const int space = std::max(2, kColumns - text_width(left) - text_width(right));
  return left + std::string(static_cast<std::size_t>(space), ' ') + right;
}

std::vector<std::string> aligned_lines(const std::string& left, const std::string& right) {
  if (text_width(left) + 2 + text_width(right) <= kColumns) return {left_and_right(left, right)};
  return {left, left_and_right("", right)};
}

std::vector<std::string> wrap_items(const std::string& first, const std::vector<std::string>& items) {
  const std::string margin(static_cast<std::size_t>(text_width(first)), ' ');
  std::vector<std::string> lines;
  for (const std::string& item : items) {
    if (lines.empty()) lines.push_back(first + item);
    else if (text_width(lines.back()) + 3 + text_width(item) <= kColumns) lines.back() += " · " + item;
    else lines.push_back(margin + item);
  }
  return lines;
}

std::vector<std::string> wrap_text(const std::string& text, int indent, int columns) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (!line.empty() && text_width(line) + 1 + text_width(word) > columns) {
      lines.push_back(line);
      line = std::string(static_cast<std::size_t>(indent), ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string rank_label(const Grid& grid, int rank) {
  const Place place = grid.place(rank);
  std::string label = fmt::format("rank {}", rank);
  std::vector<std::string> coordinates;
  if (grid.dp() > 1) coordinates.push_back(fmt::format("dp {}", place.dp));
  if (grid.tp() > 1) coordinates.push_back(fmt::format("tp {}", place.tp));
  if (grid.pp() > 1) coordinates.push_back(fmt::format("pp {}", place.pp));
  return coordinates.empty() ? label : fmt::format("{}  {}", label, fmt::join(coordinates, " "));
}

std::string ranks_text(const std::vector<int>& ranks, int of) {
  if (static_cast<int>(ranks.size()) == of) return of == 1 ? "rank 0" : "every rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const bool run = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (run) return fmt::format("ranks {}–{}", ranks.front(), ranks.back());
  const std::string all = fmt::format("ranks {}", fmt::join(ranks, ", "));
  return text_width(all) <= 13 ? all : fmt::format("{} ranks: {}…", ranks.size(), ranks.front());
}

std::string number_text(long long number) {
  std::string digits = fmt::format("{}", number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string bytes_text(long long bytes) { return number_text(bytes) + " B"; }

std::string bar_text(long long begin, long long end, long long of) {
  constexpr int kCells = 8;
  std::string bar;
  for (int cell = 0; cell < kCells; ++cell) {
    const bool touched = begin * kCells < (cell + 1) * of && cell * of < end * kCells;
    bar += touched && begin < end ? "█" : "·";
  }
  return bar;
}

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
  std::size_t width = 7;   // at least, so that matrices of small numbers look alike
  for (long long at = 0; at < rows * cols; ++at) width = std::max(width, fmt::formatted_size("{:.4g}", values[at]));
  const long long room = (kColumns - indent) / static_cast<long long>(width + 2);
  const long long room_and_count = (kColumns - indent - text_width("  … 1000000 more")) / static_cast<long long>(width + 2);
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

std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ');
}
std::string padded_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ') + text;
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
        lines.push_back(fmt::format("  {}   {}", padded(who, label), record.fields.at("line").get<std::string>()));
      } else if (record.kind == "show") {
        const ShownLine& s = shown[&record];
        std::string line = fmt::format("  {}   {}   {}   {}", padded(who, label), padded(s.name, name),
                                       padded_left(s.shape, shape), padded_left(s.bytes, bytes));
        if (bar > 0) line += "   " + padded(s.bar, bar);
        if (!s.note.empty()) line += "   " + s.note;
        lines.push_back(line);
        if (values && !record.payload.empty()) {
          lines.push_back(fmt::format("  {}   digest {}", padded("", label), record.fields.value("digest", "")));
          for (std::string& value : value_lines(record, label + 5)) lines.push_back(std::move(value));
        }
      } else {
        continue;
      }
      who.clear();   // the label stands in a rank's first line only
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::vector<std::string> moved_lines(const std::vector<std::vector<Record>>& records) {
  using Moved = std::tuple<long long, long long, long long>;
  std::vector<std::pair<Moved, std::vector<int>>> groups;   // in order of the first rank
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
    lines.push_back(fmt::format("  {} sent {} in {} {} and received {}", ranks_text(ranks, static_cast<int>(records.size())),
                                bytes_text(sent), messages, messages == 1 ? "message" : "messages", bytes_text(received)));
  }
  return lines;
}

}  // namespace muonwalk::sim
