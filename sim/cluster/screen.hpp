#pragma once

#include <string>
#include <vector>

#include "sim/cluster/record.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// The width that all output keeps to.
constexpr int kColumns = 100;

/// Colours for words on a terminal; on anything else, and with NO_COLOR, the words come back as they are.
class Paint {
 public:
  /// Finds out whether standard output takes colours.
  Paint();
  /// The words in bold, as good news (green), as bad news (bold red), and faint.
  /// @{
  std::string bold(const std::string& words) const;
  std::string good(const std::string& words) const;
  std::string bad(const std::string& words) const;
  std::string faint(const std::string& words) const;
  /// @}

 private:
  std::string wrap(const char* code, const std::string& words) const;
  bool on_;
};

/// Opens those of the standard input, output and error that are closed, to nothing: what a program opens later must not be
/// taken for them. Writing to a standard output that was closed stays an error.
void open_standard_files();

/// Takes one line, without its end.
using LineSink = void (*)(const char* line);

/// From here on print_line and print_error_line hand their lines to these functions instead of standard output and error;
/// with nullptr, they go there again. A notebook shows what its cells write to std::cout and nothing else.
void print_lines_to(LineSink output, LineSink error);

/// Prints to standard output. Errors of the stream are found by finish_output, once.
void print_line(const std::string& line = "");
/// Prints to standard error. One that takes nothing (closed, a full disk) is no error: nobody would hear of it.
void print_error_line(const std::string& line);
/// Flushes; throws RunError with the system's reason when something could not be written (a full disk).
void finish_output();

/// The number of columns that a UTF-8 text takes: one a character, none for colours.
int text_width(const std::string& text);

/// `left` and `right` with as much space between them as kColumns has room for.
std::string left_and_right(const std::string& left, const std::string& right);

/// `left` and, at the right edge, `right`; on a line of its own where both do not fit on one.
std::vector<std::string> aligned_lines(const std::string& left, const std::string& right);

/// The items after `first`, with " · " between them, broken between items only.
std::vector<std::string> wrap_items(const std::string& first, const std::vector<std::string>& items);

/// Breaks a text at spaces into lines of at most `columns`, the second and further ones indented.
std::vector<std::string> wrap_text(const std::string& text, int indent, int columns = kColumns);

/// "rank 3  dp 1 tp 1": the coordinates of which the grid has more than one.
std::string rank_label(const Grid& grid, int rank);

/// "every rank", "rank 2", "ranks 0–3", "ranks 0, 2, 5", "5 ranks: 0…"; at most 13 columns.
std::string ranks_text(const std::vector<int>& ranks, int of);

/// "1,430,560".
std::string number_text(long long number);

/// "48 B".
std::string bytes_text(long long bytes);

/// Eight cells, those filled that the part [begin, end) of `of` touches.
std::string bar_text(long long begin, long long end, long long of);

/// What the ranks said in one step, as aligned lines in rank order: said lines, shown things and, with values, these too.
std::vector<std::string> step_lines(const Grid& grid, const std::vector<std::vector<Record>>& records, bool values);

/// "every rank sent 48 B in 1 message and received 48 B": a line for each group of ranks that moved the same, none where
/// nothing moved.
std::vector<std::string> moved_lines(const std::vector<std::vector<Record>>& records);

}  // namespace muonwalk::sim
