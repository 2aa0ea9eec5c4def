// The second cell of every notebook with code includes this file. All that differs between the interpreters of C++ is
// here:
//
//   xeus-cling   is told where headers and libraries lie by pragmas;
//   xeus-cpp     is told by its arguments (./walk jupyter) or its environment (CPLUS_INCLUDE_PATH), and loads
//                libraries as any program does;
//   clang-repl   the same, and it shows text alone.
//
// The library is loaded while this cell runs, so that every later cell finds its functions: a function that is missing
// when it is called for the first time would stay missing for the rest of the session.
#ifdef __CLING__
#pragma cling add_include_path("..")
#endif

// Looked for before anything is included: clang 19 crashes at a header that is missing after a standard one.
#if !__has_include("sim/classroom/lesson.hpp")
#error "no headers of Muonwalk on the include path: open notebooks with ./walk jupyter, and restart the kernel"
#elif !__has_include(<fmt/format.h>)
#error "no headers of fmt on the include path: open notebooks with ./walk jupyter, and restart the kernel"
#else

// Not before this line: a cell that found no headers says so again when it is run again.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__has_include)
#if __has_include(<xcpp/xdisplay.hpp>)
#define NB_SHOWS_HTML
#include <xcpp/xdisplay.hpp>
#endif
#endif

#include "sim/classroom/lesson.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/numerics/matrix.hpp"
#include "src/text/text.hpp"

namespace nb {

/// Where a library of Muonwalk lies: the file that MUONWALK_LIBRARY names, or else the one that `./walk notebooks
/// --library` builds; for a name other than libmuonwalk, what lies beside that.
inline std::string library_path(const std::string& name) {
#ifdef __APPLE__
  const std::string ending = ".dylib";
#else
  const std::string ending = ".so";
#endif
  std::string path = __FILE__;
  const std::size_t slash = path.rfind('/');
  path = (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + "../build/lib/libmuonwalk" + ending;
  const char* named = std::getenv("MUONWALK_LIBRARY");
  if (named != nullptr && *named != '\0') path = named;
  const std::string common = "libmuonwalk";
  return name == common ? path : path.replace(path.rfind(common), common.size(), name);
}

/// Loads Muonwalk's shared library. Throws a sentence that says what to do where there is none.
inline void* load_library() {
  void* library = dlopen(library_path("libmuonwalk").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw std::runtime_error(std::string("the shared library can't be loaded: ") + dlerror() +
                             "; build it with ./walk notebooks --library, or name another one in MUONWALK_LIBRARY, "
                             "and restart the kernel");
  // From here on Jupyter's button Interrupt ends what the ranks do, and not the kernel.
  if (void* prepare = dlsym(library, "muonwalk_let_work_be_interrupted")) reinterpret_cast<void (*)()>(prepare)();
  // The libraries of the tools and of lessons that have one lie beside it.
  for (const std::string name : {"libmuonwalk_training", "libmuonwalk_trace", "libmuonwalk_scale", "libmuonwalk_check"})
    dlopen(library_path(name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  for (int lesson = 0; lesson < 100; ++lesson)
    dlopen(library_path("libmuonwalk_lesson_" + std::string(lesson < 10 ? "0" : "") + std::to_string(lesson)).c_str(),
           RTLD_NOW | RTLD_GLOBAL);
  return library;
}

void* const library = load_library();

/// What a failed NB_CHECK throws: the kernel shows its text under the cell.
struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(bool holds, std::string expression) {
  if (holds) return;
  if (expression.size() > 100) expression = expression.substr(0, 97) + "...";
  throw CheckFailed("this does not hold: " + expression);
}

/// Stands for a function until its cell has run.
template <class Signature>
struct Undefined;
template <class Result, class... Parameters>
struct Undefined<Result(Parameters...)> {
  const char* name;
  Result operator()(Parameters...) const {
    throw std::runtime_error(std::string(name) +
                             " is called, but the cell that defines it has not run; run that one first");
  }
};

/// What a cell shows without wrapping.
const int kColumns = 88;

/// Lines that are wider than that. They scroll, for nobody can read a table that is wrapped.
struct WideText {
  std::string text;
};

#ifdef NB_SHOWS_HTML
inline nl::json mime_bundle_repr(const WideText& wide) {
  std::string escaped;
  for (const char c : wide.text)
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  nl::json bundle = nl::json::object();
  bundle["text/html"] = "<pre style=\"white-space: pre; overflow-x: auto\">" + escaped + "</pre>";
  bundle["text/plain"] = wide.text;
  return bundle;
}
#endif

/// A line of text, or several, into the notebook. Flushed at once: an interpreter that ends takes with it what was not.
inline void print(const char* text) {
#ifdef NB_SHOWS_HTML
  int widest = 0;
  std::string line;
  for (const char* at = text; *at != '\0'; ++at) {
    line = *at == '\n' ? "" : line + *at;
    widest = std::max(widest, muonwalk::text_width(line));
  }
  if (widest > kColumns) return xcpp::display(WideText{text});
#endif
  std::cout << text << std::endl;
}

/// A line of what is measured, which differs from run to run. Jupyter paints standard error red, as if something had
/// failed, so the line goes where all others go; notebooks/make/run_notebook.py, which compares outputs, asks for it
/// apart.
inline void print_aside(const char* line) {
  const bool apart = std::getenv("MUONWALK_ASIDES_APART") != nullptr;
  (apart ? std::cerr : std::cout) << line << std::endl;
}

/// The words of a program's command line, as `main` gets them.
class CommandLine {
 public:
  /// `words` has blanks between options, as in "--tp 4 --verbose 2".
  explicit CommandLine(const std::string& words) {
    std::string word;
    for (const char c : words + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        words_.push_back(word);
        word.clear();
      }
    }
    // The first place is the program's own name.
    words_.insert(words_.begin(), "notebook");
    for (std::string& each : words_) pointers_.push_back(&each[0]);
    pointers_.push_back(nullptr);
  }
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  int argc() const { return static_cast<int>(words_.size()); }
  char** argv() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

/// The words that the lesson began with, and how many of the notebook's numbered cells have run since (-1: the begin
/// cell did not come to its end).
/// @{
std::unique_ptr<CommandLine> begun_with = std::make_unique<CommandLine>("");
int turns_taken = -1;
inline int argc() { return begun_with->argc(); }
inline char** argv() { return begun_with->argv(); }
/// @}

/// What a lesson is made from in a notebook: the lesson's own grid and what the command line says. Throws a sentence
/// when that can't work.
///
/// The ranks are fibers on the kernel's thread, since a kernel has threads of its own and must not be forked. They talk
/// through memory, which opens no socket, and an interrupt is looked for at each turn: a cell that waits ends at once
/// and leaves nothing behind.
inline muonwalk::sim::Options options(const muonwalk::sim::LessonInfo& info, const muonwalk::Grid& grid, int argc,
                                      char** argv) {
  using namespace muonwalk::sim;
  print_lines_to(print, print_aside);
  muonwalk::set_output_columns(kColumns);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--world=processes" || (word == "processes" && std::string(argv[i - 1]) == "--world"))
      throw std::runtime_error(
          "--world processes would fork the notebook's kernel, which has threads that a fork does not "
          "copy; leave it out, or run the lesson as a program");
  }
  // Of an option that is given twice, the last one counts: the reader's.
  std::vector<std::string> words = {argv[0], "--world", "fibers"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(&word[0]);
  Options result;
  result.grid = grid;
  result.set_up.recorded = true;  // for show_phases
  if (!parse_options(info, static_cast<int>(pointers.size()), pointers.data(), result))
    throw std::runtime_error("this option only prints; take it out of the command line, and the lesson can begin");
  require_transport(info, result);
  return result;
}

/// The same for a lesson that begins: with `words` as its command line.
inline muonwalk::sim::Options options(const muonwalk::sim::LessonInfo& info, const muonwalk::Grid& grid,
                                      const std::string& words) {
  turns_taken = -1;
  begun_with = std::make_unique<CommandLine>(words);
  return options(info, grid, argc(), argv());
}

inline void require_begun(bool begun) {
  if (!begun)
    throw std::runtime_error(
        "the lesson has not begun; run the cell with lesson.emplace, to its end, and then those behind it");
}

/// A cell that works with the ranks begins with its number, and the one that begins the lesson ends with 0. Throws a
/// sentence unless all numbered cells before it, and not yet it, have run since the lesson began: the ranks hold what
/// the last cell left them with.
template <class Lesson>
void in_turn(std::optional<Lesson>& lesson, int turn) {
  require_begun(lesson && (turn == 0 || turns_taken >= 0));
  if (turn <= turns_taken)
    throw std::runtime_error(
        "this cell has run already, and the ranks hold what it has left them with; to run it again, run the cell with "
        "lesson.emplace, and then the cells from there to here that define nothing");
  if (turn > turns_taken + 1)
    throw std::runtime_error("cell " + std::to_string(turns_taken + 1) +
                             " of those with an nb::in_turn comes before this one, and has not run since the lesson "
                             "began; run it first, and all between the two");
  turns_taken = turn;
}

/// What rank `rank` holds. Throws a sentence where there is no such rank.
template <class Lesson>
auto& rank(std::optional<Lesson>& lesson, int rank) {
  require_begun(lesson.has_value());
  const int ranks = lesson->options().grid.size();
  if (rank < 0 || rank >= ranks)
    throw std::runtime_error("there is no rank " + std::to_string(rank) + "; they are 0 to " +
                             std::to_string(ranks - 1));
  return lesson->local(rank);
}

/// Shows what quiet steps have done since the last time, phase by phase: what moved, and what rank 0 held then.
inline void show_phases(muonwalk::sim::LessonCore& lesson) {
  const std::string phases = lesson.take_phases();
  if (!phases.empty()) print(phases.substr(0, phases.size() - 1).c_str());
}

/// Shows what a rank holds, row by row.
inline void show(const muonwalk::Matrix& matrix) {
  if (matrix.rows() * matrix.cols() == 0) print("nothing yet");
  for (muonwalk::Index i = 0; i < matrix.rows(); ++i) {
    for (muonwalk::Index j = 0; j < matrix.cols(); ++j) std::cout << (j == 0 ? "" : "\t") << matrix(i, j);
    std::cout << "\n";
  }
  std::cout << std::flush;
}
inline void show(const muonwalk::Flat& values) {
  if (values.empty()) return print("nothing yet");
  for (std::size_t i = 0; i < values.size(); ++i) std::cout << (i == 0 ? "" : " ") << values[i];
  std::cout << std::endl;
}

}  // namespace nb

/// Throws when the expression is false, so that a notebook that is run from top to bottom stops there.
#define NB_CHECK(...) nb::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)

/// Declares the function `name`, whose cell comes later: a std::function, which says so where it is called before.
#define NB_DECLARE(type, name, parameters) \
  std::function<type parameters> name = nb::Undefined<type parameters> { #name }

/// Defines the function `name`, which NB_DECLARE has declared: `parameters and body` are those of any function. The
/// cell can be changed and run again, and whoever calls the function then calls the new one. (It is a member of a type
/// with a new name each time, because a session takes no function twice, and clang 19 takes no lambda in a cell.)
#define NB_FUNCTION(type, name, ...) NB_WRITTEN(__COUNTER__, ::name =, type, name, __VA_ARGS__)

/// The same, and `use`, which stands before a pointer to the function, in place of the assignment.
#define NB_WRITTEN(number, ...) NB_WRITTEN_AS(number, __VA_ARGS__)
#define NB_WRITTEN_AS(number, use, type, name, ...) \
  struct NbWritten##number {                        \
    static type name __VA_ARGS__                    \
  };                                                \
  use(&NbWritten##number::name)

#endif  // the headers are there
