#include "sim/classroom/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<NamedMatrix> answer(const std::string& name, Matrix matrix) {
  std::vector<NamedMatrix> matrices(1);
  matrices[0].name = name;
  matrices[0].matrix = std::move(matrix);
  return matrices;
}

std::vector<NamedMatrix> answer(const std::string& name, Flat values) {
  const Index count = static_cast<Index>(values.size());
  return answer(name, Matrix(1, count, std::move(values)));
}

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
  switch (outcome) {
    case Outcome::solved:
      return "solved";
    case Outcome::wrong_values:
      return "wrong values";
    case Outcome::too_many_bytes:
      return "right bits, but too many bytes";
    case Outcome::other_calls:
      return "right bits, but other calls than planned";
    case Outcome::peak_too_high:
      return "right bits, but too much memory";
    case Outcome::crashed:
      return "a crash";
    case Outcome::ended:
      return "it ends the program";
    case Outcome::stood_still:
      return "a deadlock";
    case Outcome::never_ended:
      return "it never ends";
    case Outcome::threw:
      return "an exception";
  }
  return "unknown";
}

}  // namespace muonwalk::sim
