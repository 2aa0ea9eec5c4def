// muonwalk-try EXERCISE LIBRARY VERDICT WORLD TIMEOUT: judges the function in a library that
// sim/classroom/try_exercise.py has built, prints what there is to say, and writes the outcome into the file VERDICT.
// Exit code 0: judged; 2 and 3 as ever.
//
// The reader's code runs in here, and may end this program as it likes. So its exit code proves nothing: the file does.

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
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

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]).size() < 9) throw UsageError("there is no exercise of that name");
  if (argc != 6 || (std::string(argv[4]) != "fibers" && std::string(argv[4]) != "processes"))
    throw UsageError(
        "it takes an exercise, a library, a file for the verdict, the world (fibers or processes) and a timeout; "
        "./walk try calls it so");
  open_judges(argv[1]);
  const Exercise& exercise = find_exercise(argv[1]);
  void* library = dlopen(argv[2], RTLD_NOW);
  if (library == nullptr) throw RunError(fmt::format("the library can't be loaded: {}", dlerror()));
  auto* entry = static_cast<AnyFunction*>(dlsym(library, "muonwalk_exercise"));
  if (entry == nullptr) throw RunError("the library has no muonwalk_exercise; build it with ./walk try");
  JudgeOptions options;
  options.world = std::string(argv[4]) == "fibers" ? WorldKind::fibers : WorldKind::processes;
  options.timeout_seconds = std::atof(argv[5]);
  // The compiler has seen to the type: what the library was built from names it.
  const Verdict verdict = judge(exercise, *exercise.type, *entry, options);
  for (const std::string& line : verdict.lines) print_line(line);
  finish_output();
  std::ofstream file(argv[3]);
  file << outcome_name(verdict.outcome) << "\n" << std::flush;
  if (!file) throw RunError(fmt::format("the verdict can't be written to {}", argv[3]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  // What the reader's function prints is seen line by line, also when its rank dies.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  handle_interrupts("muonwalk-try");
  const int code = exit_code_of("muonwalk-try", [&] { return run(argc, argv); });
  if (code != 0 && argc > 3) std::ofstream(argv[3]) << "broken\n";
  return code;
}
