#include "src/layout/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muonwalk {
namespace {

// In UTF-8 every byte of a character but its first is 10xxxxxx.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; }

// The byte at which character number `count` begins, or the end.
std::size_t byte_of_character(const std::string& text, int count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && count-- == 0) break;
  }
  return at;
}

}  // namespace

int text_width(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string pad_right(const std::string& text, int width) {
  return text + std::string(std::max(0, width - text_width(text)), ' ');
}

std::string shorten(const std::string& text, int width) {
  width = std::max(width, 3);
  const int characters = text_width(text);
  if (characters <= width) return text;
  // The end of a name such as "layers.11.mlp.up.weight" tells more than its middle.
  const int head = (width - 1) / 2;
  const int tail = width - 1 - head;
  return text.substr(0, byte_of_character(text, head)) + "…" + text.substr(byte_of_character(text, characters - tail));
}

std::string numbers_text(const Flat& numbers, int width) {
  std::string all = fmt::format("{}", fmt::join(numbers, " "));
  if (text_width(all) <= width || numbers.size() < 3) return all;
  std::string shortened, head, tail;
  for (std::size_t i = 0; 2 * i + 1 < numbers.size(); ++i) {
    head += fmt::format("{} ", numbers[i]);
    if (i > 0 && text_width(head + "…" + tail) > width) break;
    shortened = head + "…" + tail;
    tail = fmt::format(" {}", numbers[numbers.size() - 1 - i]) + tail;
    if (i > 0 && text_width(head + "…" + tail) > width) break;
    shortened = head + "…" + tail;
  }
  return shortened;
}

std::string text_table(std::vector<std::vector<std::string>> rows) {
  std::vector<int> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      // A name out of a file may hold a line break or an escape sequence, which would spoil the table or the terminal.
      std::replace_if(row[i].begin(), row[i].end(), is_control, '?');
      widths[i] = std::max(widths[i], text_width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += pad_right(row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string count_text(Index count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace muonwalk
