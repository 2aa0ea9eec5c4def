#include "src/text/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muonwalk {
namespace {

// In UTF-8 every byte of a character but its first is 10xxxxxx.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

int columns_of_output = kColumns;

}  // namespace

int output_columns() { return columns_of_output; }

void set_output_columns(int columns) { columns_of_output = std::clamp(columns, 60, kColumns); }

std::string without_colours(const std::string& text) {
  std::string plain;
  bool in_escape = false;
  for (const char c : text) {
    if (c == '\033') in_escape = true;
    if (!in_escape) plain += c;
    if (c == 'm') in_escape = false;
  }
  return plain;
}

int text_width(const std::string& text) {
  const std::string plain = without_colours(text);
  return static_cast<int>(std::count_if(plain.begin(), plain.end(), begins_character));
}

std::string pad_right(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ');
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ') + text;
}

std::string left_and_right(const std::string& left, const std::string& right) {
  const int space = std::max(2, output_columns() - text_width(left) - text_width(right));
  return left + std::string(static_cast<std::size_t>(space), ' ') + right;
}

std::vector<std::string> aligned_lines(const std::string& left, const std::string& right) {
  if (text_width(left) + 2 + text_width(right) <= output_columns()) return {left_and_right(left, right)};
  return {left, left_and_right("", right)};
}

std::vector<std::string> wrap_items(const std::string& first, const std::vector<std::string>& items, int columns) {
  columns = std::min(columns, output_columns());
  const std::string margin(static_cast<std::size_t>(text_width(first)), ' ');
  std::vector<std::string> lines;
  for (const std::string& item : items) {
    if (lines.empty())
      lines.push_back(first + item);
    else if (text_width(lines.back()) + 3 + text_width(item) <= columns)
      lines.back() += " · " + item;
    else
      lines.push_back(margin + item);
  }
  return lines;
}

std::vector<std::string> wrap_text(const std::string& text, int indent, int columns) {
  columns = std::min(columns, output_columns());
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

std::vector<std::string> paragraph(const std::string& text, int indent, int hanging) {
  std::vector<std::string> lines = wrap_text(text, hanging - indent, output_columns() - indent);
  for (std::string& line : lines) line.insert(0, static_cast<std::size_t>(indent), ' ');
  return lines;
}

std::string lines_text(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::string ranks_text(const std::vector<int>& ranks, int of) {
  if (static_cast<int>(ranks.size()) == of) return of == 1 ? "rank 0" : "every rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const bool run = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (run) return fmt::format("ranks {}–{}", ranks.front(), ranks.back());
  const std::string all = fmt::format("ranks {}", fmt::join(ranks, ", "));
  if (text_width(all) <= 13) return all;
  const std::size_t more = ranks.size() - 1;
  const std::string many = fmt::format("{} and {} more", ranks.front(), more);
  return text_width(many) <= 13 ? many : fmt::format("{} + {} more", ranks.front(), more);
}

std::string bar_text(long long begin, long long end, long long of) {
  constexpr int kCells = 8;
  std::string bar;
  for (int cell = 0; cell < kCells; ++cell) {
    const bool touched = begin * kCells < (cell + 1) * of && cell * of < end * kCells;
    bar += touched && begin < end ? "█" : "·";
  }
  return bar;
}

std::string numbers_text(const float* numbers, std::size_t count, int width) {
  std::string all = fmt::format("{}", fmt::join(numbers, numbers + count, " "));
  if (text_width(all) <= width || count < 3) return all;
  std::string shortened, head, tail;
  for (std::size_t i = 0; 2 * i + 1 < count; ++i) {
    head += fmt::format("{} ", numbers[i]);
    if (i > 0 && text_width(head + "…" + tail) > width) break;
    shortened = head + "…" + tail;
    tail = fmt::format(" {}", numbers[count - 1 - i]) + tail;
    if (i > 0 && text_width(head + "…" + tail) > width) break;
    shortened = head + "…" + tail;
  }
  return shortened;
}

}  // namespace muonwalk
