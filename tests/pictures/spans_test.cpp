// Parameters in the flat buffers of a strip: each is drawn where its elements are, in the colour that maps give it.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/pictures/buffer_map.hpp"
#include "sim/pictures/palette.hpp"
#include "sim/pictures/sharding_map.hpp"
#include "sim/pictures/strip.hpp"
#include "src/text/text.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/pictures/drawn.hpp"
#include "tests/pictures/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What a recording says of a range of a buffer: parameters are tensors with their own numbers, and the bucket is the
// last tensor.
RecordedBlock part_of_buffer(const Buffer& buffer, Range part, int tensor) {
  RecordedBlock block;
  block.name = "bucket";
  block.tensor = tensor;
  block.rows = 1;
  block.cols = part.size();
  block.flat = true;
  block.unit = "elements";
  block.begin = part.begin, block.end = part.end, block.of = buffer.size;
  block.spans.emplace();
  for (const DistMeta& meta : buffer.parameters) {
    const Range held = intersection(meta.global_range, part);
    if (!held.empty())
      block.spans->push_back(
          {meta.parameter, held.begin - part.begin, held.end - part.begin, held.begin - meta.global_range.begin});
  }
  return block;
}

// The first bucket of a layout: every DP rank holds its shard, and then all of it.
Recording gather_of(const RandomLayout& description, const Layout& layout) {
  Recording recording;
  recording.title = "Spans";
  const int dp = layout.grid.dp(), tensor = static_cast<int>(description.parameters.size());
  recording.grid = Grid().dp(dp);
  for (int p = 0; p < tensor; ++p)
    recording.tensors.push_back({description.parameters[static_cast<std::size_t>(p)].name, p % kColours});
  recording.tensors.push_back({"bucket", {}});
  RecordedStep shards, gathered;
  shards.number = 1, gathered.number = 2;
  shards.title = "shards", gathered.title = "gather";
  const Buffer& buffer = layout.buffers[0];
  for (int rank = 0; rank < dp; ++rank) {
    recording.ranks.push_back({fmt::format("rank {}  dp {}", rank, rank), recording.grid.place(rank)});
    shards.holds.push_back({part_of_buffer(buffer, layout.dp_slice(0, 0, rank), tensor)});
    gathered.holds.push_back({part_of_buffer(buffer, buffer.buckets[0].range, tensor)});
    shards.says.emplace_back();
    gathered.says.emplace_back();
    for (int to = 0; to < dp; ++to)
      if (to != rank) gathered.moves.push_back({rank, to, "dp", "all_gather", "float32", 1, 4, 0});
  }
  recording.steps = {shards, gathered};
  return recording;
}

}  // namespace

TEST_CASE("strip_svg: any layout: a span is as wide as its elements, where they are, in the colour of the map") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const Recording recording = gather_of(description, layout);
    const std::string svg = strip_svg(recording, 0), map = buffer_map_svg(layout);
    CHECK(XmlReader(svg).complaint() == "");
    CHECK(XmlReader(strip_svg(recording, 1)).complaint() == "");
    const DrawnPage page(svg);
    const Bucket& bucket = layout.buffers[0].buckets[0];
    const std::vector<Drawn> bars = page.of_class("mw-whole");
    REQUIRE(bars.size() == static_cast<std::size_t>(layout.grid.dp()));
    std::size_t next = 0;  // among all that is drawn
    for (int rank = 0; rank < layout.grid.dp(); ++rank) {
      const Drawn& bar = bars[static_cast<std::size_t>(rank)];
      const auto x = [&](Index element) {
        return bar.x +
               bar.width * static_cast<double>(element - bucket.range.begin) / static_cast<double>(bucket.range.size());
      };
      const Range own = layout.dp_slice(0, 0, rank);
      for (const int p : bucket.parameters) {
        const DistMeta& meta = layout.buffers[0].parameters[static_cast<std::size_t>(p)];
        const Range held = intersection(meta.global_range, own);
        if (held.empty()) continue;
        const auto is_span = [](const Drawn& one) { return one.tag == "rect" && one.css_class.find("mw-t") == 0; };
        while (next < page.all.size() && !is_span(page.all[next])) ++next;
        REQUIRE(next < page.all.size());
        const Drawn& span = page.all[next++];
        CHECK(std::abs(span.x - x(held.begin)) < 0.05);
        CHECK(std::abs(span.right() - x(held.end)) < 0.05);
        CHECK(span.y == bar.y);
        CHECK(span.height == bar.height);
        CHECK(span.text ==
              fmt::format("{}, elements {}", meta.name,
                          range_text({held.begin - meta.global_range.begin, held.end - meta.global_range.begin})));
        // The same colour on the map; and a line around all that is wide enough for one.
        const std::string colour = span.css_class.substr(4, span.css_class.find(' ') - 4);
        CHECK(map.find(fmt::format("class=\"mw-p{} mw-gap\"", colour)) != std::string::npos);
        CHECK(colour == std::to_string(meta.parameter % kColours));
        CHECK((span.css_class.find(" mw-fill") != std::string::npos) == (span.width >= 2));
      }
    }
    // What no parameter takes shows the hatching below: it lies under all of the part.
    const auto grounds = std::count_if(page.all.begin(), page.all.end(),
                                       [](const Drawn& one) { return one.tag == "rect" && one.text == "padding"; });
    CHECK(grounds == layout.grid.dp());
  }
}

TEST_CASE("strip_svg: a gathered bucket is outlined piece by piece in its senders' colours, with their numbers below") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int dp = layout.grid.dp();
    if (dp == 1) continue;
    const Recording recording = gather_of(description, layout);
    const DrawnPage page(strip_svg(recording, 1));
    const Bucket& bucket = layout.buffers[0].buckets[0];
    std::vector<Drawn> bars = page.of_class("mw-whole");
    REQUIRE(bars.size() == 2 * static_cast<std::size_t>(dp));
    for (int rank = 0; rank < dp; ++rank) {
      const Drawn& bar = bars[2 * static_cast<std::size_t>(rank) + 1];  // the one after
      for (int from = 0; from < dp; ++from) {
        const Range shard = layout.dp_slice(0, 0, from);
        const double left = bar.x + bar.width * static_cast<double>(shard.begin - bucket.range.begin) /
                                        static_cast<double>(bucket.range.size());
        const double width = bar.width * static_cast<double>(shard.size()) / static_cast<double>(bucket.range.size());
        int outlines = 0, numbers = 0;
        for (const Drawn& one : page.of_class("mw-from"))
          outlines += one.text == fmt::format("from rank {}", from) && one.y < bar.y && one.bottom() > bar.bottom() &&
                              std::abs(one.x + one.width / 2 - left - width / 2) < 0.1
                          ? 1
                          : 0;
        for (const Drawn& one : page.of_class("mw-number"))
          numbers += one.text == std::to_string(from) && one.y > bar.bottom() && one.y < bar.bottom() + 10 &&
                             std::abs(one.x + one.width / 2 - left - width / 2) < 0.1
                         ? 1
                         : 0;
        CHECK(outlines == 1);
        CHECK(numbers == (width >= 9 ? 1 : 0));
      }
    }
  }
}

TEST_CASE(
    "strip_svg: a parameter's name stands inside of its piece where it has room, and no outline runs through it") {
  int found = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RandomLayout description(seed);
    const Recording recording = gather_of(description, description.plan());
    for (const int step : {0, 1}) {
      const DrawnPage page(strip_svg(recording, step));
      for (const Drawn& name : page.of_class("mw-in")) {
        ++found;
        const double width = 6.7 * static_cast<double>(name.text.size()), middle = name.x + name.width / 2;
        int inside = 0;
        for (const Drawn& one : page.all) {
          const bool here = one.tag == "rect" && one.y <= name.y && one.bottom() >= name.bottom();
          if (here && one.css_class.find("mw-t") == 0 && one.text.find(name.text + ",") == 0)
            inside += one.x <= middle - width / 2 && one.right() >= middle + width / 2 ? 1 : 0;
          if (here && one.css_class.find("mw-from") != std::string::npos)
            for (const double edge : {one.x, one.right()})
              CHECK((edge < middle - width / 2 + 2 || edge > middle + width / 2 - 2));
        }
        CHECK(inside == 1);
      }
    }
  }
  CHECK(found > 100);
}

TEST_CASE(
    "phases_svg: a row for each phase in which the rank holds something, with whom it exchanges and what it sends") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int dp = layout.grid.dp(), rank = dp - 1;
    Recording recording = gather_of(description, layout);
    recording.steps[0].title = "work: lay out";
    recording.steps[1].title = "work: gather";
    recording.steps.push_back(recording.steps[0]);  // in which this rank holds nothing
    recording.steps[2].number = 3;
    recording.steps[2].title = "work: rest";
    recording.steps[2].holds[static_cast<std::size_t>(rank)].clear();
    const std::string svg = phases_svg(recording, 0, 2, rank);
    CHECK(XmlReader(svg).complaint() == "");
    const DrawnPage page(svg);
    CHECK(page.complaint() == "");
    std::vector<std::string> names, partners, told;
    for (const Drawn& one : page.all) {
      if (one.css_class == "mw-name" && one.x < 100) names.push_back(one.text);
      if (one.css_class.find("mw-number") == 0 && one.x < 260) partners.push_back(one.text);
      if (one.css_class == "mw-quiet" && one.x < 100) told.push_back(one.text);
    }
    REQUIRE(names.size() == 2);
    CHECK(names[0] == "1 lay out");
    CHECK(names[1] == "2 gather");
    // Their numbers where there is room behind "from" and behind "to", else how many they are.
    std::vector<std::string> expected;
    for (const int most : {4, 5}) {
      const bool room = dp - 1 <= most;
      for (int other = 0; room && other < dp - 1; ++other) expected.push_back(std::to_string(other));
      const std::string count = fmt::format(">{} {} ranks<", most == 4 ? "from" : "to", dp - 1);
      CHECK((svg.find(count) != std::string::npos) == !room);
    }
    REQUIRE(partners.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(partners[i] == expected[i]);
    REQUIRE(told.size() == (dp > 1 ? 2 : 0));
    if (dp > 1) CHECK(told[1] == fmt::format("sends {} B", 4 * (dp - 1)));
    CHECK(svg.find("work: rest") == std::string::npos);
  }
}

TEST_CASE("pictures: the line around a parameter is ink on light and on dark pages, which every fill is told from") {
  const RandomLayout description(3);
  const Layout layout = description.plan();
  const auto has_ink = [](const std::string& svg, const std::string& selector) {
    for (const char* ink : {kInk.light, kInk.dark})
      if (svg.find(fmt::format("{}{{stroke:{}}}", selector, ink)) == std::string::npos) return false;
    return true;
  };
  CHECK(has_ink(strip_svg(gather_of(description, layout), 0), ".mw-strip .mw-fill"));
  CHECK(has_ink(buffer_map_svg(layout), ".mw-map .mw-gap"));
  CHECK(has_ink(sharding_map_svg({{"one", layout}}), ".mw-sharding .mw-span"));
}
