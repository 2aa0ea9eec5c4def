#include "sim/classroom/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// Judges add themselves while libraries are being loaded, in no certain order.
std::vector<Exercise>& exercises() {
  static std::vector<Exercise> all;
  return all;
}

}  // namespace

AnyFunction (*find_readers_function)() = nullptr;

bool add_exercise(Exercise exercise) {
  exercises().push_back(std::move(exercise));
  return true;
}

const Exercise& find_exercise(const std::string& name) {
  std::vector<std::string> names;
  for (const Exercise& each : exercises()) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  std::sort(names.begin(), names.end());
  throw UsageError(fmt::format("there is no exercise {}; there are: {}", in_quotes(name),
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

const char* outcome_name(Outcome outcome) {
  static constexpr const char* kNames[] = {"solved",
                                           "wrong values",
                                           "right bits, but too many bytes",
                                           "right bits, but other calls than planned",
                                           "right bits, but too much memory",
                                           "a crash",
                                           "it ends the program",
                                           "a deadlock",
                                           "it never ends",
                                           "an exception"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Outcome::threw) + 1, "a name for each outcome");
  return kNames[static_cast<std::size_t>(outcome)];
}

}  // namespace muonwalk::sim
