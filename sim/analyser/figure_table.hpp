#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// Rows of cells as lines: the first `left` columns begin at the left, the others, numbers, end at the right; two
/// spaces between columns, none at the end of a line. Every row may have as many cells as it likes.
std::vector<std::string> figure_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// A text as lines of at most 100 columns: the first indented by `indent` spaces, the others by `hanging`.
std::vector<std::string> paragraph(const std::string& text, int indent, int hanging);

/// Adds lines at the end.
void append(std::vector<std::string>& lines, const std::vector<std::string>& more);

/// "248.45"; four digits after the point below a tenth of a millisecond.
std::string ms_text(std::int64_t ns);

/// "61.0 %".
std::string percent_text(double share);

}  // namespace muonwalk::sim
