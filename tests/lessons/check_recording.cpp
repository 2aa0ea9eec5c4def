// Runs a lesson with --record and holds what it writes to what it prints. ctest calls it once for each
// lesson:
//
//     check_recording PROGRAM [ARGUMENT...]
//
// The pages and their player believe the recording, so it has to say what the run said, line by line, byte by byte.

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sim/classroom/step_lines.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using muonwalk::testing::end_text;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using nlohmann::json;

namespace {

constexpr double kLimitSeconds = 240;
int failures = 0;

void fail(const std::string& what) {
  std::cout << "FAILED  " << what << "\n";
  ++failures;
}
void expect(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

struct Lesson {
  std::string program;
  std::string name;
  std::vector<std::string> arguments;

  Outcome run(const std::vector<std::string>& more, const std::function<void()>& prepare = nullptr) const {
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), more.begin(), more.end());
    return muonwalk::testing::run_program(command, kLimitSeconds, prepare);
  }
  // All that the table of costs is about is recorded.
  bool all_recorded() const { return is_one_of({"13", "22"}); }
  // They train in several ways, of which the first steps of the first one are recorded.
  bool partly_recorded() const { return is_one_of({"14", "16", "20"}); }
  // These have quiet steps, of which only the first are recorded, or layouts, of which only the first is.
  bool quiet() const { return is_one_of({"09", "11", "12", "13", "14", "16", "18", "20", "22", "23"}); }
  bool is_one_of(const std::set<std::string>& numbers) const { return numbers.count(name.substr(7, 2)) > 0; }
};

json parsed(const std::string& path) {
  try {
    return json::parse(read_text(path));
  } catch (const json::exception& error) {
    fail(path + " is not JSON: " + error.what());
    return json::object();
  }
}

// --- the shape
// --------------------------------------------------------------------------------------------------------

using Keys = std::map<std::string, std::string>;  // and of which type each is; "a|b" for either

bool has_type(const json& value, const std::string& types) {
  std::size_t at = 0;
  for (std::size_t bar = 0; bar != std::string::npos; at = bar + 1) {
    bar = types.find('|', at);
    const std::string type = types.substr(at, bar == std::string::npos ? bar : bar - at);
    if (type == "whole" ? value.is_number_integer() : type == value.type_name()) return true;
  }
  return false;
}

void expect_keys(const std::string& what, const json& object, const Keys& keys) {
  if (!object.is_object()) return fail(what + " is not an object");
  for (const auto& [key, type] : keys)
    if (object.count(key) == 0)
      fail(what + " has no " + key);
    else if (!has_type(object.at(key), type))
      fail(what + ": " + key + " is a " + object.at(key).type_name() + " and not a " + type);
  for (const auto& item : object.items())
    if (keys.count(item.key()) == 0) fail(what + " has a key that the format does not know: " + item.key());
}

void expect_block(const std::string& what, const json& block, std::size_t tensors) {
  Keys keys = {{"name", "string"},      {"tensor", "whole"}, {"rows", "whole"},        {"cols", "whole"},
               {"flat", "boolean"},     {"bytes", "whole"},  {"unit", "string"},       {"begin", "whole"},
               {"end", "whole"},        {"of", "whole"},     {"values", "array|null"}, {"digest", "string|null"},
               {"note", "string|null"}, {"from", "array"}};
  if (block.count("spans") > 0) keys["spans"] = "array";
  expect_keys(what, block, keys);
  if (failures > 0) return;
  const long long size = block["rows"].get<long long>() * block["cols"].get<long long>();
  expect(block["tensor"] >= 0 && block["tensor"] < tensors, what + " names a tensor that is not in the list");
  expect(block["begin"] >= 0 && block["begin"] <= block["end"] && block["end"] <= block["of"],
         what + " is not part of its whole");
  const std::set<std::string> units = {"", "rows", "columns", "elements"};
  expect(units.count(block["unit"]) == 1, what + " has an unknown unit");
  const long long extent = block["end"].get<long long>() - block["begin"].get<long long>();
  if (block["unit"] == "rows") expect(extent == block["rows"], what + " has another number of rows than its range");
  if (block["unit"] == "columns")
    expect(extent == block["cols"], what + " has another number of columns than its range");
  if (block["unit"] == "elements") expect(extent == size, what + " has another number of elements than its range");
  if (block["values"].is_array()) {
    expect(static_cast<long long>(block["values"].size()) == size, what + " has not as many values as elements");
    expect(size <= 1024 && block["digest"].is_string(), what + " has values, but too many of them or no digest");
  }
  if (block["digest"].is_string())
    expect(block["digest"].get<std::string>().size() == 16, what + " has no digest of 16 digits");
}

// The parameters of a buffer lie in it one after the other, and each has a colour. A tensor without a colour is seen as
// nothing but its spans.
void expect_spans(const std::string& what, const json& block, const json& tensors) {
  if (block.count("spans") == 0)
    return expect(tensors[block["tensor"].get<std::size_t>()]["colour"].is_number(), what + " has no colour");
  expect(block["flat"] == true, what + " has spans, but is not flat");
  long long at = 0;
  for (const json& span : block["spans"]) {
    if (!span.is_array() || span.size() != 4) return fail(what + " has a span that is not of four numbers");
    const std::size_t tensor = span[0];
    expect(tensor < tensors.size() && tensors[tensor]["colour"].is_number(), what + " has a span without a colour");
    expect(span[1] >= at && span[2] > span[1] && span[2] <= block["cols"], what + " has a span that is not in order");
    expect(span[3] >= 0, what + " has a span that begins before its parameter");
    at = span[2];
  }
}

void expect_step(const std::string& what, const json& step, const json& recording) {
  expect_keys(what, step,
              {{"number", "whole"},
               {"title", "string"},
               {"lines", "array"},
               {"holds", "array"},
               {"says", "array"},
               {"moves", "array"}});
  if (failures > 0) return;
  const std::size_t ranks = recording["ranks"].size(), tensors = recording["tensors"].size();
  expect(step["holds"].size() == ranks && step["says"].size() == ranks, what + " has not a list for every rank");
  for (const json& of_rank : step["holds"])
    for (const json& block : of_rank) {
      const std::string name = what + ", " + block.value("name", "a block");
      expect_block(name, block, tensors);
      if (failures == 0) expect_spans(name, block, recording["tensors"]);
    }
  for (const json& move : step["moves"]) {
    expect_keys(what + ", a move", move,
                {{"from", "whole"},
                 {"to", "whole"},
                 {"group", "string"},
                 {"collective", "string"},
                 {"type", "string"},
                 {"elements", "whole"},
                 {"bytes", "whole"},
                 {"call", "whole"}});
    if (failures > 0) return;
    const int from = move["from"], to = move["to"], call = move["call"];
    expect(from != to && from >= 0 && to >= 0 && std::max(from, to) < static_cast<int>(ranks) && call >= 0,
           what + " has a move between ranks that do not exist");
    // A message stays within its group: the two ranks differ in that coordinate and in no other, unless it is the
    // world. First and last stage differ in pp.
    const json group = move["group"] == "first and last stage" ? json("pp") : move["group"];
    for (const char* kind : {"dp", "tp", "pp"})
      expect(group == "world" || (recording["ranks"][from][kind] == recording["ranks"][to][kind]) == (group != kind),
             what + fmt::format(" has a move over {} between ranks {} and {}, which are in no such group",
                                move["group"].get<std::string>(), from, to));
    const long long size = move["type"] == "float32" ? 4 : move["type"] == "bfloat16" ? 2 : 1;
    expect(move["bytes"] == move["elements"].get<long long>() * size,
           what + " has a move whose bytes are not those of its elements");
  }
}

void expect_shape(const Lesson& lesson, const json& recording) {
  expect_keys("the recording", recording,
              {{"format", "string"},
               {"version", "whole"},
               {"lesson", "object"},
               {"heading", "string"},
               {"grid", "object"},
               {"precision", "string"},
               {"ranks", "array"},
               {"tensors", "array"},
               {"palette", "object"},
               {"steps", "array"},
               {"before", "array"},
               {"after", "array"},
               {"ok", "boolean"}});
  if (failures > 0) return;
  expect(recording["format"] == "muonwalk-recording" && recording["version"] == 1,
         "the format or its version is wrong");
  expect_keys("lesson", recording["lesson"],
              {{"name", "string"}, {"number", "string"}, {"title", "string"}, {"question", "string"}});
  expect(recording["lesson"]["name"] == lesson.name, "the recording names another lesson");
  expect(recording["lesson"]["number"] == lesson.name.substr(7, 2), "the recording has another lesson's number");
  expect_keys("grid", recording["grid"], {{"dp", "whole"}, {"tp", "whole"}, {"pp", "whole"}});
  int number = 0;
  for (const json& rank : recording["ranks"]) {
    expect_keys("a rank", rank,
                {{"rank", "whole"}, {"label", "string"}, {"dp", "whole"}, {"tp", "whole"}, {"pp", "whole"}});
    expect(rank["rank"] == number++, "the ranks are not in order");
  }
  const int dp = recording["grid"]["dp"], tp = recording["grid"]["tp"], pp = recording["grid"]["pp"];
  expect(number == dp * tp * pp, "there are not as many ranks as the grid has");
  expect_keys("palette", recording["palette"], {{"tensors", "array"}, {"ranks", "array"}});
  for (const json& tensor : recording["tensors"]) {
    expect_keys("a tensor", tensor, {{"name", "string"}, {"colour", "whole|null"}});
    expect(tensor["colour"].is_null() ||
               (tensor["colour"] >= 0 && tensor["colour"] < recording["palette"]["tensors"].size()),
           "a tensor's colour is not in the palette");
  }
  expect(!recording["steps"].empty(), "there is no step");
  int steps = 0;
  for (const json& step : recording["steps"]) {
    expect_step(fmt::format("step {}", ++steps), step, recording);
    expect(step["number"] == steps, "the steps are not numbered in order");
  }
}

// --- the same as was printed
// ------------------------------------------------------------------------------------------

std::vector<std::string> recorded_lines(const json& recording) {
  std::vector<std::string> lines = recording["before"];
  for (const json& step : recording["steps"])
    for (const json& line : step["lines"]) lines.push_back(line);
  for (const json& line : recording["after"]) lines.push_back(line);
  return lines;
}

void expect_lines(const Lesson& lesson, const json& recording, const std::string& out) {
  std::vector<std::string> printed = lines_of(out);
  const std::vector<std::string> recorded = recorded_lines(recording);
  expect(!printed.empty() && recording["heading"] == printed.front(),
         "the heading is not the first line that is printed");
  expect(lesson.quiet() || recorded.size() == printed.size(),
         fmt::format("the recording has {} lines, but {} are printed", recorded.size(), printed.size()));
  for (std::size_t i = 0; i < recorded.size(); ++i)
    if (i >= printed.size() || recorded[i] != printed[i])
      return fail(fmt::format("line {} of the recording is not what is printed there:\n    {}", i + 1, recorded[i]));
  for (const json& step : recording["steps"])
    if (!lesson.quiet())
      expect(!step["lines"].empty() && step["lines"][0] == fmt::format("step {} · {}", step["number"].get<int>(),
                                                                       step["title"].get<std::string>()),
             "the lines of a step do not begin with its title");
}

// What every rank sent and received in a step, as the step prints it, made anew from the moves.
void expect_moves_as_printed(const json& recording) {
  for (const json& step : recording["steps"]) {
    std::vector<std::vector<muonwalk::sim::Report>> reports(recording["ranks"].size());
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      long long sent = 0, received = 0, messages = 0;
      for (const json& move : step["moves"]) {
        if (move["from"] == rank) sent += move["bytes"].get<long long>(), ++messages;
        if (move["to"] == rank) received += move["bytes"].get<long long>();
      }
      reports[rank].emplace_back(muonwalk::sim::Moved{sent, received, messages});
    }
    std::vector<std::string> printed;
    for (const json& line : step["lines"])
      if (line.get<std::string>().find(" sent ") != std::string::npos &&
          line.get<std::string>().find(" and received ") != std::string::npos)
        printed.push_back(line);
    if (!step["lines"].empty() && printed != muonwalk::sim::moved_lines(reports))
      fail(fmt::format("step {}: the moves add up to\n{}\n    but it prints\n{}", step["number"].get<int>(),
                       fmt::join(muonwalk::sim::moved_lines(reports), "\n"), fmt::join(printed, "\n")));
  }
}

// "every rank", "rank 2", "ranks 0–3", "ranks 0, 2, 3".
std::vector<int> ranks_in(const std::string& text, int all) {
  std::vector<int> ranks;
  const std::regex number("[0-9]+");
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
    ranks.push_back(std::stoi(at->str()));
  if (text.find("every rank") != std::string::npos) {
    ranks.clear();
    for (int rank = 0; rank < all; ++rank) ranks.push_back(rank);
  } else if (text.find("–") != std::string::npos && ranks.size() == 2) {
    const int last = ranks[1];
    for (int rank = ranks[0] + 1; rank < last; ++rank) ranks.insert(ranks.end() - 1, rank);
  }
  return ranks;
}

// Every row of the cost table, counted again from the moves.
void expect_cost_table(const Lesson& lesson, const json& recording) {
  if (lesson.partly_recorded()) return;  // the table is of all ways
  const std::regex row(
      R"(^ +(\w+) over ([\w ]+), (\w+)(?: × \d+)? +((?:every rank|ranks? [0-9–, ]+?|[0-9]+ ranks: [0-9]+…)) +[0-9,]+ B +([0-9,]+) B +([0-9,]+) +✔$)");
  const auto without_commas = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    return std::stoll(text);
  };
  long long optimizer_steps = 0;
  std::vector<std::string> lines = recorded_lines(recording);
  // A long name has a line to itself, and its numbers follow on the next.
  for (std::size_t i = 0; i + 1 < lines.size(); ++i)
    if (std::regex_match(lines[i], std::regex(R"(^ +\w+ over [\w ]+, \w+(?: × \d+)?$)")))
      lines[i + 1] = lines[i] + lines[i + 1];
  // "weights after 2 steps:" of lesson 18, "weights after steps 1–3:" and "weights after step 1:" of lessons 09,
  // 11, 23.
  const std::regex steps_taken("check .*weights after (?:([0-9]+) steps|steps? (?:1–)?([0-9]+)):.*");
  // "torch, 10 steps:" of lesson 12, which takes equal steps with one recipe after the other.
  const std::regex more_steps("check +\\w+, ([0-9]+) steps:.*");
  for (const std::string& line : lines) {
    std::smatch steps;
    if (std::regex_match(line, steps, steps_taken)) optimizer_steps = std::stoll(steps[1].str() + steps[2].str());
    if (std::regex_match(line, steps, more_steps)) optimizer_steps += std::stoll(steps[1].str());
  }
  // Of equal steps, which are quiet, the first is recorded; it stands for all of them.
  const long long times = lesson.quiet() && !lesson.all_recorded() ? optimizer_steps : 1;
  const auto stands_for = [times](const json& step) { return step["lines"].empty() ? times : 1; };

  // "4 ranks: 0…" has no room for all of them: they are those that no other row of this kind names.
  const auto kind_of = [](const std::smatch& found) { return found[1].str() + found[2].str() + found[3].str(); };
  const int all = static_cast<int>(recording["ranks"].size());
  std::map<std::string, std::set<int>> not_named;
  for (const std::string& line : lines) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    std::set<int>& rest = not_named[kind_of(found)];
    if (rest.empty())
      for (int rank = 0; rank < all; ++rank) rest.insert(rank);
    if (found[4].str().find("…") == std::string::npos)
      for (const int rank : ranks_in(found[4], all)) rest.erase(rank);
  }
  const auto ranks_of = [&](const std::smatch& found) {
    if (found[4].str().find("…") == std::string::npos) return ranks_in(found[4], all);
    const std::set<int>& rest = not_named[kind_of(found)];
    expect(std::stoul(found[4]) == rest.size(), "the cost table names other ranks than these: " + found[4].str());
    return std::vector<int>(rest.begin(), rest.end());
  };

  int rows = 0;
  long long in_rows = 0, in_moves = 0;
  for (const std::string& line : lines) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    ++rows;
    for (const int rank : ranks_of(found)) {
      long long bytes = 0, messages = 0;
      for (const json& step : recording["steps"])
        for (const json& move : step["moves"])
          if (move["from"] == rank && move["collective"] == found[1].str() && move["group"] == found[2].str() &&
              move["type"] == found[3].str())
            bytes += move["bytes"].get<long long>() * stands_for(step), messages += stands_for(step);
      in_rows += messages;
      if (bytes != without_commas(found[5]) || messages != without_commas(found[6]))
        fail(fmt::format("the moves of rank {} add up to {} B in {} messages, but the table says\n    {}", rank, bytes,
                         messages, line));
    }
  }
  for (const json& step : recording["steps"])
    in_moves += static_cast<long long>(step["moves"].size()) * stands_for(step);
  expect(in_rows == in_moves, fmt::format("the cost table has {} messages, but the recording {}", in_rows, in_moves));
  expect(rows > 0 || in_moves == 0, "no row of the cost table could be read");
}

// With --verbose 2 every digest that is printed is that of a block, in the same order.
void expect_digests(const json& recording) {
  for (const json& step : recording["steps"]) {
    std::vector<std::string> printed, recorded;
    for (const json& line : step["lines"]) {
      const std::string text = line;
      const std::size_t at = text.find("digest ");
      if (at != std::string::npos && text.find_first_not_of(' ') == at) printed.push_back(text.substr(at + 7));
    }
    for (const json& of_rank : step["holds"])
      for (const json& block : of_rank)
        if (block["digest"].is_string()) recorded.push_back(block["digest"]);
    if (!step["lines"].empty() && printed != recorded)
      fail(fmt::format("step {}: the digests that are printed are not those of the blocks", step["number"].get<int>()));
  }
}

// Without what may differ between worlds: the heading, and what the kernel counted.
json without_world(json recording) {
  recording.erase("heading");
  for (const char* where : {"before", "after"}) {
    json kept = json::array();
    for (const json& line : recording[where])
      if (line.get<std::string>().rfind("Lesson ", 0) != 0 && line.get<std::string>().rfind("        kernel", 0) != 0)
        kept.push_back(line);
    recording[where] = kept;
  }
  return recording;
}

// --- what goes wrong
// --------------------------------------------------------------------------------------------------

void expect_refused(const Lesson& lesson, const std::vector<std::string>& options) {
  const Outcome outcome = lesson.run(options);
  const std::string what = fmt::format("{}: ", fmt::join(options, " "));
  if (outcome.exit_code != 2) return fail(what + "ended " + end_text(outcome) + " instead of with code 2");
  expect(outcome.out.empty(), what + "printed something, so it was not refused before the run");
  expect(lines_of(outcome.err).size() == 1 && outcome.err.find(options.back()) != std::string::npos,
         what + "is not refused in one sentence that names the path:\n" + outcome.err);
}

// A disk that is full at the end: exit 3, a sentence, and no half of a file.
void expect_whole_or_not_at_all(const Lesson& lesson, const TemporaryFolder& folder) {
  const auto small_disk = [] {
    const rlimit limit = {3000, 3000};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
  };
  const std::vector<std::string> before = folder.names();
  const Outcome outcome = lesson.run({"--verbose", "0", "--record", folder.file("late.json")}, small_disk);
  expect(outcome.exit_code == 3,
         "a write that fails at the end ends " + end_text(outcome) + " instead of with code 3: " + outcome.err);
  expect(outcome.err.find("late.json") != std::string::npos,
         "a write that fails at the end is not named:\n" + outcome.err);
  expect(folder.names() == before, "a write that fails at the end leaves something in the folder");

  write_text(folder.file("old.json"), "old");
  const Outcome broken = lesson.run({"--record", folder.file("old.json"), "--fault", "throw:0:1"});
  expect(broken.exit_code == 3, "--fault throw:0:1 ended " + end_text(broken));
  expect(read_text(folder.file("old.json")) == "old", "a run that broke wrote its recording");
}

void check(const Lesson& lesson) {
  const TemporaryFolder folder;
  const Outcome plain = lesson.run({});
  const Outcome outcome = lesson.run({"--record", folder.file("run.json")});
  if (plain.exit_code != 0 || outcome.exit_code != 0)
    return fail("with --record it ended " + end_text(outcome) + ", without it " + end_text(plain) + ": " + outcome.err);
  expect(plain.out == outcome.out, "with --record it prints something other than without");
  const json recording = parsed(folder.file("run.json"));
  expect_shape(lesson, recording);
  if (failures > 0) return;
  expect(recording["ok"] == true, "the recording of a good run is not ok");
  expect_lines(lesson, recording, outcome.out);
  expect_moves_as_printed(recording);
  expect_cost_table(lesson, recording);

  // The same again, byte by byte; with values printed, and in threads.
  lesson.run({"--record", folder.file("again.json")});
  expect(read_text(folder.file("run.json")) == read_text(folder.file("again.json")),
         "two runs write different recordings");
  lesson.run({"--record", folder.file("values.json"), "--verbose", "2"});
  const json values = parsed(folder.file("values.json"));
  expect_digests(values);
  for (std::size_t step = 0; step < recording["steps"].size(); ++step)
    for (const char* key : {"holds", "says", "moves"})
      expect(recording["steps"][step][key] == values["steps"][step][key],
             fmt::format("--verbose 2 changes what a rank {}", key));
  // With nothing printed but the result, all the rest is there.
  lesson.run({"--record", folder.file("brief.json"), "--verbose", "0"});
  json brief = parsed(folder.file("brief.json")), no_lines = recording;
  for (json* each : {&brief, &no_lines}) {
    (*each)["before"] = (*each)["after"] = json::array();
    for (json& step : (*each)["steps"]) step["lines"] = json::array();
  }
  expect(brief == no_lines, "--verbose 0 records something other than lines that are not printed");

  const Outcome threads =
      lesson.run({"--record", folder.file("threads.json"), "--world", "threads", "--transport", "memory"});
  if (threads.exit_code == 2)
    std::cout << "refused: " << threads.err;
  else
    expect(without_world(recording) == without_world(parsed(folder.file("threads.json"))),
           "ranks as threads are recorded differently");

  // A planted bug is recorded as the failure that it is.
  const Outcome bugs = lesson.run({"--list-bugs"});
  const std::string bug = bugs.out.substr(0, bugs.out.find(' '));
  lesson.run({"--bug", bug, "--record", folder.file("bug.json")});
  if (std::filesystem::exists(folder.file("bug.json")))
    expect(parsed(folder.file("bug.json"))["ok"] == false, "--bug " + bug + " is recorded as ok");

  expect_refused(lesson, {"--record", folder.file("no_such_folder/run.json")});
  expect_refused(lesson, {"--record", folder.path()});
  // A pipe, and no device: were the check lost, the file would take its place.
  expect(mkfifo(folder.file("pipe").c_str(), 0600) == 0, "no pipe could be made");
  expect_refused(lesson, {"--record", folder.file("pipe")});
  expect_refused(lesson, {"--record", ""});
  expect_whole_or_not_at_all(lesson, folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "check_recording: the program of a lesson is missing; it takes PROGRAM [ARGUMENT...]\n";
    return 2;
  }
  Lesson lesson{argv[1], argv[1], {argv + 2, argv + argc}};
  lesson.name.erase(0, lesson.name.rfind('/') + 1);
  setenv("NO_COLOR", "1", 1);
  check(lesson);
  return failures == 0 ? 0 : 1;
}
