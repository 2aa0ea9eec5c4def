#pragma once

#include <exception>
#include <string>

namespace muonwalk::sim {

/// What an exception says, as a sentence without a beginning. Those of the standard library say little by themselves
/// ("std::bad_alloc"); `remedy` is what would work where the memory does not suffice.
std::string error_text(const std::exception& error,
                       const char* remedy = "try smaller matrices, fewer ranks or fewer threads");

/// What to say of something that was thrown though it is not an exception.
extern const char* const kUnknownError;

/// Colours for words on a terminal; on anything else, with NO_COLOR, and under Open MPI without CLICOLOR_FORCE, the
/// words come back as they are.
class Paint {
 public:
  /// Finds out whether standard output takes colours.
  Paint();
  /// The words in bold, as good news (green), and as bad news (bold red).
  /// @{
  std::string bold(const std::string& words) const;
  std::string good(const std::string& words) const;
  std::string bad(const std::string& words) const;
  /// @}

 private:
  std::string wrap(const char* code, const std::string& words) const;
  bool on_;
};

/// Opens those of the standard input, output and error that are closed, to nothing: what a program opens later must not
/// be taken for them. Writing to a standard output that was closed stays an error.
void open_standard_files();

/// Takes one line, without its end.
using LineSink = void (*)(const char* line);

/// From here on print_line and print_error_line hand their lines to these functions instead of standard output and
/// error; with nullptr, they go there again. A notebook shows what its cells write to std::cout and nothing else.
void print_lines_to(LineSink output, LineSink error);

/// Prints to standard output, where a line of progress (clear_progress_line) makes room. Errors of the stream are found
/// by finish_output, once.
void print_line(const std::string& line = "");
/// Prints to standard error, likewise. One that takes nothing (closed, a full disk) is not an error: nobody hears.
void print_error_line(const std::string& line);
/// Flushes; throws RunError with the system's reason when something could not be written (a full disk).
void finish_output();

}  // namespace muonwalk::sim
