// The picture of lesson 19: well-formed, a box for each move and a bar for what is held, all where the timelines have
// them.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "tests/near.hpp"
#include "tests/replay/drawn.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

NamedTimelines both(int stages, int micro_batches) {
  NamedTimelines timelines;
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    timelines.emplace_back(pipeline_schedule_name(schedule), play_pipeline(schedule, stages, micro_batches, 1, 2));
  return timelines;
}

// Of a class, those that are in a lane: the others are in the legend.
std::vector<Drawn> in_lanes(const DrawnPage& page, const std::string& css_class) {
  auto all = page.of_class(css_class);
  all.erase(
      std::remove_if(all.begin(), all.end(), [](const Drawn& one) { return one.width <= 14 && one.height == 14; }),
      all.end());
  return all;
}

}  // namespace

TEST_CASE("pipelines_svg: any pipeline: nothing overlaps or leaves the page, and every move has its box") {
  for (int stages = 1; stages <= 8; ++stages)
    for (const int micro_batches : {1, 2, 4, 8, 16, 64}) {
      INFO(stages << " stages, " << micro_batches << " micro-batches");
      const auto timelines = both(stages, micro_batches);
      const std::string svg = pipelines_svg("Two schedules", timelines);
      REQUIRE(XmlReader(svg).complaint() == "");
      const DrawnPage page(svg);
      REQUIRE(page.complaint() == "");
      const auto moves = static_cast<std::size_t>(2 * stages * micro_batches);
      REQUIRE(in_lanes(page, "mw-p0").size() == moves);
      REQUIRE(in_lanes(page, "mw-p4").size() == moves);
      REQUIRE(in_lanes(page, "mw-padding").size() == static_cast<std::size_t>(2 * stages));
    }
}

TEST_CASE("pipelines_svg: boxes and bars where the timelines have them, on one scale") {
  const auto timelines = both(3, 4);
  const DrawnPage page(pipelines_svg("Two schedules", timelines));
  const auto lanes = in_lanes(page, "mw-padding");
  REQUIRE(lanes.size() == 6);
  const auto forwards = in_lanes(page, "mw-p0"), backwards = in_lanes(page, "mw-p4");
  const double unit = forwards[0].width;
  std::size_t next_forward = 0, next_backward = 0, next_held = 0;
  const auto bars = in_lanes(page, "mw-grey");
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const PipelineTimeline& timeline = timelines[lane / 3].second;
    const int stage = static_cast<int>(lane % 3);
    CAPTURE(lane);
    for (const PipelineSpan& span : timeline.stages[lane % 3]) {
      const bool forward = span.move.kind == PipelineMove::Kind::forward;
      const Drawn& box = forward ? forwards.at(next_forward++) : backwards.at(next_backward++);
      CHECK(box.x == near(lanes[lane].x + unit * double(span.time.begin), 1e-3));
      CHECK(box.right() == near(lanes[lane].x + unit * double(span.time.end), 1e-3));
      CHECK(box.y == lanes[lane].y);
      CHECK(box.text.find(move_name(span.move) + ",") != std::string::npos);
      CHECK(box.text.find("stage " + std::to_string(stage) + ":") == 0);
    }
    CHECK(lanes[lane].width == near(unit * double(timeline.extent().end), 1e-3));
    const double each = bars.at(0).height;  // of one micro-batch, in the whole picture
    for (const HeldActivations& held : timeline.held(stage)) {
      const Drawn& bar = bars.at(next_held++);
      CHECK(bar.x == near(lanes[lane].x + unit * double(held.time.begin), 1e-3));
      CHECK(bar.width == near(unit * double(held.time.end - held.time.begin), 1e-3));
      CHECK(bar.height == near(each * held.micro_batches, 1e-2));
      CHECK(bar.y > lanes[lane].bottom());
    }
  }
  CHECK(next_forward == forwards.size());
  CHECK(next_backward == backwards.size());
  CHECK(next_held == bars.size());
}

TEST_CASE("pipelines_svg: its words say how long each takes, its bubble, and what is held") {
  const std::string svg = pipelines_svg("Two", {{"played <here>", both(2, 4)[0].second}});
  CHECK(svg.find("played &lt;here&gt; · 15 units · bubble 25.0 % on every stage, 25.0 % by the formula") !=
        std::string::npos);
  CHECK(svg.find("Micro-batches held at most, by stage: 4, 4.") != std::string::npos);
}

TEST_CASE("pipelines_svg: nothing to draw is refused") {
  CHECK_THROWS_WITH_AS(pipelines_svg("x", {}), "a picture of pipelines needs at least one of them",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(pipelines_svg("x", {{"empty", {}}}), "a pipeline without moves can't be drawn",
                       std::invalid_argument);
}
