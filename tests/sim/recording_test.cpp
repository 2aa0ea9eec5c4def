// The recording of a run, called from code as a notebook does, and its JSON and strips on recordings made by hand.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/cluster/lesson.hpp"
#include "sim/cluster/recorder.hpp"
#include "sim/pictures/strip.hpp"
#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/pictures/well_formed_xml.hpp"
#include "tests/sim/in_memory.hpp"
#include "tests/sim/printed.hpp"
#include "tests/sim/told.hpp"

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

Options threads(const Grid& grid, bool recorded) {
  Options options = muonwalk::testing::in_memory(grid);
  options.recorded = recorded;
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

RecordedBlock block(const std::string& name, int tensor, const std::string& unit, Index begin, Index end, Index of) {
  RecordedBlock block;
  block.name = name;
  block.tensor = tensor;
  block.rows = 1;
  block.cols = end - begin;
  block.flat = true;
  block.unit = unit;
  block.begin = begin;
  block.end = end;
  block.of = of;
  return block;
}

// Two ranks of a dp group, with the tensors a, b and c and no step yet.
Recording two_ranks() {
  Recording recording;
  recording.title = "By hand";
  recording.grid = Grid().dp(2);
  recording.ranks = {{"rank 0  dp 0", Grid().dp(2).place(0)}, {"rank 1  dp 1", Grid().dp(2).place(1)}};
  recording.tensors = {{"a", 0}, {"b", 1}, {"c", 2}};
  return recording;
}

void add_step(Recording& recording, std::vector<std::vector<RecordedBlock>> holds,
              std::vector<RecordedMove> moves = {}) {
  RecordedStep step;
  step.number = static_cast<int>(recording.steps.size()) + 1;
  step.title = "step";
  step.holds = std::move(holds);
  step.says.resize(recording.ranks.size());
  step.moves = std::move(moves);
  recording.steps.push_back(step);
}

std::vector<std::string> names(const std::vector<const RecordedBlock*>& blocks) {
  std::vector<std::string> all;
  for (const RecordedBlock* block : blocks) all.push_back(block->name);
  return all;
}

Shown shown(const std::string& name, const std::vector<float>& values) {
  Shown shown(name, {1, static_cast<Index>(values.size())});
  shown.block.flat = true;
  shown.values = values;
  return shown;
}

PhaseEnded phase(const std::string& name) { return {name, 0.5}; }

json recorded_json(const Recorder& recorder) { return json::parse(recording_json(recorder.recording())); }

}  // namespace

TEST_CASE("Lesson: a recorded run prints the same, moves the same, and ends with the same bits") {
  const auto run = [](bool recorded, std::vector<Flat>& held, std::vector<Index>& sent) {
    return printed([&] {
      Lesson<Local> lesson(info(), threads(Grid().dp(3), recorded));
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

TEST_CASE("Lesson: the pictures since the last look, each with its words; none of a step without anything to see") {
  printed([&] {
    Lesson<Local> silent(info(), threads(Grid().dp(2), false));
    silent.step("start", start);
    CHECK(silent.take_pictures().empty());

    Lesson<Local> lesson(info(), threads(Grid().dp(2), true));
    CHECK(lesson.take_pictures().empty());
    lesson.step("start", start);
    lesson.step("talk", [](Rank& rank, Local&) { rank.say("nothing to see"); });
    lesson.step("gather", gather);
    const auto pictures = lesson.take_pictures();
    REQUIRE(pictures.size() == 2);
    CHECK(pictures[0].words ==
          "Step 1: start; nothing travels.\nrank 0  dp 0: after: w (elements 0–1 of 4, 2, 8 B).\n"
          "rank 1  dp 1: after: w (elements 2–3 of 4, 2, 8 B).");
    CHECK(pictures[1].words ==
          "Step 3: gather; all_gather over dp · 2 messages · 16 B.\n"
          "rank 0  dp 0: before: w (elements 0–1 of 4, 2, 8 B); sends 8 B to rank 1; after: w, gathered (all of it, 4, "
          "16 B).\n"
          "rank 1  dp 1: before: w (elements 2–3 of 4, 2, 8 B); sends 8 B to rank 0; after: w, gathered (all of it, 4, "
          "16 B).");
    for (const auto& picture : pictures) CHECK(XmlReader(picture.svg).complaint() == "");
    CHECK(pictures[1].svg.find("rank 0 sends 8 B to rank 1 in 1 message") != std::string::npos);
    CHECK(lesson.take_pictures().empty());
    lesson.step("gather again", gather);
    CHECK(lesson.take_pictures().size() == 1);
  });
}

TEST_CASE(
    "Lesson: a message in the recording tells which of its sender's calls in that step it belongs to, counted from 0") {
  const TemporaryFolder folder;
  Options options = threads(Grid().dp(2), false);
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
      Lesson<Local> lesson(info(), threads(Grid(), recorded));
      lesson.step("one", look);
      for (int quiet = 0; quiet < 4; ++quiet) lesson.quiet_step("quiet", look);
      lesson.step("two", look);
      return seen;
    };
    CHECK(run(true) == "rrr--r");
    CHECK(run(false) == "------");
  });
}

TEST_CASE("Recorder: what the recording says of the lesson, its grid, its ranks and its precision is the run's") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Options options;
    options.grid = Grid().dp(2).tp(3);
    options.precision = precision;
    const Recorder recorder(info(), options);
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

TEST_CASE("Recorder: values of up to 1024 elements are kept, of more their digest, of none nothing") {
  Options options;
  Recorder recorder(info(), options);
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
  Recorder recorder(info(), Options());
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
    "Recorder: a line belongs to the step that it follows, the last ones to what comes after; colours are dropped") {
  Recorder recorder(info(), Options());
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

TEST_CASE("Recorder: a quiet step is recorded phase by phase; a phase that comes again is the same one") {
  Options options;
  options.grid = Grid().dp(2);
  Recorder recorder(info(), options);
  recorder.quiet_step(
      "work", by_rank(told(shown("a", {1}), phase("one"), shown("b", {1}), phase("two"), shown("c", {1}), phase("one")),
                      told(shown("a", {1}), phase("one"), phase("two"), shown("d", {1}), phase("three"))));
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

  recorder.quiet_step("no phases", by_rank(told(shown("a", {1})), told()));
  CHECK(steps.back().title == "no phases");
  REQUIRE(steps.back().holds[0].size() == 1);
  CHECK(steps.back().holds[0][0].name == "a");
  CHECK(steps.back().number == 4);
  recorder.quiet_step("then without", by_rank(told(shown("a", {1}), phase("one"), shown("b", {1})), told()));
  CHECK(steps[steps.size() - 2].title == "then without: one");
  CHECK(steps.back().title == "then without");
  REQUIRE(steps.back().holds[0].size() == 1);
  CHECK(steps.back().holds[0][0].name == "b");
  recorder.quiet_step("nothing at all", by_rank(told(), told()));
  CHECK(steps.back().title == "nothing at all");
}

TEST_CASE(
    "Recorder: what stands before the comma names the tensor; matrices take colours from the front, runs from the "
    "back") {
  Options options;
  Recorder recorder(info(), options);
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

TEST_CASE("strip_of: before is what was last shown of the same tensor, or, where that is new, the step before") {
  Recording recording = two_ranks();
  add_step(recording,
           {{block("a", 0, "elements", 0, 2, 4), block("b", 1, "", 0, 1, 1)}, {block("a", 0, "elements", 2, 4, 4)}});
  add_step(recording, {{block("b, changed", 1, "", 0, 1, 1)}, {}});
  add_step(recording, {{block("a, gathered", 0, "", 0, 1, 1)}, {block("c", 2, "", 0, 1, 1)}});
  add_step(recording, {{}, {}});
  using Names = std::vector<std::string>;
  CHECK(strip_of(recording, 0).before[0].empty());
  CHECK(names(strip_of(recording, 1).before[0]) == Names{"b"});
  CHECK(names(strip_of(recording, 1).before[1]) == Names{"a"});  // it shows nothing, so what it had
  CHECK(names(strip_of(recording, 2).before[0]) == Names{"a"});  // from two steps earlier
  CHECK(strip_of(recording, 2).before[1].empty());               // new, and nothing in the step before
  CHECK(names(strip_of(recording, 3).before[1]) == Names{"c"});
  recording.steps[2].holds[0][0].from = {1};
  CHECK(names(strip_of(recording, 2).before[0]) == Names{"a", "b, changed"});
  recording.steps[2].holds[0][0].from = {1, 0, 1};  // what is named again is there already
  CHECK(names(strip_of(recording, 2).before[0]) == Names{"a", "b, changed"});
}

TEST_CASE("strip_of: a gathered block knows which part came from whom; a sum does not") {
  Recording recording = two_ranks();
  const std::vector<RecordedMove> both = {{0, 1, "dp", "all_gather", "float32", 2, 8, 0},
                                          {1, 0, "dp", "all_gather", "float32", 2, 8, 0}};
  add_step(recording, {{block("a", 0, "elements", 0, 2, 4)}, {block("a", 0, "elements", 2, 4, 4)}});
  add_step(recording, {{block("a", 0, "", 0, 1, 1)}, {block("a", 0, "", 0, 1, 1)}}, both);
  const Strip strip = strip_of(recording, 1);
  const auto& seams = strip.seams.at(strip.after[1][0]);
  REQUIRE(seams.size() == 2);
  CHECK(seams[1].rank == 1);
  CHECK(seams[1].begin == 2);
  CHECK(seams[1].end == 4);
  REQUIRE(strip.arrows.size() == 2);
  CHECK(strip.arrows[0].bytes == 8);
  CHECK(strip.traffic == "all_gather over dp · 2 messages · 16 B");

  recording.steps[0].holds[0][0].end = recording.steps[0].holds[1][0].begin + 1;  // they overlap
  CHECK(strip_of(recording, 1).seams.begin()->second.empty());
  recording.steps[0].holds[0][0].end = 2;
  recording.steps[1].moves.clear();  // nothing came
  CHECK(strip_of(recording, 1).seams.begin()->second.empty());
}

namespace {

// The texts of a picture from top to bottom, with their classes: "mw-said first word".
std::vector<std::string> texts_of(const std::string& svg) {
  std::vector<std::pair<double, std::string>> placed;
  for (std::size_t at = svg.find("<text "); at != std::string::npos; at = svg.find("<text ", at + 1)) {
    const std::string tag = svg.substr(at, svg.find('>', at) - at);
    const auto attribute = [&](const std::string& name) {
      const std::size_t begin = tag.find(name + "=\"") + name.size() + 2;
      return tag.substr(begin, tag.find('"', begin) - begin);
    };
    const std::size_t begin = at + tag.size() + 1;
    placed.emplace_back(std::stod(attribute("y")),
                        attribute("class") + " " + svg.substr(begin, svg.find("</text>", begin) - begin));
  }
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts;
  for (const auto& [y, text] : placed) texts.push_back(text);
  return texts;
}

Recording ranks_of_dp(int ranks) {
  Recording recording = two_ranks();
  recording.grid = Grid().dp(ranks);
  recording.ranks.clear();
  for (int rank = 0; rank < ranks; ++rank)
    recording.ranks.push_back(
        {"rank " + std::to_string(rank) + "  dp " + std::to_string(rank), recording.grid.place(rank)});
  return recording;
}

// The titles of the arrows that end at `rank`, from top to bottom.
std::vector<std::string> arrows_to(const std::string& svg, int rank) {
  std::vector<std::pair<double, std::string>> placed;
  for (std::size_t at = svg.find("<g><title>"); at != std::string::npos; at = svg.find("<g><title>", at + 1)) {
    const std::size_t begin = at + 10, end = svg.find("</title>", begin);
    const std::string title = svg.substr(begin, end - begin);
    const bool ends_there = title.find(" to rank " + std::to_string(rank) + " ") != std::string::npos ||
                            title == "stays on rank " + std::to_string(rank);
    if (!ends_there) continue;
    // "M84.0 100.0C112.0 100.0 112.0 80.0 134.0 80.0": the last number is where it ends.
    const std::size_t path = svg.find("d=\"M", end) + 4;
    const std::string curve = svg.substr(path, svg.find('"', path) - path);
    placed.emplace_back(std::stod(curve.substr(curve.rfind(' ') + 1)), title);
  }
  std::sort(placed.begin(), placed.end());
  std::vector<std::string> titles;
  for (const auto& [y, title] : placed) titles.push_back(title);
  return titles;
}

}  // namespace

namespace {

struct DrawnBox {
  double x, y, width, height;
};

// The rectangles of a class, in the order in which they are drawn.
std::vector<DrawnBox> boxes_of(const std::string& svg, const std::string& style_class) {
  std::vector<DrawnBox> boxes;
  for (std::size_t at = svg.find("<rect "); at != std::string::npos; at = svg.find("<rect ", at + 1)) {
    const std::string tag = svg.substr(at, svg.find('>', at) - at);
    if (tag.find("class=\"" + style_class + "\"") == std::string::npos) continue;
    const auto number = [&](const std::string& name) {
      return std::stod(tag.substr(tag.find(name + "=\"") + name.size() + 2));
    };
    boxes.push_back({number(" x"), number(" y"), number(" width"), number(" height")});
  }
  return boxes;
}

}  // namespace

TEST_CASE(
    "strip_svg: the part that is held lies in its whole, and outlines tell from whom each part came, by place and "
    "colour") {
  for (const std::string unit : {"rows", "columns", "elements"}) {
    CAPTURE(unit);
    Recording recording = ranks_of_dp(3);
    std::vector<std::vector<RecordedBlock>> parts, wholes;
    std::vector<RecordedMove> moves;
    for (int rank = 0; rank < 3; ++rank) {
      RecordedBlock part = block("a", 0, unit, rank, rank + 1, 3), whole = block("a", 0, "", 0, 1, 1);
      part.flat = whole.flat = unit == "elements";
      part.rows = unit == "columns" ? 3 : 1;
      part.cols = unit == "rows" ? 3 : 1;
      whole.rows = whole.flat ? 1 : 3;
      whole.cols = 3;
      parts.push_back({part});
      wholes.push_back({whole});
      for (int to = 0; to < 3; ++to)
        if (to != rank) moves.push_back({rank, to, "dp", "all_gather", "float32", 1, 4, 0});
    }
    add_step(recording, parts);
    add_step(recording, wholes, moves);
    const std::vector<DrawnBox> held = boxes_of(strip_svg(recording, 0), "mw-t0 mw-fill"),
                                all = boxes_of(strip_svg(recording, 0), "mw-whole");
    REQUIRE(held.size() == 3);
    REQUIRE(all.size() == 3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const double third = static_cast<double>(rank) / 3;
      const bool down = unit == "rows";
      CHECK(held[rank].x - all[rank].x == doctest::Approx(down ? 0 : third * all[rank].width).epsilon(0.01));
      CHECK(held[rank].y - all[rank].y == doctest::Approx(down ? third * all[rank].height : 0).epsilon(0.01));
      CHECK(held[rank].width == doctest::Approx(down ? all[rank].width : all[rank].width / 3).epsilon(0.01));
      CHECK(held[rank].height == doctest::Approx(down ? all[rank].height / 3 : all[rank].height).epsilon(0.01));
    }
    const std::string gathered = strip_svg(recording, 1);
    const std::vector<DrawnBox> wholes_drawn = boxes_of(gathered, "mw-whole");
    REQUIRE(wholes_drawn.size() == 6);  // three parts before, three wholes after
    for (int from = 0; from < 3; ++from) {
      const std::vector<DrawnBox> outlines = boxes_of(gathered, fmt::format("mw-none mw-r{} mw-from", from));
      REQUIRE(outlines.size() == 4);  // around its own part before, and on each rank's whole
      for (std::size_t at = 0, rank = 0; at < 4; ++at) {
        const DrawnBox& outline = outlines[at];
        const bool before = static_cast<int>(at) == from;  // a rank's row begins with what it held
        const DrawnBox& whole = wholes_drawn[before ? 2 * static_cast<std::size_t>(from) : 2 * rank + 1];
        const double along = unit == "rows" ? (outline.y + outline.height / 2 - whole.y) / whole.height
                                            : (outline.x + outline.width / 2 - whole.x) / whole.width;
        CHECK(along == doctest::Approx((from + 0.5) / 3).epsilon(0.01));
        const double share = unit == "rows" ? outline.height / whole.height : outline.width / whole.width;
        CHECK(std::abs(share - 1.0 / 3) < 0.2);
        rank += before ? 0 : 1;
      }
    }
  }
}

TEST_CASE("strips: each rank says its own words, in the picture and in its description") {
  Recording recording = ranks_of_dp(3);
  add_step(recording, {{}, {}, {}});
  recording.steps[0].says = {{"zero", "zero again"}, {}, {"two"}};
  CHECK(strip_words(recording, 0) ==
        "Step 1: step; nothing travels.\nrank 0  dp 0: says: zero; says: zero again.\nrank 2  dp 2: says: two.");
  const std::vector<std::string> texts = texts_of(strip_svg(recording, 0));
  const std::vector<std::string> rows(texts.begin() + 2, texts.end());  // behind the title and what travels
  CHECK(rows == std::vector<std::string>{"mw-name mw-head0 rank 0", "mw-said zero", "mw-quiet dp 0",
                                         "mw-said zero again", "mw-name mw-head1 rank 1", "mw-quiet dp 1",
                                         "mw-name mw-head2 rank 2", "mw-said two", "mw-quiet dp 2"});
}

TEST_CASE(
    "strip_svg: beside the arrows stands what leaves a rank: one size, a number of times, or the sum of several") {
  Recording recording = ranks_of_dp(4);
  const auto move = [](int from, int to, long long bytes) {
    return RecordedMove{from, to, "dp", "all_to_all", "float32", bytes / 4, bytes, 0};
  };
  add_step(recording, {{}, {}, {}, {}},
           {move(0, 1, 8), move(0, 2, 8), move(0, 3, 8), move(1, 0, 12), move(1, 2, 20), move(2, 0, 4), move(2, 0, 4)});
  std::vector<std::string> words;
  for (const std::string& text : texts_of(strip_svg(recording, 0)))
    if (text.rfind("mw-head", 0) == 0) words.push_back(text);
  CHECK(words == std::vector<std::string>{"mw-head0 3 × 8 B", "mw-head1 32 B in all", "mw-head2 8 B"});
}

namespace {

// Three ranks that held a part of one array each, and hold all of it.
Recording gathered_by_three() {
  Recording recording = ranks_of_dp(3);
  std::vector<std::vector<RecordedBlock>> parts, wholes;
  std::vector<RecordedMove> moves;
  for (int rank = 0; rank < 3; ++rank) {
    parts.push_back({block("a", 0, "elements", 2 * rank, 2 * rank + 2, 6)});
    wholes.push_back({block("a", 0, "", 0, 6, 6)});
    for (int to = 0; to < 3; ++to)
      if (to != rank) moves.push_back({rank, to, "dp", "all_gather", "float32", 2, 8, 0});
  }
  add_step(recording, parts);
  add_step(recording, wholes, moves);
  return recording;
}

}  // namespace

TEST_CASE("strip_svg: arrows end in the order of their senders, what a rank has itself among them") {
  Recording recording = gathered_by_three();
  auto& moves = recording.steps[1].moves;
  moves.erase(moves.begin());  // rank 0 sends nothing to rank 1, so each pair has an arrow of its own
  const std::string svg = strip_svg(recording, 1);
  for (int to = 0; to < 3; ++to) {
    std::vector<std::string> expected;
    for (int from = 0; from < 3; ++from) {
      if (from == 0 && to == 1) continue;
      expected.push_back(from == to ? "stays on rank " + std::to_string(to)
                                    : "rank " + std::to_string(from) + " sends 8 B to rank " + std::to_string(to) +
                                          " in 1 message");
    }
    CHECK(arrows_to(svg, to) == expected);
  }
}

TEST_CASE("strip_svg: where three or more ranks all send to each other, one line takes from all and gives to all") {
  Recording recording = gathered_by_three();
  const auto told_once = [](const std::string& svg, const std::string& title) {
    const std::size_t at = svg.find("<title>" + title + "</title>");
    return at != std::string::npos && svg.find("<title>" + title + "</title>", at + 1) == std::string::npos;
  };
  const std::string svg = strip_svg(recording, 1);
  CHECK(told_once(svg, "rank 0 sends 8 B in 1 message to each of ranks 1, 2"));
  CHECK(told_once(svg, "rank 2 sends 8 B in 1 message to each of ranks 0, 1"));
  CHECK(told_once(svg, "rank 1 receives from ranks 0, 2"));
  CHECK(svg.find(" to rank 1 in 1 message</title>") == std::string::npos);  // no arrow for a pair
  recording.steps[1].moves[0].bytes = 12;
  CHECK(told_once(strip_svg(recording, 1), "rank 0 sends 12 B to rank 1 in 1 message, 8 B to rank 2 in 1 message"));

  // Two groups of three have a line each, and their ranks no line to the other group.
  Recording two = ranks_of_dp(6);
  add_step(two, std::vector<std::vector<RecordedBlock>>(6));
  for (int from = 0; from < 6; ++from)
    for (int to = from % 2; to < 6; to += 2)
      if (to != from) two.steps[0].moves.push_back({from, to, "dp", "all_gather", "float32", 2, 8, 0});
  const std::string of_two = strip_svg(two, 0);
  CHECK(told_once(of_two, "rank 4 receives from ranks 0, 2"));
  CHECK(told_once(of_two, "rank 1 sends 8 B in 1 message to each of ranks 3, 5"));
  CHECK(of_two.find("receives from ranks 0, 1") == std::string::npos);
}

TEST_CASE("strip_of: what was summed knows whose addends it has, and what came out of a buffer where it lay") {
  Recording recording = two_ranks();
  recording.tensors.push_back({"bucket", {}});
  RecordedBlock bucket = block("bucket", 3, "elements", 10, 22, 40);
  bucket.spans = {{0, 0, 6, 0}, {1, 8, 12, 2}};  // all of a, and the end of b
  add_step(recording, {{bucket}, {bucket}});
  RecordedBlock a = block("a", 0, "", 0, 1, 1), b = block("b", 1, "", 0, 1, 1);
  a.flat = b.flat = false;
  a.rows = 2, a.cols = 3, b.rows = 2, b.cols = 3;
  add_step(recording, {{a, b}, {}});
  const Strip viewed = strip_of(recording, 1);
  REQUIRE(viewed.places.size() == 1);
  CHECK(place_text(viewed.places.at(viewed.after[0][0])) == "from bucket, 0–5");
  CHECK(viewed.places.at(viewed.after[0][0]).buffer == viewed.before[0][0]);
  CHECK(strip_words(recording, 1).find("a (all of it, 2 × 3, 0 B, from bucket, 0–5)") != std::string::npos);
  CHECK(strip_words(recording, 0).find("bucket (elements 10–21 of 40, 12, 0 B, holds a 0–5 and b 2–5)") !=
        std::string::npos);

  for (const std::string collective : {"reduce_scatter", "all_reduce", "all_gather"}) {
    CAPTURE(collective);
    Recording summed = two_ranks();
    add_step(summed, {{block("a", 0, "", 0, 4, 4)}, {block("a", 0, "", 0, 4, 4)}});
    add_step(summed, {{block("a", 0, "elements", 0, 2, 4)}, {block("a", 0, "elements", 2, 4, 4)}},
             {{0, 1, "dp", collective, "float32", 2, 8, 0}, {1, 0, "dp", collective, "float32", 2, 8, 0}});
    const Strip strip = strip_of(summed, 1);
    const std::string svg = strip_svg(summed, 1);
    const bool sums = collective != "all_gather";
    CHECK(strip.sums.size() == (sums ? 2 : 0));
    CHECK((strip_words(summed, 1).find("Σ of ranks 0, 1") != std::string::npos) == sums);
    for (const int rank : {0, 1})  // an addend of each on either rank, in its colour
      CHECK(boxes_of(svg, fmt::format("mw-none mw-r{} mw-addend", rank)).size() == (sums ? 2 : 0));
    summed.steps[0].holds[1].clear();  // nobody knows what rank 1 added
    CHECK(strip_of(summed, 1).sums.empty());
  }
}

TEST_CASE("strip_svg: any names, words and sizes give a picture that can be read") {
  Recording recording = two_ranks();
  recording.title = "<&>";
  recording.tensors[0].name = "a<b";
  RecordedBlock empty = block("c", 2, "elements", 5, 5, 5), nothing = block("nothing of nothing", 2, "rows", 0, 0, 0);
  nothing.flat = false;
  nothing.rows = nothing.cols = 0;
  RecordedBlock huge = block("a name that goes on and on, and then on & on, ", 1, "elements", 1'000'000'000,
                             2'000'000'000, 4'000'000'000);
  huge.note = "\"quoted\" \x01\xff";
  add_step(recording, {{block("a<b", 0, "elements", 0, 2, 4), empty, nothing, huge}, {}},
           {{0, 1, "dp", "send", "float32", 0, 0, 0}, {0, 1, "dp", "send", "bytes", 123456789, 123456789, 1}});
  recording.steps[0].says[1] = {"", "x < y && \"z\"", std::string(300, 'w')};
  recording.steps[0].title = std::string(200, 't') + " & so on";
  add_step(recording, {{huge, huge, huge, huge, huge}, {nothing}});
  for (int step = 0; step < 2; ++step) CHECK(XmlReader(strip_svg(recording, step)).complaint() == "");
  CHECK(XmlReader(strips_svg(recording)).complaint() == "");
  CHECK(strips_svg(recording).find("123,456,789 B to rank 1 in 2 messages") != std::string::npos);
  CHECK(strip_words(recording, 0).find("sends 123,456,789 B to rank 1") != std::string::npos);

  Recording none = two_ranks();
  CHECK(XmlReader(strips_svg(none)).complaint() == "");
}

TEST_CASE("options: the paths of --record and --svg") {
  Options options;
  CHECK_FALSE(options.recording());
  for (const char* path : {"a.svg", "pictures/", "/tmp/a/b.svg"}) {
    options.svg_path = path;
    CHECK_NOTHROW(require_valid(info(), options));
    CHECK(options.recording());
  }
  for (const char* path : {"a.png", "pictures", ".svg", "a.svg.txt"}) {
    options.svg_path = path;
    CHECK_THROWS_WITH_AS(require_valid(info(), options), doctest::Contains(path), UsageError);
  }
}
