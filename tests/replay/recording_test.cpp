// The recording of a run, called from code as a notebook does, and its JSON.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/classroom/recording_builder.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/in_memory.hpp"
#include "tests/ranks/printed.hpp"
#include "tests/ranks/reported.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::by_rank;
using muonwalk::testing::printed;
using muonwalk::testing::told;
using nlohmann::json;

namespace {

struct Local {
  Flat slice;
  Flat sum;
};

LessonInfo info() {
  LessonInfo info;
  info.name = "lesson_77_recording";
  info.title = "A recording";
  info.question = "is it kept?";
  return info;
}

Options on_fibers(const Grid& grid, bool recorded) {
  Options options = muonwalk::testing::in_memory(grid);
  options.set_up.recorded = recorded;
  return options;
}

void start(Rank& rank, Local& local) {
  local.slice = Flat(2, 0.1f * static_cast<float>(rank.rank() + 1));
  rank.show("w", local.slice).elements({2 * rank.place.dp, 2 * rank.place.dp + 2}, 2 * rank.grid.dp());
}
void gather(Rank& rank, Local& local) {
  local.sum = rank.dp().all_gather(local.slice);
  rank.show("w, gathered", local.sum).whole();
}

Shown shown(const std::string& name, const std::vector<float>& values) {
  Shown shown(name, {1, static_cast<Index>(values.size())});
  shown.block.flat = true;
  shown.values = values;
  return shown;
}

PhaseEnded phase(const std::string& name) { return {name, 0.5}; }

json recorded_json(const RecordingBuilder& recorder) { return json::parse(recording_json(recorder.recording())); }

}  // namespace

TEST_CASE("Lesson: a recorded run prints the same, moves the same, and ends with the same bits") {
  const auto run = [](bool recorded, std::vector<Flat>& held, std::vector<Index>& sent) {
    return printed([&] {
      Lesson<Local> lesson(info(), on_fibers(Grid().dp(3), recorded));
      lesson.step("start", start);
      lesson.step("gather", gather);
      lesson.quiet_step("count", [&](Rank& rank, Local&) { sent[rank.rank()] = rank.ledger().total().bytes_sent; });
      for (int rank = 0; rank < 3; ++rank) held.push_back(lesson.local(rank).sum);
    });
  };
  std::vector<Flat> plain_held, recorded_held;
  std::vector<Index> plain_sent(3), recorded_sent(3);
  const std::string plain = run(false, plain_held, plain_sent);
  const std::string recorded = run(true, recorded_held, recorded_sent);
  CHECK(plain == recorded);
  CHECK(plain_held == recorded_held);
  CHECK(plain_sent == recorded_sent);
  CHECK(plain_sent == std::vector<Index>{16, 16, 16});
}

TEST_CASE("Lesson: quiet steps tell what ranks moved and what rank 0 held, phase by phase, once, and where asked") {
  const auto work = [](Rank& rank, Local& local) {
    rank.phase("begin");
    start(rank, local);
    rank.phase("gather");
    gather(rank, local);
  };
  printed([&] {
    Lesson<Local> silent(info(), on_fibers(Grid().dp(2), false));
    silent.quiet_step("work", work);
    CHECK(silent.take_phases().empty());

    Lesson<Local> lesson(info(), on_fibers(Grid().dp(2), true));
    lesson.step("prints by itself", start);
    CHECK(lesson.take_phases().empty());
    lesson.quiet_step("work", work);
    CHECK(lesson.take_phases() ==
          "work: begin\n"
          "  rank 0  dp 0   w[elements 0–1]   2   8 B   ████····\n"
          "work: gather\n"
          "  every rank sent 8 B in 1 message and received 8 B\n"
          "  rank 0  dp 0   w, gathered   4   16 B   ████████\n");
    CHECK(lesson.take_phases().empty());
  });
}

TEST_CASE(
    "Lesson: a message in the recording tells which of its sender's calls in that step it belongs to, counted from 0") {
  const TemporaryFolder folder;
  Options options = on_fibers(Grid().dp(2), false);
  options.record_file = folder.file("run.json");
  printed([&] {
    Lesson<Local> lesson(info(), options);
    lesson.step("start", start);
    for (int step = 0; step < 2; ++step)
      lesson.step("gather twice", [](Rank& rank, Local& local) {
        gather(rank, local);
        gather(rank, local);
      });
    lesson.answer("it is.");
  });
  const json recorded = json::parse(read_text(options.record_file));
  for (const std::size_t step : {1, 2}) {
    std::map<int, std::vector<int>> calls;
    for (const json& move : recorded["steps"][step]["moves"]) calls[move["from"]].push_back(move["call"]);
    CHECK(calls == std::map<int, std::vector<int>>{{0, {0, 1}}, {1, {0, 1}}});
  }
}

TEST_CASE("Rank::recorded: on while a step is recorded, off in hand-overs, later quiet steps and unrecorded runs") {
  printed([&] {
    const auto run = [](bool recorded) {
      std::string seen;
      const auto look = [&](Rank& rank, Local&) { seen += rank.recorded() ? "r" : "-"; };
      Lesson<Local> lesson(info(), on_fibers(Grid(), recorded));
      lesson.step("one", look);
      for (int quiet = 0; quiet < 4; ++quiet) lesson.quiet_step("quiet", look);
      lesson.step("two", look);
      return seen;
    };
    CHECK(run(true) == "rrr--r");
    CHECK(run(false) == "------");
  });
}

TEST_CASE(
    "RecordingBuilder: what the recording says of the lesson, its grid, its ranks and its precision is the run's") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Options options;
    options.grid = Grid().dp(2).tp(3);
    options.precision = precision;
    const RecordingBuilder recorder(info(), options);
    const json about = recorded_json(recorder);
    CHECK(
        about["lesson"] ==
        json{{"name", "lesson_77_recording"}, {"number", "77"}, {"title", "A recording"}, {"question", "is it kept?"}});
    CHECK(about["precision"] == (precision == Precision::fp32 ? "fp32" : "bf16"));
    CHECK(about["grid"] == json{{"dp", 2}, {"tp", 3}, {"pp", 1}});
    REQUIRE(about["ranks"].size() == 6);
    for (int rank = 0; rank < 6; ++rank) {
      const json expected = {{"rank", rank},
                             {"label", fmt::format("rank {}  dp {} tp {}", rank, rank / 3, rank % 3)},
                             {"dp", rank / 3},
                             {"tp", rank % 3},
                             {"pp", 0}};
      CHECK(about["ranks"][static_cast<std::size_t>(rank)] == expected);
    }
  }
}

TEST_CASE("RecordingBuilder: values of up to 1024 elements are kept, of more their digest, of none nothing") {
  Options options;
  RecordingBuilder recorder(info(), options);
  recorder.step("show", by_rank(told(shown("few", std::vector<float>(1024, 1.5f)),
                                     shown("many", std::vector<float>(1025, 1.5f)), shown("only a shape", {}))));
  const json holds = recorded_json(recorder)["steps"][0]["holds"][0];
  CHECK(holds[0]["values"].size() == 1024);
  CHECK(holds[0]["digest"].get<std::string>().size() == 16);
  CHECK(holds[1]["values"].is_null());
  CHECK(holds[1]["digest"].get<std::string>().size() == 16);
  CHECK(holds[0]["digest"] != holds[1]["digest"]);
  CHECK(holds[2]["values"].is_null());
  CHECK(holds[2]["digest"].is_null());
}

TEST_CASE(
    "recording_json: a float reads back as the same bits, in no more digits than it takes; NaN and infinities are "
    "words") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.1f, -0.0f, 1.0f / 3, 16777216.0f, 1e-45f, 3.4028235e38f, 0x1.000002p0f, 3.0f};
  std::vector<float> all = values;
  all.insert(all.end(), {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()});
  RecordingBuilder recorder(info(), Options());
  recorder.step("show", by_rank(told(shown("w", all))));
  const std::string text = recording_json(recorder.recording());
  const json kept = json::parse(text)["steps"][0]["holds"][0][0]["values"];
  REQUIRE(kept.size() == all.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float read = static_cast<float>(kept[i].get<double>());
    CHECK(std::memcmp(&read, &values[i], sizeof read) == 0);
  }
  CHECK(kept[8] == "inf");
  CHECK(kept[9] == "-inf");
  CHECK(kept[10] == "nan");
  CHECK(text.find("[0.1,-0.0,0.33333334,") != std::string::npos);
  CHECK(text.back() == '\n');
}

TEST_CASE(
    "RecordingBuilder: a line belongs to the step that it follows, the last ones to what comes after; colours are "
    "dropped") {
  RecordingBuilder recorder(info(), Options());
  recorder.heading("\033[1mheading\033[0m");
  recorder.line("\033[1mheading\033[0m");
  recorder.line("two\nlines");
  recorder.step("first", by_rank(told()));
  recorder.line("\033[1mstep 1\033[0m");
  recorder.step_printed();
  recorder.line("between");
  recorder.step("second", by_rank(told()));
  recorder.line("step 2");
  recorder.step_printed();
  recorder.line("the end");
  recorder.finish(true);
  const Recording& recording = recorder.recording();
  CHECK(recording.heading == "heading");
  CHECK(recording.before == std::vector<std::string>{"heading", "two", "lines"});
  CHECK(recording.steps[0].lines == std::vector<std::string>{"step 1", "between"});
  CHECK(recording.steps[1].lines == std::vector<std::string>{"step 2"});
  CHECK(recording.after == std::vector<std::string>{"the end"});
  CHECK(recording.ok);
}

TEST_CASE("phases_of: a quiet step phase by phase; a phase that comes again is the same one") {
  const auto phases = phases_of(
      "work", by_rank(told(shown("a", {1}), phase("one"), shown("b", {1}), phase("two"), shown("c", {1}), phase("one")),
                      told(shown("a", {1}), phase("one"), phase("two"), shown("d", {1}), phase("three"))));
  RecordingBuilder recorder(info(), [] {
    Options options;
    options.grid = Grid().dp(2);
    return options;
  }());
  for (const PhaseRecords& each : phases) recorder.step(each.title, each.reports);
  const auto& steps = recorder.recording().steps;
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].title == "work: one");
  CHECK(steps[1].title == "work: two");
  CHECK(steps[2].title == "work: three");
  CHECK(steps[0].holds[0].size() == 2);
  CHECK(steps[0].holds[0][1].name == "c");
  CHECK(steps[0].holds[1].size() == 1);
  CHECK(steps[1].holds[0][0].name == "b");
  CHECK(steps[2].holds[0].empty());
  CHECK(steps[2].holds[1][0].name == "d");

  const auto titles = [](const std::vector<PhaseRecords>& all) {
    std::vector<std::string> found;
    for (const PhaseRecords& each : all) found.push_back(each.title);
    return found;
  };
  using Titles = std::vector<std::string>;
  CHECK(titles(phases_of("no phases", by_rank(told(shown("a", {1})), told()))) == Titles{"no phases"});
  CHECK(titles(phases_of("then without", by_rank(told(shown("a", {1}), phase("one"), shown("b", {1})), told()))) ==
        Titles{"then without: one", "then without"});
  CHECK(titles(phases_of("nothing at all", by_rank(told(), told()))) == Titles{"nothing at all"});
}

TEST_CASE(
    "RecordingBuilder: what stands before the comma names the tensor; matrices take colours from the front, runs from "
    "the "
    "back") {
  Options options;
  RecordingBuilder recorder(info(), options);
  Shown matrix = shown("m, orthogonal", {1, 2});
  matrix.block.flat = false;
  recorder.step("show", by_rank(told(shown("run", {1}), std::move(matrix), shown("m", {1}), shown("run, again", {1}))));
  const Recording& recording = recorder.recording();
  REQUIRE(recording.tensors.size() == 2);
  CHECK(recording.tensors[0].name == "run");
  CHECK(recording.tensors[0].colour == 7);
  CHECK(recording.tensors[1].name == "m");
  CHECK(recording.tensors[1].colour == 0);
  CHECK(recording.steps[0].holds[0][2].tensor == 1);
  CHECK(recording.steps[0].holds[0][3].tensor == 0);
}
