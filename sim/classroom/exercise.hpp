#pragma once

#include <functional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "sim/classroom/likeness.hpp"
#include "sim/ranks/rank.hpp"
#include "src/numerics/matrix.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// Calls the reader's function with input that is ready, and returns what came of it (named).
using Answer = std::function<std::vector<NamedMatrix>()>;

/// What is asked of the reader's function, and what it is held to. The lesson's own functions prepare the input and
/// compute what must come out.
struct Task {
  /// The layouts, each a run of its own, in the world that JudgeOptions names.
  std::vector<Grid> grids;
  /// On a rank, before anything is counted: makes the input, and returns what calls the reader's function with it.
  std::function<Answer(Rank&)> prepare;
  /// What a rank must end with, bit for bit; computed in the parent.
  std::function<std::vector<NamedMatrix>(const RankInfo&)> reference;
  /// What the function may do on a rank: its calls in order, and the memory that it takes besides its input.
  std::function<Plan(const RankInfo&)> plan;
  /// Which calls it makes, and in which order, is the reader's own affair: only the plan's bytes and peak bound it.
  bool own_design = false;
  /// How many equal slices the result is made of, for what a wrong one looks like.
  std::function<int(const RankInfo&)> slices = {};
  /// What else a wrong result may turn out to be.
  std::function<std::vector<Look>(const RankInfo&)> looks = {};
};

/// A function without its type, as exercises are listed.
using AnyFunction = void (*)();

/// An exercise of a lesson: what the judge knows of it.
struct Exercise {
  std::string name;                       ///< "lesson_05_tp_gather/join_columns"
  std::string function;                   ///< "join_columns"
  const std::type_info* type = nullptr;   ///< The function's type.
  std::function<Task(AnyFunction)> task;  ///< what is asked of a function of this type
  AnyFunction loading = nullptr;          ///< a function of this type that calls what find_readers_function returns
};

/// Where the reader's code is in a library: loads it, in the process that calls the function. So a process that judges
/// ranks which are processes has none of it.
extern AnyFunction (*find_readers_function)();
template <class Result, class... Arguments>
Result call_readers_function(Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(find_readers_function())(std::forward<Arguments>(arguments)...);
}

/// Adds an exercise to the list, when its judge is loaded: `const bool added = add_exercise("lesson_05_tp_gather",
/// "join_columns", task);` with a function Task task(JoinColumns* yours).
/// @{
bool add_exercise(Exercise exercise);
template <class Result, class... Arguments>
bool add_exercise(const std::string& lesson, const std::string& function, Task (*task)(Result (*)(Arguments...))) {
  using Function = Result(Arguments...);
  return add_exercise({lesson + "/" + function, function, &typeid(Function),
                       [task](AnyFunction yours) { return task(reinterpret_cast<Function*>(yours)); },
                       reinterpret_cast<AnyFunction>(call_readers_function<Result, Arguments...>)});
}
/// @}

/// The exercise of this name. Throws UsageError, which names those that there are.
const Exercise& find_exercise(const std::string& name);

/// How an attempt ended.
enum class Outcome {
  solved,          ///< right bits, right calls, and no more memory than planned
  wrong_values,    ///< other bits than the reference
  too_many_bytes,  ///< right bits, but more was sent than planned
  other_calls,     ///< right bits and no more bytes, but other calls than planned
  peak_too_high,   ///< right bits and right calls, but more memory than planned
  crashed,         ///< a signal ended a rank
  ended,           ///< a rank ended the program by itself
  stood_still,     ///< ranks wait for what nobody sends
  never_ended,     ///< a rank computes forever
  threw            ///< an exception
};

/// "solved", "wrong values", "too many bytes" and so on.
const char* outcome_name(Outcome outcome);

/// What the judge says of an attempt.
struct Verdict {
  Outcome outcome = Outcome::solved;  ///< how it ended
  std::vector<std::string> lines;     ///< what to print
  /// All bits, calls and peaks are right.
  bool solved() const { return outcome == Outcome::solved; }
};

/// Where an attempt runs.
struct JudgeOptions {
  WorldKind world = WorldKind::processes;  ///< processes that talk over Gloo, or fibers that talk through memory
  double timeout_seconds = 1;              ///< What Options::timeout_seconds is for a lesson.
};

/// Runs a function in every layout of its task, and compares. Throws where something of ours breaks. In a process that
/// is a rank it does not return.
Verdict judge(const std::string& function, const Task& task, const JudgeOptions& options = {});

/// The same for a listed exercise and the reader's function; throws UsageError where its type is another one.
/// @{
Verdict judge(const Exercise& exercise, const std::type_info& type, AnyFunction yours,
              const JudgeOptions& options = {});
template <class Function>
Verdict judge(const std::string& exercise, Function* yours, const JudgeOptions& options = {}) {
  return judge(find_exercise(exercise), typeid(Function), reinterpret_cast<AnyFunction>(yours), options);
}
/// @}

}  // namespace muonwalk::sim
