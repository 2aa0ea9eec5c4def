// Strips of recordings that were drawn by lot: each picture is a page that can be read, its shapes are where they were
// when somebody last looked at them, and its words and its JSON say the same.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/pictures/buffer_map.hpp"
#include "sim/pictures/grid_map.hpp"
#include "sim/pictures/strip.hpp"
#include "sim/pictures/strip_blocks.hpp"
#include "src/text/text.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/pictures/drawn.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::Draws;
using muonwalk::testing::expect_golden;

namespace {

// What the ranks show in a step: anything, a part of one tensor each, or all of it.
enum class Kind { any, parts, whole };

RecordedBlock random_block(Draws& draw, int tensor) {
  RecordedBlock block;
  block.tensor = tensor;
  block.name = fmt::format("w{}{}", tensor, draw(0, 2) == 0 ? ", as it arrived" : "");
  block.flat = draw(0, 1) == 0;
  const int large = draw(0, 4) == 0 ? 12'345 : 1;
  block.rows = block.flat ? 1 : draw(1, 6);
  block.cols = draw(1, 8) * large;
  const char* const units[] = {"", "rows", "columns", "elements"};
  block.unit = block.flat ? units[draw(0, 1) * 3] : units[draw(0, 2)];
  if (!block.unit.empty()) {
    const Index mine = block.unit == "rows" ? block.rows : block.cols;
    const int parts = draw(1, 4), part = draw(0, parts - 1);
    block.begin = mine * part, block.end = mine * (part + 1), block.of = mine * parts;
  }
  block.bytes = 4LL * block.rows * block.cols;
  if (block.rows * block.cols < 10) {
    block.values.emplace();
    for (Index i = 0; i < block.rows * block.cols; ++i) block.values->push_back(static_cast<float>(draw(-9, 9)) / 8.0f);
  }
  if (draw(0, 2) == 0) block.digest = fmt::format("{:016x}", draw(0, 1'000'000));
  if (draw(0, 3) == 0) block.note = "sums so far";
  return block;
}

Recording random_recording(unsigned seed) {
  Draws draw(seed);
  Recording recording;
  recording.name = fmt::format("lesson_{}", seed);
  recording.number = fmt::format("{:02}", seed);
  recording.title = "Strips & more";
  recording.question = "what stands where?";
  recording.heading = fmt::format("heading {}", seed);
  recording.precision = draw(0, 1) == 0 ? "fp32" : "bf16";
  recording.grid = Grid().dp(draw(1, 3)).tp(draw(1, 2));
  recording.before = {"a line before"};
  recording.after = {"a line after"};
  recording.ok = draw(0, 1) == 0;
  const int ranks = recording.grid.size();
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place = recording.grid.place(rank);
    recording.ranks.push_back(
        {ranks == 1 ? "rank 0" : fmt::format("rank {}  dp {} tp {}", rank, place.dp, place.tp), place});
  }
  for (int tensor = 0; tensor < 5; ++tensor)
    recording.tensors.push_back({fmt::format("w{}", tensor), (3 * tensor) % 8});
  Kind kind = Kind::any;
  for (int s = 0; s < 4; ++s) {
    RecordedStep step;
    step.number = s + 1;
    step.title = fmt::format(
        "step {}{}", s, draw(0, 3) == 0 ? " with a title that is longer than a line of it is, so that it wraps" : "");
    step.lines = {fmt::format("printed in step {}", s)};
    const bool whole = kind == Kind::parts;  // each rank held a part: they are gathered
    kind = whole ? Kind::whole : draw(0, 2) == 1 ? Kind::parts : Kind::any;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<RecordedBlock> holds;
      if (kind != Kind::any) {
        const Index units = seed % 2 == 0 ? 6 : 2;
        RecordedBlock part;
        part.name = whole ? "w1, gathered" : "w1";
        part.tensor = 1;
        part.flat = seed % 2 == 0;
        part.unit = whole ? "" : part.flat ? "elements" : "rows";
        part.rows = part.flat ? 1 : units * (whole ? ranks : 1);
        part.cols = part.flat ? units * (whole ? ranks : 1) : 6;
        if (!whole) part.begin = units * rank, part.end = units * (rank + 1), part.of = units * ranks;
        part.bytes = 4LL * part.rows * part.cols;
        holds.push_back(part);
      } else {
        for (int i = draw(0, 5); i > 0; --i) holds.push_back(random_block(draw, draw(0, 4)));
        if (!holds.empty() && draw(0, 2) == 0) holds[0].from = {draw(0, 4), draw(0, 4)};
      }
      step.holds.push_back(holds);
      std::vector<std::string> says;
      for (int i = draw(0, 3); i > 1; --i)
        says.push_back(
            i == 2 ? "says it"
                   : "says what is longer than the room that there is for it: so it goes on in a second line, and on");
      step.says.push_back(says);
    }
    const bool equal = draw(0, 1) == 0;
    const char* const calls[] = {"all_gather", "send", "reduce_scatter"};
    for (int from = 0; whole && from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if (to != from) step.moves.push_back({from, to, "dp", "all_gather", "float32", 12, 48, 0});
    for (int i = draw(0, 2 * ranks); ranks > 1 && !whole && i > 0; --i) {
      const int from = draw(0, ranks - 1), to = (from + draw(1, ranks - 1)) % ranks;
      const long long elements = equal ? 6 : draw(0, 4) == 0 ? draw(0, 5000) : 6 * draw(1, 2);
      step.moves.push_back(
          {from, to, draw(0, 1) == 0 ? "dp" : "tp", calls[draw(0, 2)], "float32", elements, 4 * elements, draw(0, 2)});
    }
    recording.steps.push_back(step);
  }
  return recording;
}

// What stands on the page, without its style and its description: those are the same on all, and in strip_words.
std::string body_of(const std::string& svg) {
  const std::size_t begin = svg.find("</style>");
  REQUIRE(begin != std::string::npos);
  return svg.substr(begin + 8);
}

}  // namespace

TEST_CASE("strips: drawn by lot, every shape and word is the one that is kept, in pictures, in words and as JSON") {
  std::string pictures, words;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const Recording recording = random_recording(seed);
    pictures += fmt::format("recording {}: {} × {}\n", seed, recording.grid.dp(), recording.grid.tp()) +
                body_of(seed % 3 == 0 ? strips_svg(recording) : strip_svg(recording, static_cast<int>(seed) % 4));
    for (int step = 0; step < 4; ++step) words += strip_words(recording, step) + "\n";
    words += recording_json(recording);
  }
  expect_golden("strips.svg.txt", pictures);
  expect_golden("strips.txt", words);
}

TEST_CASE("strips: any recording: nothing is beyond the page, and lines between elements lie inside of their box") {
  for (unsigned seed = 100; seed < 220; ++seed) {
    CAPTURE(seed);
    const Recording recording = random_recording(seed);
    for (int step = 0; step < 4; ++step) {
      const DrawnPage page(strip_svg(recording, step));
      Drawn box;  // the last whole box: its lines follow it
      for (const Drawn& one : page.all) {
        CHECK(one.x >= 0);
        CHECK(one.y >= 0);
        CHECK(one.bottom() <= page.height);
        if (one.tag != "text") CHECK(one.right() <= page.width);
        if (one.css_class == "mw-whole") box = one;
        if (one.css_class.find("mw-t") == 0 && one.css_class.find("mw-title") != 0) {
          CHECK(one.x >= box.x - 0.1);
          CHECK(one.right() <= box.right() + 1.1);
          CHECK(one.y >= box.y - 0.1);
          CHECK(one.bottom() <= box.bottom() + 0.1);
        }
        if (one.css_class != "mw-cells") continue;
        const bool across = one.height < 0.01;
        CHECK(std::abs(one.x - box.x) < (across ? 0.11 : box.width));
        CHECK(std::abs(one.y - box.y) < (across ? box.height : 0.11));
        CHECK(std::abs((across ? one.width - box.width : one.height - box.height)) < 0.11);
      }
    }
  }
}

TEST_CASE("strips: an arrow ends at what its receiver shows or says, or else at its name") {
  for (unsigned seed = 300; seed < 400; ++seed) {
    CAPTURE(seed);
    const Recording recording = random_recording(seed);
    for (int step = 0; step < 4; ++step) {
      const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
      const DrawnPage page(strip_svg(recording, step));
      for (const RecordedMove& move : recorded.moves) {
        const auto to = static_cast<std::size_t>(move.to);
        if (!recorded.holds[to].empty() || !recorded.says[to].empty()) continue;
        const std::string name = fmt::format("rank {}", to);
        const auto named = [&](const Drawn& one) { return one.css_class == "mw-said" && one.text == name; };
        CHECK(std::count_if(page.all.begin(), page.all.end(), named) == 1);
      }
    }
  }
}

TEST_CASE("strips: what ranks say of before and after stands on its side of the arrows") {
  Recording recording = random_recording(1);
  RecordedStep& step = recording.steps[0];
  for (std::size_t rank = 0; rank < step.says.size(); ++rank) {
    step.holds[rank].clear();
    step.says[rank] = {fmt::format("it was {}         →   it is {}", rank, rank + 100)};
  }
  step.moves = {{0, 1, "dp", "send", "float32", 1, 4, 0}};
  const DrawnPage page(strip_svg(recording, 0));
  double arrow = 0;  // where it begins: at the words for what rank 0 sends
  for (const Drawn& one : page.all)
    if (one.css_class == "mw-head0") arrow = one.x;
  REQUIRE(arrow > 0);
  std::size_t befores = 0, afters = 0;
  for (const Drawn& one : page.all) {
    if (one.css_class != "mw-said") continue;
    const bool before = one.text.find("it was ") == 0;
    CHECK(one.text.find("→") == std::string::npos);
    CHECK((before ? one.right() < arrow : one.x > arrow));
    ++(before ? befores : afters);
  }
  CHECK(befores == step.says.size());
  CHECK(afters == step.says.size());
}

TEST_CASE("strips: what leaves a rank is said as many times one size only where all its receivers get that") {
  for (unsigned seed = 300; seed < 400; ++seed) {
    CAPTURE(seed);
    const Recording recording = random_recording(seed);
    for (int step = 0; step < 4; ++step) {
      std::map<int, std::map<int, long long>> leaving;
      for (const RecordedMove& move : recording.steps[static_cast<std::size_t>(step)].moves)
        leaving[move.from][move.to] += move.bytes;
      std::vector<std::string> expected, found;
      for (const auto& [from, of_receivers] : leaving) {
        long long sum = 0, most = 0, least = of_receivers.begin()->second;
        for (const auto& [to, bytes] : of_receivers)
          sum += bytes, most = std::max(most, bytes), least = std::min(least, bytes);
        const std::size_t many = of_receivers.size();
        expected.push_back(fmt::format("mw-head{} {}", from % 8,
                                       many == 1       ? short_bytes(sum)
                                       : most == least ? fmt::format("{} × {}", many, short_bytes(most))
                                                       : fmt::format("{} in all", short_bytes(sum))));
      }
      for (const Drawn& one : DrawnPage(strip_svg(recording, step)).all)
        if (one.tag == "text" && one.css_class.find("mw-head") == 0) found.push_back(one.css_class + " " + one.text);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("strips: ranks that all send to each other share a line, which says what each of them sends, and how often") {
  Recording recording;
  recording.title = "A line";
  recording.grid = Grid().dp(3);
  RecordedStep step;
  step.title = "all to all";
  step.holds.resize(3), step.says.resize(3);
  for (int rank = 0; rank < 3; ++rank)
    recording.ranks.push_back({fmt::format("rank {}", rank), recording.grid.place(rank)});
  const auto send = [&](int from, int to, long long bytes) {
    step.moves.push_back({from, to, "dp", "all_to_all", "float32", bytes / 4, bytes, 0});
  };
  send(0, 1, 8), send(0, 2, 4), send(0, 2, 4);  // the same bytes in one message and in two
  send(1, 0, 1200), send(1, 0, 1200), send(1, 2, 1200), send(1, 2, 1200);
  send(2, 0, 16), send(2, 1, 20);
  recording.steps = {step};
  const auto titles = [](const std::string& svg) {
    std::vector<std::string> found;
    for (std::size_t at = svg.find("<g><title>"); at != std::string::npos; at = svg.find("<g><title>", at + 1))
      found.push_back(svg.substr(at + 10, svg.find('<', at + 10) - at - 10));
    return found;
  };
  CHECK(titles(strip_svg(recording, 0)) ==
        std::vector<std::string>{
            "rank 0 sends 8 B to rank 1 in 1 message, 8 B to rank 2 in 2 messages", "rank 0 receives from ranks 1, 2",
            "rank 1 sends 2,400 B in 2 messages to each of ranks 0, 2", "rank 1 receives from ranks 0, 2",
            "rank 2 sends 16 B to rank 0 in 1 message, 20 B to rank 1 in 1 message",
            "rank 2 receives from ranks 0, 1"});
  // Where one of them does not send to another, each message is an arrow of its own.
  recording.steps[0].moves.pop_back();
  CHECK(titles(strip_svg(recording, 0)) == std::vector<std::string>{"rank 1 sends 2,400 B to rank 0 in 2 messages",
                                                                    "rank 2 sends 16 B to rank 0 in 1 message",
                                                                    "rank 0 sends 8 B to rank 1 in 1 message",
                                                                    "rank 0 sends 8 B to rank 2 in 2 messages",
                                                                    "rank 1 sends 2,400 B to rank 2 in 2 messages"});
}

TEST_CASE("strips: parts that were laid side by side are those of one whole, counted in one unit") {
  Recording recording;
  recording.grid = Grid().dp(2);
  recording.tensors = {{"w", 0}};
  RecordedStep parts, gathered;
  for (int rank = 0; rank < 2; ++rank) {
    recording.ranks.push_back({fmt::format("rank {}", rank), recording.grid.place(rank)});
    RecordedBlock rows, elements, whole;
    rows.name = "w", elements.name = "w, flat", whole.name = "w, gathered";
    rows.rows = 1, whole.rows = 2;
    rows.cols = elements.cols = whole.cols = 4;
    rows.unit = "rows", rows.begin = rank, rows.end = rank + 1, rows.of = 2;
    elements.flat = true;
    elements.unit = "elements", elements.begin = 4 * rank, elements.end = 4 * (rank + 1), elements.of = 8;
    parts.holds.push_back({rows, elements, whole});
    gathered.holds.push_back({whole});
    gathered.moves.push_back({rank, 1 - rank, "dp", "all_gather", "float32", 4, 16, 0});
  }
  parts.says.resize(2), gathered.says.resize(2);
  recording.steps = {parts, gathered};
  const Strip strip = strip_of(recording, 1);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::vector<StripSeam>& seams = strip.seams_of(recording.steps[1].holds[rank][0]);
    REQUIRE(seams.size() == 2);
    for (int from = 0; from < 2; ++from) {
      const StripSeam& seam = seams[static_cast<std::size_t>(from)];
      CHECK(seam.rank == from);
      CHECK(seam.begin == from);
      CHECK(seam.end == from + 1);
      CHECK(seam.of == 2);
      CHECK(seam.rows);
    }
  }
  CHECK(strip.sums.empty());
  CHECK(strip_of(recording, 0).seams_of(recording.steps[0].holds[0][0]).empty());
}

TEST_CASE("maps: of a grid and of a buffer, every shape and word is the one that is kept") {
  const std::vector<Parameter> parameters = {{"w_up", {6, 5}, SplitDim::rows, 0},
                                             {"w_down", {5, 6}, SplitDim::columns, 0},
                                             {"w_narrow", {1, 3}, SplitDim::none, 1},
                                             {"w_large", {16, 24}, SplitDim::rows, 1}};
  LayoutOptions options;
  options.parameter_alignment = 8;
  options.bucket_alignment = 4;
  options.bucket_capacity = 100;
  const Layout layout = plan_layout(parameters, Grid().dp(3).tp(2), options);
  std::string maps;
  for (const Grid& grid : {Grid().dp(2).tp(3), Grid().dp(2).tp(2).pp(2)})
    maps += grid_map_text(grid) + "\n" + body_of(grid_map_svg(grid));
  for (int dp = 1; dp <= 20; ++dp)  // lines between the rows, as long as there are few
    maps += grid_map_text(Grid().dp(dp)) + "\n" + grid_map_text(Grid().dp(dp).tp(2), 60) + "\n";
  maps += buffer_map_text(layout) + "\n" + body_of(buffer_map_svg(layout)) + body_of(buffer_map_svg(layout, 1));
  expect_golden("maps.svg.txt", maps);
}
