#include "sim/terminal/terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/terminal/progress_line.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

LineSink output_sink = nullptr;
LineSink error_sink = nullptr;

}  // namespace

Paint::Paint() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  on_ = output_sink == nullptr && isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
        terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}
std::string Paint::wrap(const char* code, const std::string& words) const {
  return on_ ? fmt::format("\033[{}m{}\033[0m", code, words) : words;
}
std::string Paint::bold(const std::string& words) const { return wrap("1", words); }
std::string Paint::good(const std::string& words) const { return wrap("32", words); }
std::string Paint::bad(const std::string& words) const { return wrap("1;31", words); }

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
  clear_progress_line();
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void print_error_line(const std::string& line) {
  if (error_sink != nullptr) return error_sink(line.c_str());
  clear_progress_line();
  std::fflush(stdout);
  std::fputs((line + "\n").c_str(), stderr);
}

void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw RunError(fmt::format("the output could not be written: {}", std::strerror(errno)));
}

}  // namespace muonwalk::sim
