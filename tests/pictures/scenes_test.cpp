// Whole pictures of a step of training that was made up by hand, with their style sheets: buckets with parameters in
// them, sums, gathers of rows, of columns and of elements, two buses, phases, and layouts beside each other.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/pictures/buffer_map.hpp"
#include "sim/pictures/grid_map.hpp"
#include "sim/pictures/sharding_map.hpp"
#include "sim/pictures/strip.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/pictures/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::expect_golden;

namespace {

enum Tensor { kUp, kDown, kTiny, kBucket, kMatrix };

RecordedBlock flat_block(const std::string& name, int tensor, Range part, Index of) {
  RecordedBlock block;
  block.name = name;
  block.tensor = tensor;
  block.rows = 1;
  block.cols = part.size();
  block.flat = true;
  block.bytes = 4LL * part.size();
  block.unit = part.size() == of ? "" : "elements";
  block.begin = part.begin, block.end = part.end, block.of = of;
  return block;
}

RecordedBlock matrix_block(const std::string& name, int tensor, Shape shape, const char* unit = "", Range part = {0, 1},
                           Index of = 1) {
  RecordedBlock block;
  block.name = name;
  block.tensor = tensor;
  block.rows = shape.rows, block.cols = shape.cols;
  block.bytes = 4LL * shape.size();
  block.unit = unit;
  block.begin = part.begin, block.end = part.end, block.of = of;
  return block;
}

// A bucket of 36 elements: up 0–17, down 18–29, two of padding, tiny 32–33, two of padding. What lies in `part` of it.
RecordedBlock part_of_bucket(const std::string& name, Range part) {
  RecordedBlock block = flat_block(name, kBucket, part, 72);
  block.begin += 36, block.end += 36;  // the second bucket of a buffer
  block.spans.emplace();
  const std::pair<int, Range> parameters[] = {{kUp, {0, 18}}, {kDown, {18, 30}}, {kTiny, {32, 34}}};
  for (const auto& [tensor, range] : parameters) {
    const Range held = intersection(range, part);
    if (!held.empty())
      block.spans->push_back({tensor, held.begin - part.begin, held.end - part.begin, held.begin - range.begin});
  }
  return block;
}

// Six ranks, dp 3 × tp 2. Every rank's work is that of its dp; what tp does differs in the last two steps.
Recording training() {
  constexpr int kDp = 3;
  Recording recording;
  recording.name = "lesson_76_by_hand", recording.number = "76", recording.title = "By hand";
  recording.grid = Grid().dp(kDp).tp(2);
  recording.tensors = {{"up", 0}, {"down", 1}, {"tiny", 2}, {"bucket 1", {}}, {"m", 5}};
  for (int rank = 0; rank < recording.grid.size(); ++rank) {
    const Place place = recording.grid.place(rank);
    recording.ranks.push_back({fmt::format("rank {}  dp {} tp {}", rank, place.dp, place.tp), place});
  }
  const auto add = [&](const std::string& title, const auto& holds, const char* collective = "", const char* group = "",
                       long long bytes = 0) {
    RecordedStep step;
    step.number = static_cast<int>(recording.steps.size()) + 1;
    step.title = title;
    step.says.resize(recording.ranks.size());
    for (const RecordedRank& rank : recording.ranks) {
      step.holds.push_back(holds(rank.place));
      if (bytes == 0) continue;
      for (const int to : recording.grid.group(group, rank.place.rank).ranks)
        if (to != rank.place.rank)
          step.moves.push_back(
              {rank.place.rank, to, group, collective, "float32", bytes / 4, bytes + 4LL * rank.place.dp, 0});
    }
    recording.steps.push_back(step);
  };
  using Blocks = std::vector<RecordedBlock>;
  add("training step 1: gradients", [](const Place&) {
    return Blocks{part_of_bucket("bucket 1, gradients", {0, 36})};
  });
  add(
      "training step 1: reduce",
      [](const Place& place) {
        RecordedBlock own = part_of_bucket("bucket 1, summed", {12 * place.dp, 12 * (place.dp + 1)});
        own.note = "a note";
        return Blocks{own};
      },
      "reduce_scatter", "dp", 48);
  add(
      "training step 1: gather",
      [](const Place& place) {
        return place.dp == 2 && place.tp == 1 ? Blocks{} : Blocks{part_of_bucket("bucket 1, gathered", {0, 36})};
      },
      "all_gather", "dp", 48);
  add("training step 1: view", [](const Place& place) {
    Blocks blocks = {matrix_block("up", kUp, {3, 6}, "rows", {3 * place.tp, 3 * (place.tp + 1)}, 6),
                     matrix_block("down", kDown, {6, 2}, "columns", {2 * place.tp, 2 * (place.tp + 1)}, 4),
                     matrix_block("tiny", kTiny, {1, 2})};
    if (place.dp == 0) blocks.push_back(flat_block("m", kMatrix, {0, 20'000}, 12'345'678));
    return blocks;
  });
  add(
      "training step 1: join",
      [](const Place&) {
        return Blocks{matrix_block("up, whole", kUp, {6, 6}), matrix_block("down, whole", kDown, {6, 4})};
      },
      "all_gather", "tp", 72);
  add("training step 1: nothing but padding", [](const Place& place) {
    return place.dp == 1 ? Blocks{part_of_bucket("bucket 1", {34, 36})} : Blocks{};
  });
  recording.steps[4].holds[0][0].from = {kBucket};
  recording.steps[4].says[5] = {"a word of rank 5"};
  return recording;
}

// Layouts of the same matrices, each owned in another way; `dp` ranks.
std::string sharding(int dp) {
  const std::vector<Parameter> parameters = {{"up", {12, 16}, SplitDim::none, 0},
                                             {"a longer name than the others", {16, 12}, SplitDim::none, 0},
                                             {"narrow", {2, 40}, SplitDim::none, 1}};
  std::vector<std::pair<std::string, Layout>> layouts;
  for (const auto& [name, ownership] : {std::pair("cut anywhere", Ownership::buckets),
                                        {"by buffers", Ownership::buffer},
                                        {"whole matrices", Ownership::matrices}})
    layouts.emplace_back(name, plan_layout(parameters, Grid().dp(dp), {0, 8, 4, ownership, {}}));
  return sharding_map_svg(layouts);
}

}  // namespace

TEST_CASE("scenes: every shape, colour and word of whole pictures, with their style sheets, is the one that is kept") {
  const Recording recording = training();
  const Layout layout =
      plan_layout({{"w", {6, 5}, SplitDim::rows, 0}, {"v", {3, 5}, SplitDim::none, 0}}, Grid().dp(2), {});
  std::string all;
  const auto add = [&](const char* what, const std::string& svg) {
    CHECK(XmlReader(svg).complaint() == "");
    all += fmt::format("{}\n{}\n", what, svg);
  };
  add("sums", strip_svg(recording, 1));
  add("a gather of elements", strip_svg(recording, 2));
  add("gathers of rows and columns", strip_svg(recording, 4));
  add("phases of a rank that misses one", phases_svg(recording, 0, 5, 5));
  add("layouts", sharding(2));
  add("a buffer", buffer_map_svg(layout, 1));
  add("a grid", grid_map_svg(Grid().dp(2)));
  expect_golden("scenes.svg.txt", all);
}
