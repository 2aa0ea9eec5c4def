#pragma once

#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// The characters of a UTF-8 string: what it takes on the screen, as long as every character is one column wide.
int text_width(const std::string& text);

/// The text followed by spaces up to `width` characters; longer text stays as it is.
std::string pad_right(const std::string& text, int width);

/// The text, or its begin and its end with "…" between where it has more than `width` characters (at least 3).
std::string shorten(const std::string& text, int width);

/// Numbers with a space between: "10 11 12". Of a run that takes more than `width` characters, as many of its first and of
/// its last numbers as fit, and at least one of each, with "…" between: "10 11 … 98 99".
std::string numbers_text(const Flat& numbers, int width);

/// Rows of cells as lines of text: every column as wide as its widest cell, two spaces between columns, no spaces at
/// the end of a line. Control characters in a cell become "?".
std::string text_table(std::vector<std::vector<std::string>> rows);

/// "1 bucket", "3 buckets".
std::string count_text(Index count, const std::string& noun);

}  // namespace muonwalk
