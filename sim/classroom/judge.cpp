// How an attempt is judged: the lesson's ranks run the reader's function, and the parent compares.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "sim/classroom/comparison.hpp"
#include "sim/classroom/exercise.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// What ranks hand over are matrices: a call is an empty one that is called so. Behind the last one come the bytes that
// were sent and the peak above the input, as its numbers.
using Calls = std::vector<NamedMatrix>;

// What a rank holds for the judge. It keeps the calls of the reader's function: it listens when the input is ready, and
// nothing of ours calls after that.
struct Attempt : CallObserver {
  void begins(const Call& call) override { calls.push_back({text(call), {}}); }

  Answer answer;
  std::vector<NamedMatrix> result;  // what the reader's function made
  Calls calls;
};

// What the parent knows of one rank's attempt.
struct Made {
  std::vector<NamedMatrix> result;
  long long bytes = 0;
  Index peak = 0;
  std::vector<std::string> calls;
};

Made made_of(std::vector<NamedMatrix> result, const Calls& calls) {
  Made made = {std::move(result), calls.back().first_row, calls.back().first_col, {}};
  for (const NamedMatrix& call : calls) made.calls.push_back(call.name);
  made.calls.pop_back();
  return made;
}

// Where everything that the reader's function prints is seen, also when the rank crashes a moment later.
void flush_prints() {
  std::cout.flush();
  std::fflush(stdout);
}

void take_answer(Rank& rank, Attempt& attempt) {
  const Index before = rank.memory().live();
  const long long sent = rank.ledger().total().bytes_sent;
  rank.memory().restart_peak();
  attempt.result = attempt.answer();
  flush_prints();
  attempt.calls.push_back({"", {}, rank.ledger().total().bytes_sent - sent, rank.memory().peak() - before});
}

bool says(const std::string& sentence, const char* words) { return sentence.find(words) != std::string::npos; }

// The sentence of a run that broke, as an outcome. What is looked for are the words of process_world.cpp.
Outcome outcome_of(const std::string& sentence) {
  if (says(sentence, "was killed by signal")) return Outcome::crashed;
  if (says(sentence, "exited early with code")) return Outcome::ended;
  if (says(sentence, "did nothing but compute")) return Outcome::never_ended;
  for (const char* words :
       {"nothing moved in step", "nothing can move in step", "did nothing in step", "waited too long"})
    if (says(sentence, words)) return Outcome::stood_still;
  return Outcome::threw;
}

const char* advice(Outcome outcome) {
  switch (outcome) {
    case Outcome::crashed:
      return "An index that is too large, or a pointer to nothing, is what does this most often.";
    case Outcome::ended:
      return "A function returns; it does not end the program.";
    case Outcome::stood_still:
      return "Every rank of the group has to make the same collective calls, and every message needs both ends.";
    case Outcome::never_ended:
      return "Is there a loop that never ends?";
    default:
      return "";
  }
}

// The words of a lesson's own sentence that mean nothing here are left out: its step is the reader's function, and
// there is no option to be tried.
std::string for_reader(std::string sentence, const std::string& function) {
  const std::pair<std::string, std::string> all_words[] = {
      {"in step '" + function + "'", "in " + function},
      {"in step 'hand over results'", "after " + function + " had returned: it wrote outside of its arrays"},
      {"left the step", "returned"}};
  for (const auto& [ours, readers] : all_words)
    for (std::size_t at = 0; (at = sentence.find(ours)) != std::string::npos;)
      sentence.replace(at, ours.size(), readers);
  for (const char* end : {", without a call, a phase", "; if it needs more, try"})
    sentence = sentence.substr(0, sentence.find(end));
  return sentence.back() == '.' ? sentence : sentence + ".";
}

Verdict broken(const std::string& function, const std::string& sentence) {
  Verdict verdict{outcome_of(sentence), {}};
  append(verdict.lines, paragraph(for_reader(sentence, function), 2, 2));
  append(verdict.lines, paragraph(advice(verdict.outcome), 2, 2));
  return verdict;
}

// A call and the plan's, one beside the other.
std::vector<std::string> calls_side_by_side(const std::vector<std::string>& planned,
                                            const std::vector<std::string>& made) {
  Table table({{"  call"}, {"planned"}, {"made"}});
  const std::size_t count = std::max(planned.size(), made.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool equal = i < planned.size() && i < made.size() && planned[i] == made[i];
    table.row({fmt::format("  {}", i + 1), i < planned.size() ? planned[i] : "–",
               equal ? "the same" : (i < made.size() ? made[i] : "–")});
    if (i == 11 && count > 13) {
      table.row({"  …", count_text(static_cast<Index>(planned.size()), "call") + " in all",
                 count_text(static_cast<Index>(made.size()), "call") + " in all"});
      break;
    }
  }
  return table.lines();
}

// A distance in ULP says something of values that are close; of others it is a large number that nobody needs.
std::string without_large_distance(const std::string& line) {
  constexpr std::size_t kDigits = 4;
  const std::size_t end = line.rfind(" ULP apart");
  const std::size_t begin = line.find_last_of(' ', end == std::string::npos ? end : end - 1);
  if (end == std::string::npos || end - begin - 1 <= kDigits) return line;
  return line.substr(0, line.find_last_not_of(' ', begin) + 1);
}

// One rank's attempt beside what it is held to.
class Comparing {
 public:
  Comparing(const Task& task, const Options& options, const std::vector<Made>& made)
      : task_(task), options_(options), made_(made) {
    for (std::size_t r = 0; r < made.size(); ++r) wanted_.push_back(task.reference(rank_info(r)));
  }

  Verdict verdict() {
    for (const auto part : {&Comparing::values, &Comparing::traffic, &Comparing::peak})
      for (std::size_t r = 0; r < made_.size(); ++r)
        if (Verdict found = (this->*part)(r); !found.solved()) return found;
    return {};
  }

  long long elements() const { return elements_; }

 private:
  RankInfo rank_info(std::size_t rank) const { return options_.rank_info(static_cast<int>(rank)); }
  std::string label(std::size_t rank) const { return rank_label(options_.grid, static_cast<int>(rank)); }

  Verdict values(std::size_t r) {
    Comparison comparison;
    compare(label(r), made_[r].result, wanted_[r], comparison);
    elements_ += comparison.elements;
    if (comparison.equal()) return {};
    Verdict verdict{Outcome::wrong_values, {}};
    for (const std::string& line : comparison.first) verdict.lines.push_back("  " + without_large_distance(line));
    if (comparison.different > 1)
      verdict.lines.push_back(fmt::format("  {} of the {} elements of this rank differ",
                                          number_text(comparison.different), number_text(comparison.elements)));
    const std::string words = what_it_looks_like(r);
    if (!words.empty()) append(verdict.lines, paragraph("what it looks like: " + words, 2, 2));
    return verdict;
  }

  // Of the first matrix that differs.
  std::string what_it_looks_like(std::size_t r) const {
    for (std::size_t i = 0; i < std::min(made_[r].result.size(), wanted_[r].size()); ++i) {
      const Matrix& held = made_[r].result[i].matrix;
      const std::string& name = wanted_[r][i].name;
      if (made_[r].result[i].name != name) return "";
      if (same_bits(held, wanted_[r][i].matrix)) continue;
      std::vector<Look> looks;
      for (Look& look : task_.looks ? task_.looks(rank_info(r)) : std::vector<Look>())
        if (look.of.empty() || look.of == name) looks.push_back(std::move(look));
      for (std::size_t other = 0; other < wanted_.size(); ++other)
        if (other != r && i < wanted_[other].size())
          looks.push_back({fmt::format("what {} should have", label(other)), wanted_[other][i].matrix});
      return likeness(held, wanted_[r][i].matrix, task_.slices ? task_.slices(rank_info(r)) : 1, looks);
    }
    return "";
  }

  Verdict traffic(std::size_t r) {
    const Plan plan = task_.plan(rank_info(r));
    std::vector<std::string> planned;
    for (const PlannedCall& each : calls_of(plan)) planned.push_back(text(each.call));
    const long long bytes = ledger_of(plan).total().bytes_sent;
    const bool too_many = made_[r].bytes > bytes;
    if (!too_many && (task_.own_design || planned == made_[r].calls)) return {};
    Verdict verdict{too_many ? Outcome::too_many_bytes : Outcome::other_calls, {}};
    verdict.lines.push_back(
        fmt::format("  {} sends {}; {} would do", label(r), bytes_text(made_[r].bytes), bytes_text(bytes)));
    if (!too_many)
      verdict.lines.back() =
          made_[r].bytes == bytes
              ? fmt::format("  {} sends {}, as planned, but in other calls:", label(r), bytes_text(bytes))
              : fmt::format("  {} sends {}, and not {} as planned, in other calls:", label(r),
                            bytes_text(made_[r].bytes), bytes_text(bytes));
    append(verdict.lines, calls_side_by_side(planned, made_[r].calls));
    return verdict;
  }

  Verdict peak(std::size_t r) {
    const Index planned = peak_elements(task_.plan(rank_info(r)));
    if (made_[r].peak <= planned) return {};
    return {Outcome::peak_too_high,
            {fmt::format("  {} holds up to {} elements besides its input; {} would do", label(r),
                         number_text(made_[r].peak), number_text(planned))}};
  }

  const Task& task_;
  const Options& options_;
  const std::vector<Made>& made_;
  std::vector<std::vector<NamedMatrix>> wanted_;
  long long elements_ = 0;
};

Options options_of(const Grid& grid, const JudgeOptions& wanted) {
  Options options;
  options.grid = grid;
  options.threads = 1;
  options.verbose = 0;
  options.world = wanted.world;
  options.timeout_seconds = wanted.timeout_seconds;
  return options;
}

// One layout: the ranks start, prepare, run the reader's function once, and hand over what came of it.
Verdict judge_layout(const std::string& function, const Task& task, const Options& options) {
  LessonInfo info;
  info.name = "try";
  info.title = function;
  Lesson<Attempt> lesson(info, options);
  lesson.quiet_step("prepare", [&](Rank& rank, Attempt& attempt) {
    attempt.answer = task.prepare(rank);
    for (Communicator* group : {&rank.dp(), &rank.tp(), &rank.pp()}) group->observe(attempt);
  });
  // All of the input is ready on all ranks before anything of the reader's runs.
  try {
    lesson.quiet_step(function, take_answer);
  } catch (const std::exception& error) {
    return broken(function, error.what());
  }
  std::vector<std::vector<NamedMatrix>> results, calls;
  try {
    results = lesson.collect(&Attempt::result);
    calls = lesson.collect(&Attempt::calls);
  } catch (const RunError& error) {
    if (outcome_of(error.what()) != Outcome::crashed) throw;
    return broken(function, error.what());  // of a function that has written anywhere
  }
  lesson.answer("");  // a rank that is a process ends here
  std::vector<Made> made;
  for (std::size_t r = 0; r < results.size(); ++r) made.push_back(made_of(results[r], calls[r]));
  Comparing comparing(task, options, made);
  Verdict verdict = comparing.verdict();
  if (!verdict.solved()) return verdict;

  long long bytes = 0;
  Index peak = 0;
  for (const Made& each : made) bytes = std::max(bytes, each.bytes), peak = std::max(peak, each.peak);
  verdict.lines = {fmt::format("{} elements, bit for bit · {} sent · {} elements held",
                               number_text(comparing.elements()), bytes == 0 ? "nothing" : bytes_text(bytes),
                               number_text(peak))};
  return verdict;
}

}  // namespace

Verdict judge(const std::string& function, const Task& task, const JudgeOptions& options) {
  Verdict whole;
  std::vector<std::string> found;
  for (const Grid& grid : task.grids) {
    Verdict verdict = judge_layout(function, task, options_of(grid, options));
    const std::string mark =
        verdict.solved() ? "✔   " + verdict.lines[0] : std::string("✘   ") + outcome_name(verdict.outcome);
    whole.lines.push_back(fmt::format("  {}{}", pad_right(grid.text(), 16), mark));
    if (verdict.solved()) continue;
    whole.outcome = verdict.outcome;
    found = verdict.lines;
    break;
  }
  append(whole.lines, found);
  return whole;
}

Verdict judge(const Exercise& exercise, const std::type_info& type, AnyFunction yours, const JudgeOptions& options) {
  if (type != *exercise.type)
    throw UsageError(
        fmt::format("{} does not have the type that its contract.hpp asks for; give it the parameters and the "
                    "result that stand there",
                    exercise.function));
  return judge(exercise.function, exercise.task(yours), options);
}

}  // namespace muonwalk::sim
