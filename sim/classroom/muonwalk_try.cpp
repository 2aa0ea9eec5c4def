// muonwalk-try EXERCISE LIBRARY WORLD TIMEOUT: judges the function in a library that sim/classroom/try_exercise.py has
// built, and prints what there is to say. Exit code 100 + n: judged, with outcome n; 2 and 3 as ever.
//
// Only ranks load the library. Where they are processes, this one has nothing of the reader's in it, and so its exit
// code says what was judged. Where they are fibers, the reader's code may end it with any code.

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/classroom/exercise.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Opens the library with the judges of an exercise's lesson, "lesson_05_tp_gather/join_columns"; they add themselves to
// exercises(). It lies where this program's own library does.
void open_judges(const std::string& exercise) {
#ifdef __APPLE__
  const std::string path = fmt::format("@rpath/libmuonwalk_judge_{}.dylib", exercise.substr(0, 9).substr(7));
#else
  const std::string path = fmt::format("libmuonwalk_judge_{}.so", exercise.substr(0, 9).substr(7));
#endif
  if (dlopen(path.c_str(), RTLD_NOW) == nullptr)
    throw RunError(fmt::format("the judges can't be loaded: {}; ./walk try builds them", dlerror()));
}

constexpr int kFirstOutcome = 100;  // FIRST_OUTCOME of judging.py
const char* library_path = nullptr;

AnyFunction load_function() {
  void* library = dlopen(library_path, RTLD_NOW);
  void* entry = library != nullptr ? dlsym(library, "muonwalk_exercise") : nullptr;
  if (entry == nullptr) throw RunError(fmt::format("the library can't be loaded: {}; ./walk try builds it", dlerror()));
  return *static_cast<AnyFunction*>(entry);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]).size() < 9) throw UsageError("there is no exercise of that name");
  if (argc != 5 || (std::string(argv[3]) != "fibers" && std::string(argv[3]) != "processes"))
    throw UsageError(
        "it takes an exercise, a library, the world (fibers or processes) and a timeout; ./walk try calls it so");
  open_judges(argv[1]);
  const Exercise& exercise = find_exercise(argv[1]);
  library_path = argv[2];
  find_readers_function = load_function;
  JudgeOptions options;
  options.world = std::string(argv[3]) == "fibers" ? WorldKind::fibers : WorldKind::processes;
  options.timeout_seconds = std::atof(argv[4]);
  // The compiler has seen to the type: what the library was built from names it.
  const Verdict verdict = judge(exercise, *exercise.type, exercise.loading, options);
  for (const std::string& line : verdict.lines) print_line(line);
  finish_output();
  return kFirstOutcome + static_cast<int>(verdict.outcome);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  // What the reader's function prints is seen line by line, also when its rank dies.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  handle_interrupts("muonwalk-try");
  // Nothing of the reader's runs once it is judged: no function for the end of the program, and no destructor.
  _exit(exit_code_of("muonwalk-try", [&] { return run(argc, argv); }));
}
