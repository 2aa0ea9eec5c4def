#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/units.hpp"

namespace muonwalk {

/// The parts of a text between separators, "a::b" at ':' as "a", "" and "b"; a text without any is the one part.
inline std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// Whether a text begins, or ends, with these characters.
inline bool begins_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }
inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The number that a text is; nothing where it is none, is too large for its type, or is something else besides.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read_to == end ? std::optional<Number>(number) : std::nullopt;
}

/// The one place for how wide a text is and where it is broken: everything that is printed or drawn asks here.

/// The width that all output keeps to.
constexpr int kColumns = 100;

/// How wide a printed line may be: kColumns, unless somebody has less room. What breaks or aligns lines asks here;
/// tables that are made of cells keep the width of their cells.
int output_columns();

/// From here on lines are at most `columns` wide, of at least 60 and at most kColumns: a cell of a notebook shows 88.
/// Call it before any rank is started.
void set_output_columns(int columns);

/// The text without its colours (ESC [ … m).
std::string without_colours(const std::string& text);

/// The number of columns that a UTF-8 text takes: one per character, none for colours.
int text_width(const std::string& text);

/// The text with spaces behind it, or before it, up to `width` columns; longer text stays as it is.
/// @{
std::string pad_right(const std::string& text, int width);
std::string pad_left(const std::string& text, int width);
/// @}

/// `left` and `right` with as much space between them as kColumns has room for.
std::string left_and_right(const std::string& left, const std::string& right);

/// `left` and, at the right edge, `right`; on a line of its own where both do not fit on one.
std::vector<std::string> aligned_lines(const std::string& left, const std::string& right);

/// The items after `first`, with " · " between them, broken between items only.
std::vector<std::string> wrap_items(const std::string& first, const std::vector<std::string>& items,
                                    int columns = kColumns);

/// Breaks a text at spaces into lines of at most `columns`, the second and further ones indented.
std::vector<std::string> wrap_text(const std::string& text, int indent, int columns = kColumns);

/// A text as lines of at most kColumns: the first indented by `indent` spaces, the others by `hanging`.
std::vector<std::string> paragraph(const std::string& text, int indent, int hanging);

/// Lines as one text, without a line end behind the last.
std::string lines_text(const std::vector<std::string>& lines);

/// Adds lines at the end.
void append(std::vector<std::string>& lines, const std::vector<std::string>& more);

/// "5", or "4–6" for two numbers that differ, as `text` writes them; a unit at the end is written once.
template <class Text>
std::string span_text(long long least, long long most, const Text& text) {
  if (least == most) return text(most);
  std::string first = text(least);
  if (const std::size_t unit = first.find(' '); unit != std::string::npos) first.resize(unit);
  return first + "–" + text(most);
}

/// "every rank", "rank 2", "ranks 0–3", "ranks 0, 2, 5", "0 and 4 more"; at most 13 columns.
std::string ranks_text(const std::vector<int>& ranks, int of);

/// Eight cells, those filled that the part [begin, end) of `of` touches.
std::string bar_text(long long begin, long long end, long long of);

/// Numbers with a space between: "10 11 12". Of a list that takes more than `width` characters, as many of its first
/// and of its last numbers as fit, and at least one of each, with "…" between: "10 11 … 98 99".
/// @{
std::string numbers_text(const float* numbers, std::size_t count, int width);
template <class Numbers>
std::string numbers_text(const Numbers& numbers, int width) {
  return numbers_text(numbers.data(), numbers.size(), width);
}
/// @}

}  // namespace muonwalk
