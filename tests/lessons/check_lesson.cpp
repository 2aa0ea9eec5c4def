// Runs a lesson and holds it to what every lesson promises. ctest calls it once for each lesson and each kind of check:
//
//     check_lesson anatomy|expected|bugs|threads|worlds|options PROGRAM EXPECTED [ARGUMENT...]
//
// `anatomy` reads the lesson's source, which lies beside its .expected; the other checks run the program.
//
// The arguments are handed to the lesson in all checks but `expected`, so that a lesson that works long can be checked
// in a smaller size. With BLESS=1 in the environment, `expected` and `bugs` write their file instead of comparing with
// it: NAME.expected is what the lesson prints, NAME.bugs.expected what each planted bug changes in that. `nccl` does
// the same with NAME.nccl.expected, where the lesson has one.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/lessons/bug_excerpt.hpp"
#include "tests/ranks/run_program.hpp"

using muonwalk::testing::bug_excerpt;
using muonwalk::testing::end_text;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;
using muonwalk::testing::same_on_any_processor;

namespace {

constexpr double kLimitSeconds = 240;  // far more than any lesson needs, also under a sanitizer
constexpr int kColumns = 100;
constexpr std::size_t kMostLines = 80;

const char* const kBlessIfRight =
    "If what it prints now is right, run this test with BLESS=1 in the environment and review the difference.\n";

int failures = 0;

void fail(const std::string& what) {
  std::cout << "FAILED  " << what << "\n";
  ++failures;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + (word.empty() ? "''" : word);
  return text;
}

struct Lesson {
  std::string program;
  std::string name;      // "lesson_05_tp_gather"
  std::string expected;  // the file
  std::vector<std::string> arguments;

  Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), more.begin(), more.end());
    return run_program(command, kLimitSeconds);
  }
  std::string said(const std::vector<std::string>& options) const { return join(options) + ": "; }
  std::string bugs_expected() const {
    return std::filesystem::path(expected).replace_extension(".bugs.expected").string();
  }
  // Lessons that put earlier ones together.
  bool may_be_long() const {
    return name.rfind("lesson_09", 0) == 0 || name.rfind("lesson_19", 0) == 0 || name.rfind("lesson_20", 0) == 0;
  }
};

// --- pieces of checks
// -------------------------------------------------------------------------------------------------

// Columns of a UTF-8 text: one a character.
int width_of(const std::string& line) {
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Fits on the screen. Of the lines that don't, the first is shown and the others are counted.
void expect_readable(const std::string& what, const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  std::string first;
  int wrong = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool blank_end = !lines[i].empty() && (lines[i].back() == ' ' || lines[i].back() == '\t');
    if (width_of(lines[i]) <= kColumns && !blank_end) continue;
    if (wrong++ == 0)
      first = "line " + std::to_string(i + 1) +
              (blank_end ? " ends in blanks"
                         : " has " + std::to_string(width_of(lines[i])) + " columns; the limit is 100") +
              ":\n    " + lines[i] + (blank_end ? "|" : "");
  }
  if (wrong > 0)
    fail(what + first + (wrong > 1 ? "\n    (and " + std::to_string(wrong - 1) + " more such lines)" : ""));
  if (!text.empty() && text.back() != '\n') fail(what + "the last line has no end");
}

// True when both are equal; otherwise the first line that differs is printed as both have it.
bool expect_same(const std::string& what, const std::string& of_first, const std::string& first,
                 const std::string& of_second, const std::string& second) {
  if (first == second) return true;
  const std::vector<std::string> a = lines_of(first), b = lines_of(second);
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto line = [i](const std::vector<std::string>& lines) {
    return i < lines.size() ? lines[i] : "(no such line)";
  };
  const std::string margin(std::max(of_first.size(), of_second.size()), ' ');
  const auto label = [&](const std::string& of) { return (of + margin).substr(0, margin.size()) + "  "; };
  fail(what + "the first difference is in line " + std::to_string(i + 1) + "\n    " + label(of_first) + line(a) +
       "\n    " + label(of_second) + line(b));
  return false;
}

bool expect_code(const std::string& what, const Outcome& outcome, int code) {
  if (!outcome.timed_out && outcome.exit_code == code) return true;
  fail(what + "ended " + end_text(outcome) + " instead of with code " + std::to_string(code) +
       (outcome.err.empty() ? "" : "; on standard error:\n    " + outcome.err));
  return false;
}

// What could not work as asked is refused in one sentence, and nothing else is printed.
void expect_refusal(const Lesson& lesson, const std::vector<std::string>& options, const Outcome& outcome) {
  const std::string what = lesson.said(options);
  if (!expect_code(what, outcome, 2)) return;
  const std::vector<std::string> lines = lines_of(outcome.err);
  if (lines.size() != 1 || lines[0].rfind(lesson.name + ": ", 0) != 0 || lines[0].size() < lesson.name.size() + 20)
    fail(what + "a refusal is one sentence on standard error that begins with \"" + lesson.name +
         ": \", but it says:\n" + outcome.err);
  if (!outcome.out.empty()) fail(what + "a refusal leaves standard output empty, but it has:\n" + outcome.out);
}

void expect_works_or_is_refused(const Lesson& lesson, const std::vector<std::string>& options) {
  const Outcome outcome = lesson.run(options);
  if (outcome.exit_code == 2 && !outcome.timed_out) return expect_refusal(lesson, options, outcome);
  if (expect_code(lesson.said(options), outcome, 0)) expect_readable(lesson.said(options), outcome.out);
}

// With BLESS=1 in the environment, writes `text` to `path` and says so.
bool blessed(const std::string& path, const std::string& text) {
  const char* bless = std::getenv("BLESS");
  if (bless == nullptr || std::string(bless) != "1") return false;
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    fail(path + " could not be written");
  else
    std::cout << "BLESSED: " << path << " was written anew; review the difference before committing it\n";
  return true;
}

std::string read_or_fail(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path + " does not exist; run this test with BLESS=1 in the environment to write it, and review it");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// --- the source
// -------------------------------------------------------------------------------------------------------

// What a line of a lesson's source is. A comment at the end of a line of code does not make it prose.
bool is_prose(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.compare(first, 2, "//") == 0;
}
// Prose, or code with a comment at its end.
bool has_words(const std::string& line) { return is_prose(line) || line.find(" // ") != std::string::npos; }
bool is_code(const std::string& line) { return !is_prose(line) && line.find_first_not_of(" \t") != std::string::npos; }

// "The idea" of a line "// ## The idea"; empty for every other line.
std::string heading_of(const std::string& line) {
  const std::string mark = "// ## ";
  const std::size_t first = line.find_first_not_of(' ');
  return is_prose(line) && line.compare(first, mark.size(), mark) == 0 ? line.substr(first + mark.size()) : "";
}

// The first line is "// # Lesson NN · Title", with the number of the file's name and the title that the program prints.
void expect_title(const Lesson& lesson, const std::vector<std::string>& lines) {
  const std::string begin = "// # Lesson " + lesson.name.substr(7, 2) + " · ";
  if (lines.empty() || lines[0].rfind(begin, 0) != 0 || lines[0].size() == begin.size())
    return fail("the first line of the source is \"" + begin + "Title\", but it is:\n    " +
                (lines.empty() ? "" : lines[0]));
  const std::string title = "info.title = \"" + lines[0].substr(begin.size()) + "\";";
  const bool printed = std::any_of(lines.begin(), lines.end(),
                                   [&](const std::string& line) { return line.find(title) != std::string::npos; });
  if (!printed) fail("the program does not print the title of the source's first line; it should say " + title);
}

// The section "Exercises", from its heading to its last comment: its first line and the one behind its last.
std::pair<std::size_t, std::size_t> exercises_of(const std::vector<std::string>& lines) {
  std::size_t begin = 0;
  while (begin < lines.size() && heading_of(lines[begin]) != "Exercises") ++begin;
  std::size_t end = begin;
  while (end < lines.size() && is_prose(lines[end])) ++end;
  return {begin, end};
}

// Without the lines that an answer goes on for after its first.
std::vector<std::string> without_answers(const std::vector<std::string>& lines) {
  const auto [begin, end] = exercises_of(lines);
  std::vector<std::string> kept;
  bool in_answer = false;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::size_t text = lines[at].find("// ");
    const bool item = text != std::string::npos && lines[at].substr(text + 3).find(". ") == 1;
    in_answer = in_answer && at > begin && at < end && !item;
    if (!in_answer) kept.push_back(lines[at]);
    in_answer = in_answer || (at > begin && at < end && lines[at].find("Answer: ") != std::string::npos);
  }
  return kept;
}

// The numbered items of a list in comments, each as one line of text.
std::vector<std::string> numbered_items(const std::vector<std::string>& lines, std::size_t begin, std::size_t end) {
  std::vector<std::string> items;
  for (std::size_t at = begin; at < end; ++at) {
    const std::string text = lines[at].substr(lines[at].find("//") + 2);
    if (text.rfind(" " + std::to_string(items.size() + 1) + ". ", 0) == 0)
      items.push_back(text);
    else if (!items.empty())
      items.back() += text;
  }
  return items;
}

// Three questions; for each a hint, and an answer behind it.
void expect_exercises(const std::vector<std::string>& lines) {
  const auto [begin, end] = exercises_of(lines);
  const std::vector<std::string> items = numbered_items(lines, begin, end);
  if (items.size() != 3) fail("a lesson ends with 3 exercises, but it has " + std::to_string(items.size()));
  constexpr std::size_t kFewestWords = 20;  // bytes of a hint or an answer: shorter than this is nothing said
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& item = items[i];
    const std::size_t hint = item.find("Hint: "), answer = item.find("Answer: ");
    const std::string which = "exercise " + std::to_string(i + 1);
    if (hint == std::string::npos || std::min(answer, item.size()) < hint + kFewestWords)
      fail(which + " has no hint; write one behind the question, \"Hint: …\"");
    else if (answer == std::string::npos || item.size() < answer + kFewestWords)
      fail(which + " has no answer; write it behind the hint, \"Answer: …\", and try it before");
    if (item.find("Hint: ", hint + 1) != std::string::npos || item.find("Answer: ", answer + 1) != std::string::npos)
      fail(which + " has two hints or two answers");
  }
}

// Every lesson has these sections, in this order; others may stand between them.
void expect_sections(const std::vector<std::string>& lines) {
  std::size_t at = 0;
  for (const char* section : {"The idea", "The reference", "The steps", "The cost", "Exercises"}) {
    std::size_t next = at;
    while (next < lines.size() && heading_of(lines[next]) != section) ++next;
    if (next == lines.size())
      return fail(std::string("the section \"// ## ") + section + "\" is missing, or comes too early");
    at = next;
  }
  expect_exercises(lines);
}

// As many words as a reader needs, and never a long stretch of code without a line of its own that explains it.
void expect_prose(const Lesson& lesson, const std::vector<std::string>& lines) {
  constexpr int kMostCode = 25;
  // Lessons 09 and 10 put together what the ones before have explained.
  const int tenths = lesson.may_be_long() || lesson.name.rfind("lesson_10", 0) == 0 ? 4 : 7;
  const auto prose = std::count_if(lines.begin(), lines.end(), has_words);
  const auto code = std::count_if(lines.begin(), lines.end(), is_code);
  if (10 * prose < tenths * code || prose > 2 * code)
    fail("for every line of code a lesson has 0." + std::to_string(tenths) + " to 2 lines with words, but it has " +
         std::to_string(prose) + " for " + std::to_string(code));
  int run = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_prose(lines[i])) run = 0;
    if (is_code(lines[i]) && ++run == kMostCode + 1)
      fail("line " + std::to_string(i + 1) + " is the " + std::to_string(run) +
           "th line of code without a word between them");
  }
}

// --- the checks
// -------------------------------------------------------------------------------------------------------

// The source has the anatomy that readers know from the other lessons, and a length that can be read in one go.
void check_anatomy(const Lesson& lesson) {
  constexpr std::size_t kFewest = 120;
  const std::size_t most = lesson.may_be_long() || lesson.name.rfind("lesson_20", 0) == 0 ? 330 : 300;
  constexpr int kSourceColumns = 120;
  const std::filesystem::path source = std::filesystem::path(lesson.expected).replace_extension(".cpp");
  std::ifstream file(source);
  if (!file) return fail(source.string() + " does not exist; the source of a lesson lies beside its .expected");
  std::ostringstream text;
  text << file.rdbuf();
  const std::vector<std::string> lines = lines_of(text.str());

  expect_title(lesson, lines);
  expect_sections(lines);
  expect_prose(lesson, without_answers(lines));
  const auto [begin, end] = exercises_of(lines);
  const std::size_t count = lines.size() - (end - begin);
  if (count < kFewest || count > most)
    fail("a lesson has " + std::to_string(kFewest) + " to " + std::to_string(most) +
         " lines besides its exercises, but this has " + std::to_string(count));
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (width_of(lines[i]) > kSourceColumns)
      fail("line " + std::to_string(i + 1) + " has " + std::to_string(width_of(lines[i])) + " columns; the limit is " +
           std::to_string(kSourceColumns));
}

void check_expected(const Lesson& lesson) {
  const Outcome outcome = run_program({lesson.program}, kLimitSeconds);
  if (!expect_code("", outcome, 0)) std::cout << outcome.out;
  expect_readable("", outcome.out);
  const std::size_t lines = lines_of(outcome.out).size();
  if (lines > kMostLines && !lesson.may_be_long())
    fail("it prints " + std::to_string(lines) + " lines; the limit is " + std::to_string(kMostLines));
  if (failures > 0) return;

  if (blessed(lesson.expected, outcome.out)) return;
  const std::string expected = read_or_fail(lesson.expected);
  if (failures == 0 && !expect_same("", "expected", expected, "printed", outcome.out)) std::cout << kBlessIfRight;
}

void check_bugs(const Lesson& lesson) {
  const Outcome list = lesson.run({"--list-bugs"});
  if (!expect_code("--list-bugs: ", list, 0)) return;
  const std::vector<std::string> bugs = lines_of(list.out);
  if (bugs.empty()) return fail("a lesson plants at least one bug that its check catches, but --list-bugs names none");
  const Outcome without = lesson.run({});
  if (!expect_code("", without, 0)) return;
  std::string excerpts = "What the planted bugs of " + lesson.name + " change in its output: the test " + lesson.name +
                         ".bugs compares,\nand writes this file when it is run with BLESS=1 in the environment.\n";
  for (const std::string& line : bugs) {
    const std::string bug = line.substr(0, line.find(' '));
    const std::string what = "--bug " + bug + ": ";
    if (line.find("  ") == std::string::npos) fail("--list-bugs: \"" + line + "\" does not say what goes wrong");
    const Outcome outcome = lesson.run({"--bug", bug});
    std::vector<std::string> command = {lesson.name};
    command.insert(command.end(), lesson.arguments.begin(), lesson.arguments.end());
    excerpts += "\nbug " + bug + ": " + line.substr(line.find_first_not_of(' ', bug.size())) + "\n$ " + join(command) +
                " --bug " + bug + "\n";
    // A rank that makes other calls than the rest is caught by whoever waits for it, before there is anything to check.
    // Who that is may be another rank in each run.
    if (outcome.exit_code == 3) {
      const std::vector<std::string> sentence = lines_of(outcome.err);
      if (sentence.size() != 1 || sentence[0].find(lesson.name + ": rank ") != 0 ||
          sentence[0].find("do not make the same calls") == std::string::npos)
        fail(what + "ended with code 3, but not with one sentence about other calls:\n" + outcome.err);
      excerpts += "…\n(Exit code 3, and a sentence on standard error: the ranks do not make the same calls.)\n";
      continue;
    }
    if (!expect_code(what, outcome, 1)) continue;
    const bool named =
        outcome.out.find("first difference") != std::string::npos || outcome.out.find("✘") != std::string::npos;
    if (!named) fail(what + "the output does not show a difference:\n" + outcome.out);
    if (outcome.out.find(lesson.name + ": FAILED\n") == std::string::npos)
      fail(what + "the last line does not say FAILED");
    expect_readable(what, outcome.out);
    excerpts += bug_excerpt(without.out, outcome.out);
  }
  if (failures > 0 || blessed(lesson.bugs_expected(), excerpts)) return;
  const std::string expected = read_or_fail(lesson.bugs_expected());
  if (failures == 0 && !same_on_any_processor(expected, excerpts)) {
    expect_same("", "expected", expected, "printed", excerpts);
    std::cout << kBlessIfRight;
  }
  std::cout << bugs.size() << " planted bugs were run\n";
}

// The output without what may differ between worlds: the right half of headings, and what the kernel counted.
std::string without_world(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::string kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind("Lesson ", 0) == 0) lines[i] = lines[i].substr(0, lines[i].find("  "));
    if (lines[i].rfind("        kernel", 0) == 0) continue;
    kept += lines[i] + "\n";
  }
  return kept;
}

// Runs the lesson in another world; a lesson that needs processes may refuse.
void expect_same_in(const Lesson& lesson, const std::string& here, const std::vector<std::string>& world) {
  const Outcome there = lesson.run(world);
  if (there.exit_code == 2 && !there.timed_out) {
    expect_refusal(lesson, world, there);
    std::cout << "refused: " << there.err;
    return;
  }
  if (!expect_code(lesson.said(world), there, 0)) return;
  expect_same(lesson.said(world), "processes", without_world(here), "threads", without_world(there.out));
}

void check_worlds(const Lesson& lesson) {
  const Outcome processes = lesson.run({});
  if (!expect_code("", processes, 0)) return;
  expect_same_in(lesson, processes.out, {"--world", "threads", "--transport", "gloo"});
}

// The one check that makes sense under ThreadSanitizer: only ranks that are threads, and no Gloo.
void check_threads(const Lesson& lesson) {
  const std::vector<std::string> world = {"--world", "threads", "--transport", "memory"};
  if (!lesson.arguments.empty()) return expect_works_or_is_refused(lesson, world);
  std::ifstream file(lesson.expected, std::ios::binary);
  std::ostringstream expected;
  expected << file.rdbuf();
  if (!file)
    return fail(lesson.expected + " does not exist; the test " + lesson.name + ".expected says how to write it");
  expect_same_in(lesson, expected.str(), world);
}

// A lesson that says something else where ranks have GPUs has a NAME.nccl.expected. Everything that is checked or
// counted has to be the same nevertheless.
void check_own_nccl(const Lesson& lesson, const std::string& file) {
  const Outcome here = lesson.run({}), there = lesson.run({"--transport", "nccl"});
  if (!expect_code("", here, 0) || !expect_code("--transport nccl: ", there, 0)) return;
  expect_readable("--transport nccl: ", there.out);
  const std::size_t lines = lines_of(there.out).size();
  if (lines > kMostLines) fail("--transport nccl: it prints " + std::to_string(lines) + " lines; the limit is 80");
  const auto checked = [](const std::string& text) {
    std::string kept;
    for (const std::string& line : lines_of(without_world(text)))
      if (line.find("✔") != std::string::npos) kept += line + "\n";
    return kept;
  };
  if (checked(here.out).empty()) fail("it checks nothing");
  expect_same("--transport nccl: ", "over Gloo", checked(here.out), "over NCCL", checked(there.out));
  if (failures > 0 || blessed(file, there.out)) return;
  const std::string expected = read_or_fail(file);
  if (failures == 0 && !expect_same("", "expected", expected, "printed", there.out)) std::cout << kBlessIfRight;
}

// Over NCCL, for which the environment names stand-ins of two libraries: with everything staged through their devices,
// the lesson prints the same. With chains, Newton–Schulz runs there too.
void check_nccl(const Lesson& lesson) {
  const std::filesystem::path own = std::filesystem::path(lesson.expected).replace_extension(".nccl.expected");
  if (std::filesystem::exists(own)) return check_own_nccl(lesson, own.string());
  for (std::vector<std::string> options : {std::vector<std::string>{}, {"--products", "chain"}}) {
    const Outcome here = lesson.run(options);
    if (here.exit_code == 2 && !options.empty()) continue;  // it multiplies nothing, which another check looks at
    if (!expect_code("", here, 0)) return;
    options.insert(options.end(), {"--transport", "nccl"});
    const Outcome there = lesson.run(options);
    if (!expect_code(lesson.said(options), there, 0)) return;
    if (there.out.find(" over NCCL · ") == std::string::npos) fail("--transport nccl: the first line does not say so");
    expect_same(lesson.said(options), "over Gloo", without_world(here.out), "over NCCL", without_world(there.out));
  }
}

void check_options(const Lesson& lesson) {
  const std::vector<std::vector<std::string>> refused = {{"--no-such-option"},
                                                         {"--dp", "0"},
                                                         {"--tp", "-1"},
                                                         {"--pp", "0"},
                                                         {"--dp", "two"},
                                                         {"--tp", "2.5"},
                                                         {"--dp"},
                                                         {"--dp", "64", "--tp", "64"},
                                                         {"--tp", "1000000"},
                                                         {"--threads", "0"},
                                                         {"--threads", "-2"},
                                                         {"--seed", "-1"},
                                                         {"--seed", "x"},
                                                         {"--precision", "fp8"},
                                                         {"--verbose", "3"},
                                                         {"--verbose", "-1"},
                                                         {"--bug", "no_such_bug"},
                                                         {"--bug", ""},
                                                         {"--timeout", "0"},
                                                         {"--timeout", "soon"},
                                                         {"--world", "galaxy"},
                                                         {"--transport", "pigeon"},
                                                         {"--transport", "memory"},
                                                         {"--fault", "banana"},
                                                         {"--fault", "kill:99"},
                                                         {"--fault", "kill:0:x"},
                                                         {"no_such_word"}};
  for (const auto& options : refused) expect_refusal(lesson, options, lesson.run(options));

  const Outcome help = lesson.run({"--help"});
  if (expect_code("--help: ", help, 0)) {
    for (const char* option :
         {"--dp", "--tp", "--pp", "--threads", "--seed", "--precision", "--verbose", "--bug", "--list-bugs",
          "--timeout", "--world", "--transport", "--fault", "--record", "--svg", "--help"})
      if (help.out.find(option) == std::string::npos) fail(std::string("--help: does not explain ") + option);
    for (const std::string& line : lines_of(help.out))
      if (width_of(line) > kColumns) fail("--help: a line is wider than 100 columns:\n    " + line);
  }

  const Outcome plain = lesson.run({});
  const Outcome brief = lesson.run({"--verbose", "0"});
  if (expect_code("--verbose 0: ", brief, 0)) {
    expect_readable("--verbose 0: ", brief.out);
    if (brief.out.find(lesson.name + ": OK\n") == std::string::npos) fail("--verbose 0: the last line does not say OK");
    if (brief.out.size() >= plain.out.size()) fail("--verbose 0: prints no less than without it");
  }
  const Outcome full = lesson.run({"--verbose", "2"});
  if (expect_code("--verbose 2: ", full, 0)) expect_readable("--verbose 2: ", full.out);

  // The number of threads never changes a bit, so it changes no line either.
  const Outcome threaded = lesson.run({"--threads", "2"});
  if (expect_code("--threads 2: ", threaded, 0))
    expect_same("--threads 2: ", "default", plain.out, "--threads 2", threaded.out);

  const std::vector<std::vector<std::string>> works_or_is_refused = {
      {"--precision", "bf16"}, {"--seed", "7"},
      {"--dp", "2"},           {"--tp", "2"},
      {"--pp", "2"},           {"--dp", "3"},
      {"--tp", "3"},           {"--dp", "1", "--tp", "1"},
      {"--transport", "nccl"}, {"--dp", "2", "--tp", "2", "--pp", "2", "--verbose", "2"}};
  for (const auto& options : works_or_is_refused) expect_works_or_is_refused(lesson, options);
}

int usage(const std::string& wrong) {
  std::cerr << "check_lesson: " << wrong
            << "; it takes anatomy, expected, bugs, threads, worlds, nccl or options, a program and its "
               ".expected\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return usage("arguments are missing");
  const std::string what = argv[1];
  Lesson lesson{argv[2], argv[2], argv[3], {argv + 4, argv + argc}};
  lesson.name.erase(0, lesson.name.rfind('/') + 1);
  setenv("NO_COLOR", "1", 1);
  if (what == "anatomy")
    check_anatomy(lesson);
  else if (what == "expected")
    check_expected(lesson);
  else if (what == "bugs")
    check_bugs(lesson);
  else if (what == "threads")
    check_threads(lesson);
  else if (what == "worlds")
    check_worlds(lesson);
  else if (what == "nccl")
    check_nccl(lesson);
  else if (what == "options")
    check_options(lesson);
  else
    return usage("\"" + what + "\" is not a check");
  return failures == 0 ? 0 : 1;
}
