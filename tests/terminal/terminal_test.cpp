// Standard output and error, whatever they are; values that are empty; what is said of an exception.

#include "sim/terminal/terminal.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/reading_program.hpp"
#include "src/errors.hpp"
#include "src/text/text.hpp"
#include "tests/pseudo_terminal.hpp"
#include "tests/terminal/in_child.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// What a program says of these words that has a command inside of a command. Its own name looks as if it were one of
// them.
std::string said_of(std::vector<const char*> words) {
  CLI::App app;
  bool flag = false;
  std::string text;
  std::vector<std::string> several;
  app.add_flag("--flag", flag);
  app.add_option("--text", text);
  CLI::App* command = app.add_subcommand("command");
  command->add_option("--several", several);
  CLI::App* inner = command->add_subcommand("inner");
  inner->add_option("--deep", text);
  words.insert(words.begin(), "--program=");
  try {
    parse_command_line(app, static_cast<int>(words.size()), words.data());
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

void set_variable(const char* name, const char* value) {
  if (value == nullptr)
    unsetenv(name);
  else
    setenv(name, value, 1);
}

// All that Paint makes of words.
std::string painted() {
  const Paint paint;
  return paint.bold("a") + paint.good("b") + paint.bad("c");
}

constexpr const char* kColoured = "\033[1ma\033[0m\033[32mb\033[0m\033[1;31mc\033[0m";

std::string heard_out, heard_err;  // by sinks

}  // namespace

TEST_CASE("empty values: among words as they were typed, long options that end with their =, up to \"--\"") {
  const std::string refused = "has an empty value";
  for (const char* word : {"--a=", "--lr=", "--params="}) {
    const std::string said = said_of({"x", word, "--b=1"});
    CAPTURE(said);
    CHECK(said.find(word) != std::string::npos);
    CHECK(said.find(refused) != std::string::npos);
    CHECK(said_of({word}).find(refused) != std::string::npos);
    CHECK(said_of({"--a", word}).find(refused) != std::string::npos);
    CHECK(said_of({"--", word}).find(refused) == std::string::npos);
  }
  for (const char* word : {"--a=b", "--a=b=", "-a=", "a=", "x--a=", "--=", "=", "--a", "-", ""}) {
    CAPTURE(word);
    CHECK(said_of({word}).find(refused) == std::string::npos);
  }
  CHECK(said_of({}).empty());
}

TEST_CASE("empty values: of every option of a program and of its commands; flags have no values") {
  CHECK(said_of({"--flag", "--text", "x", "command", "--several", "y", "z", "inner", "--deep", "u"}).empty());
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"--text", "", "command"},
           {"command", "--several", ""},
           {"command", "--several", "y", ""},
           {"command", "inner", "--deep", ""},
       }) {
    CHECK(said_of(words).find("'' is empty; give it a value, or leave the option out") != std::string::npos);
  }
}

TEST_CASE("error_text: every kind of exception has its sentence, and what the system says is cut") {
  struct Much : std::bad_alloc {
    const char* what() const noexcept override { return "3 GB"; }
  };
  const char* const no_memory = "there is not enough memory for what was asked";
  CHECK(error_text(std::bad_alloc(), "do less") == std::string(no_memory) + "; do less");
  CHECK(error_text(Much(), "do less") == std::string(no_memory) + ", 3 GB at once; do less");
  CHECK(error_text(std::bad_alloc()) ==
        std::string(no_memory) + "; try smaller matrices, fewer ranks or fewer threads");
  CHECK(error_text(std::length_error("a vector"), "do less") ==
        "what was asked for is larger than memory can be (a vector); do less");
  CHECK(error_text(RunError("its own words")) == "its own words");

  const std::error_code code = std::make_error_code(std::errc::too_many_files_open);
  const std::string system = error_text(std::system_error(code, std::string(200, 'w')));
  CHECK(system.find("the system refused something that the run needs (" + std::string(200, 'w')) == 0);
  CHECK(system.find(code.message()) != std::string::npos);
  const std::string cut = error_text(std::system_error(code, std::string(5000, 'w')));
  // Three hundred characters of it, and no more: the beginning, "…", and the end.
  CHECK(text_width(cut) == text_width(error_text(std::system_error(code, std::string(50, 'w')))) + 300 -
                               text_width(std::system_error(code, std::string(50, 'w')).what()));
  CHECK(cut.find("w…w") != std::string::npos);
}

TEST_SUITE_BEGIN("on a terminal");

TEST_CASE("Paint: colours on a terminal that can show them and that nobody has taken them from") {
  const PseudoTerminal terminal;
  if (!terminal.open()) return;
  struct Surroundings {
    const char *term, *no_color;
    bool terminal, sink, coloured;
    const char *open_mpi = nullptr, *forced = nullptr;
  };
  for (const Surroundings& each : std::vector<Surroundings>{{"xterm", nullptr, true, false, true},
                                                            {"xterm", nullptr, true, false, false, "0"},
                                                            {"xterm", nullptr, true, false, true, "0", "1"},
                                                            {"xterm", "1", true, false, false, "0", "1"},
                                                            {"xterm", "", true, false, true},
                                                            {"xterm", "1", true, false, false},
                                                            {"dumb", nullptr, true, false, false},
                                                            {nullptr, nullptr, true, false, false},
                                                            {"xterm", nullptr, false, false, false},
                                                            {"xterm", nullptr, true, true, false}}) {
    const Ended ended = in_child([&] {
      set_variable("TERM", each.term);
      set_variable("NO_COLOR", each.no_color);
      set_variable("OMPI_COMM_WORLD_RANK", each.open_mpi);
      set_variable("CLICOLOR_FORCE", each.forced);
      if (each.terminal) dup2(terminal.file(), STDOUT_FILENO);
      if (each.sink) print_lines_to([](const char*) {}, nullptr);
      say(painted());
      return 0;
    });
    CAPTURE(each.term);
    CAPTURE(each.no_color);
    CHECK(ended.err == (each.coloured ? kColoured : "abc"));
  }
}

TEST_SUITE_END();

TEST_CASE(
    "open_standard_files: whichever of the three are closed, they are opened to nothing, and no others are touched") {
  for (int closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    const Ended ended = in_child([&] {
      struct stat before[3], after, nothing;
      stat("/dev/null", &nothing);
      for (int file = 0; file < 3; ++file) {
        fstat(file, &before[file]);
        if ((closed >> file & 1) != 0) close(file);
      }
      open_standard_files();
      for (int file = 0; file < 3; ++file) {
        if (fstat(file, &after) != 0) return 10 + file;
        const struct stat& expected = (closed >> file & 1) != 0 ? nothing : before[file];
        if (after.st_ino != expected.st_ino || after.st_dev != expected.st_dev) return 20 + file;
        if ((closed >> file & 1) != 0 && file > 0 && write(file, "x", 1) == 1) return 30 + file;
      }
      return fcntl(3, F_GETFD) < 0 ? 0 : 3;  // nothing is opened beside them
    });
    // Where this test itself was started with a file more, that one is there.
    CHECK((ended.exit_code == 0 || (ended.exit_code == 3 && fcntl(3, F_GETFD) >= 0)));
  }
}

TEST_CASE(
    "print_line, print_error_line: whole lines, in the order in which they were said, to the streams or to sinks") {
  const Ended apart = in_child([] {
    print_line("one");
    print_line(std::string("t\0o", 3));
    print_line();
    print_error_line("wrong");
    return 0;
  });
  CHECK(apart.out == std::string("one\nt\0o\n\n", 9));
  CHECK(apart.err == "wrong\n");

  const Ended together = in_child(
      [] {
        print_line("first");
        print_error_line("second");
        print_line("third");
        return 0;
      },
      Errors::with_output);
  CHECK(together.out == "first\nsecond\nthird\n");

  const Ended to_sinks = in_child([] {
    print_lines_to([](const char* line) { heard_out += line; }, [](const char* line) { heard_err += line; });
    print_line("o");
    print_error_line("e");
    print_lines_to([](const char* line) { heard_out += line; }, nullptr);
    print_line("p");
    print_error_line("to the stream");
    print_lines_to(nullptr, [](const char* line) { heard_err += line; });
    print_line("to the other stream");
    print_error_line("f");
    return heard_out == "op" && heard_err == "ef" ? 0 : 1;
  });
  CHECK(to_sinks.exit_code == 0);
  CHECK(to_sinks.out == "to the other stream\n");
  CHECK(to_sinks.err == "to the stream\n");
}

TEST_CASE("finish_output: what could not be written is an error, whether it is found now or was found before") {
  if (access("/dev/full", W_OK) != 0) return;
  for (const std::size_t length : {std::size_t{1}, std::size_t{1} << 20}) {
    CAPTURE(length);
    const Ended full = in_child([&] {
      dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
      print_line(std::string(length, 'x'));
      if (length > 1) fflush(stdout);  // fails, and leaves nothing to flush
      try {
        finish_output();
        return 1;
      } catch (const RunError& error) {
        say(error.what());
        return 0;
      }
    });
    CHECK(full.exit_code == 0);
    CHECK(full.err.find("the output could not be written: ") == 0);
    if (length == 1) CHECK(full.err.find("No space left on device") != std::string::npos);
  }
  const Ended good = in_child([] {
    print_line("x");
    finish_output();
    _exit(5);  // what is not flushed is lost here
    return 0;
  });
  CHECK(good.out == "x\n");
  CHECK(good.exit_code == 5);
}

TEST_CASE("write_or_fail: what can't be written is a RunError with the same sentence; all else goes through") {
  bool written = false;
  write_or_fail([&] { written = true; });
  CHECK(written);
  CHECK_THROWS_WITH_AS(write_or_fail([] { throw UsageError("the disk is full"); }), "the disk is full", RunError);
  CHECK_THROWS_WITH_AS(write_or_fail([] { throw std::logic_error("a mistake"); }), "a mistake", std::logic_error);
}
