// Where the parameters lie in the flat buffers that a rank shows, and which colours they have in a recording.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/classroom/recording_builder.hpp"
#include "sim/replay/palette.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/ranks/reported.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::by_rank;
using muonwalk::testing::told;

namespace {

LessonInfo spans_info() {
  LessonInfo info;
  info.name = "lesson_77_spans";
  return info;
}

Shown flat(const std::string& name, Range part, const Buffer& buffer) {
  Shown shown(name, {1, part.size()});
  shown.block.flat = true;
  shown.elements(part, buffer);
  return shown;
}

Shown matrix(const std::string& name, Shape shape = {2, 2}) { return Shown(name, shape); }

Shown run(const std::string& name) {
  Shown shown(name, {1, 4});
  shown.block.flat = true;
  return shown;
}

int colour_of(const Recording& recording, const std::string& name) {
  for (const RecordedTensor& tensor : recording.tensors)
    if (tensor.name == name) return tensor.colour.value_or(-1);
  FAIL("no tensor " << name);
  return -2;
}

// The buffer element by element: which parameter and which of its elements; {−1, 0} where there is padding.
std::vector<std::pair<int, Index>> by_element(const Buffer& buffer) {
  std::vector<std::pair<int, Index>> all(static_cast<std::size_t>(buffer.size), {-1, 0});
  for (std::size_t p = 0; p < buffer.parameters.size(); ++p)
    for (Index at = 0; at < buffer.parameters[p].shape.size(); ++at)
      all[static_cast<std::size_t>(buffer.parameters[p].global_range.begin + at)] = {static_cast<int>(p), at};
  return all;
}

}  // namespace

TEST_CASE("Shown::elements of a buffer: any layout, any range: the spans are the parameters' elements, and no others") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomLayout description(seed);
    description.own(static_cast<Ownership>(seed % 3));
    const Layout layout = description.plan();
    for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
      const Buffer& buffer = layout.buffers[b];
      const auto expected = by_element(buffer);
      std::vector<Range> ranges = {{0, buffer.size}};
      for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
        ranges.push_back(buffer.buckets[k].range);
        for (int dp = 0; dp < layout.grid.dp(); ++dp)
          ranges.push_back(layout.dp_slice(static_cast<int>(b), static_cast<int>(k), dp));
      }
      for (const Range range : ranges) {
        const Shown shown = flat("bucket", range, buffer);
        CHECK(shown.has_bar);
        CHECK(shown.block.unit == "elements");
        CHECK(shown.block.begin == range.begin);
        CHECK(shown.block.end == range.end);
        CHECK(shown.block.of == buffer.size);
        REQUIRE(shown.parameters.size() == buffer.parameters.size());
        for (std::size_t p = 0; p < buffer.parameters.size(); ++p)
          CHECK(shown.parameters[p].name == buffer.parameters[p].name);
        REQUIRE(shown.block.spans.has_value());
        std::vector<std::pair<int, Index>> found(static_cast<std::size_t>(range.size()), {-1, 0});
        Index last = 0;
        for (const RecordedSpan& span : *shown.block.spans) {
          REQUIRE(span.begin >= last);
          REQUIRE(span.end > span.begin);
          REQUIRE(span.end <= range.size());
          last = span.end;
          for (Index at = span.begin; at < span.end; ++at)
            found[static_cast<std::size_t>(at)] = {span.tensor, span.first + at - span.begin};
        }
        for (Index at = 0; at < range.size(); ++at)
          CHECK(found[static_cast<std::size_t>(at)] == expected[static_cast<std::size_t>(range.begin + at)]);
      }
    }
  }
}

TEST_CASE(
    "RecordingBuilder: a parameter has the colour that maps give it, whichever rank shows it first and in which "
    "buffer") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int most = std::min(kColours, static_cast<int>(description.parameters.size()));
    RecordingBuilder recorder(spans_info(), Options());
    for (int dp = layout.grid.dp() - 1; dp >= 0; --dp)  // from the ends of the buckets
      for (std::size_t b = layout.buffers.size(); b-- > 0;)
        for (std::size_t k = layout.buffers[b].buckets.size(); k-- > 0;)
          recorder.step("shard", by_rank(told(flat(fmt::format("bucket {}.{}", b, k),
                                                   layout.dp_slice(static_cast<int>(b), static_cast<int>(k), dp),
                                                   layout.buffers[b]))));
    for (const Parameter& each : description.parameters) recorder.step("view", by_rank(told(matrix(each.name))));
    const Recording& recording = recorder.recording();
    for (int p = 0; p < most && most < kColours; ++p)
      CHECK(colour_of(recording, description.parameters[static_cast<std::size_t>(p)].name) == p);
    for (const RecordedStep& step : recording.steps) {
      const RecordedBlock& block = step.holds[0][0];
      const RecordedTensor& own = recording.tensors[static_cast<std::size_t>(block.tensor)];
      CHECK(own.name == block.name);
      CHECK(own.colour.has_value() != block.spans.has_value());
      if (!block.spans) continue;
      const Buffer& buffer = layout.buffers[static_cast<std::size_t>(block.name[7] - '0')];
      const auto expected = by_element(buffer);
      for (const RecordedSpan& span : *block.spans) {  // now by the recording's numbers
        const auto [p, first] = expected[static_cast<std::size_t>(block.begin + span.begin)];
        CHECK(recording.tensors[static_cast<std::size_t>(span.tensor)].name ==
              buffer.parameters[static_cast<std::size_t>(p)].name);
        CHECK(span.first == first);
      }
    }
  }
}

TEST_CASE(
    "RecordingBuilder: no two of up to eight tensors have one colour, whether they are parameters, matrices or runs") {
  const std::vector<Parameter> parameters = {{"a", {2, 2}, SplitDim::none, 0}, {"b", {3, 1}, SplitDim::none, 0}};
  const Layout layout = plan_layout(parameters, Grid(), {0, 4});
  RecordingBuilder recorder(spans_info(), Options());
  recorder.step("show",
                by_rank(told(matrix("m"), run("r"), flat("bucket", {0, layout.buffers[0].size}, layout.buffers[0]),
                             matrix("n"), run("s"))));
  const Recording& recording = recorder.recording();
  CHECK(colour_of(recording, "m") == 0);
  CHECK(colour_of(recording, "r") == 7);
  CHECK(colour_of(recording, "a") == 1);  // its own is taken
  CHECK(colour_of(recording, "b") == 2);
  CHECK(colour_of(recording, "bucket") == -1);
  CHECK(colour_of(recording, "n") == 3);
  CHECK(colour_of(recording, "s") == 6);
  for (int more = 0; more < 10; ++more) {  // the last ones share
    recorder.step("more", by_rank(told(matrix("more " + std::to_string(more)))));
    CHECK(colour_of(recording, "more " + std::to_string(more)) >= 0);
    CHECK(colour_of(recording, "more " + std::to_string(more)) < kColours);
  }
}

TEST_CASE("RecordingBuilder: what was only named as a source has no colour before it is shown") {
  RecordingBuilder recorder(spans_info(), Options());
  Shown made = matrix("made");
  made.from("source");
  recorder.step("make", by_rank(told(std::move(made))));
  CHECK(colour_of(recorder.recording(), "source") == -1);
  recorder.step("show", by_rank(told(matrix("source"))));
  CHECK(colour_of(recorder.recording(), "source") == 1);
}

TEST_CASE("recording_json: spans are written where a block has them, also where it is nothing but padding") {
  const std::vector<Parameter> parameters = {{"a", {2, 2}, SplitDim::none, 0}, {"b", {3, 1}, SplitDim::none, 0}};
  const Layout layout = plan_layout(parameters, Grid(), {0, 8});  // a 0–3, b 8–10
  RecordingBuilder recorder(spans_info(), Options());
  recorder.step("show", by_rank(told(flat("bucket", {2, 11}, layout.buffers[0]),
                                     flat("padding", {4, 8}, layout.buffers[0]), matrix("a"))));
  const auto recorded = nlohmann::json::parse(recording_json(recorder.recording()));
  const auto& holds = recorded["steps"][0]["holds"][0];
  CHECK(holds[0]["spans"] == nlohmann::json::parse("[[0,0,2,2],[1,6,9,0]]"));
  CHECK(holds[1]["spans"] == nlohmann::json::array());
  CHECK(holds[2].count("spans") == 0);
  CHECK(recorded["tensors"] ==
        nlohmann::json::parse(R"([{"name":"a","colour":0},{"name":"b","colour":1},{"name":"bucket","colour":null},
                                  {"name":"padding","colour":null}])"));
  CHECK(recorded["version"] == 1);
}
