#include "sim/terminal/terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "sim/terminal/progress_line.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

LineSink output_sink = nullptr;
LineSink error_sink = nullptr;

}  // namespace

const char* const kUnknownError =
    "something was thrown that is not a std::exception, so nothing more is known of it; run it again, and report it if "
    "it comes again";

std::string error_text(const std::exception& error, const char* remedy) {
  const bool how_much = std::strcmp(error.what(), std::bad_alloc().what()) != 0;  // ours say it (memory_meter.cpp)
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return fmt::format("there is not enough memory for what was asked{}; {}",
                       how_much ? fmt::format(", {} at once", error.what()) : "", remedy);
  if (dynamic_cast<const std::length_error*>(&error) != nullptr)
    return fmt::format("what was asked for is larger than memory can be ({}); {}", error.what(), remedy);
  if (dynamic_cast<const std::system_error*>(&error) != nullptr)
    return fmt::format(
        "the system refused something that the run needs ({}); run it again, and look at what is used up "
        "(memory, disk, ulimit -a) if it comes again",
        visible_name(error.what(), 300));
  return error.what();
}

Paint::Paint() {
  const auto has = [](const char* name) { return std::getenv(name) != nullptr && *std::getenv(name) != '\0'; };
  const char* terminal = std::getenv("TERM");
  // Open MPI gives its processes a terminal, wherever what they print goes.
  const bool true_terminal = !has("OMPI_COMM_WORLD_RANK") && !has("PMIX_RANK");
  on_ = output_sink == nullptr && isatty(STDOUT_FILENO) != 0 && !has("NO_COLOR") &&
        (true_terminal || has("CLICOLOR_FORCE")) && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
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
