// The picture of lesson 17: well-formed, a bar for each bar of the played plans, on one scale, and none above another.
#include <doctest/doctest.h>

#include <stdexcept>

#include "lessons/lesson_17_overlap/overlap_tables.hpp"
#include "tests/near.hpp"
#include "tests/replay/drawn.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

PlayedPlan by_hand(std::int64_t span) {
  PlayedPlan played;
  played.link = {{0, {0, 1000}}, {1, {1000, 2000}}};
  played.processor = {{0, {1000, 1800}}, {1, {2000, span}}};
  played.span_ns = span;
  played.computing_ns = span - 1200;
  played.waiting_ns = 1200;
  return played;
}

}  // namespace

TEST_CASE("schedules_svg: bars where the plans have them, all on one scale") {
  const std::string svg = schedules_svg({{"a <b>", by_hand(4000)}, {"b", by_hand(8000)}}, "1 GB/s, 1 µs");
  CHECK(XmlReader(svg).complaint() == "");
  const DrawnPage page(svg);
  const auto firsts = page.of_class("mw-p0 mw-gap"), seconds = page.of_class("mw-p1 mw-gap");
  REQUIRE(firsts.size() == 4);  // a link and a processor in each of two
  REQUIRE(seconds.size() == 4);
  const double unit = firsts[0].width;  // 1,000 ns
  CHECK(seconds[0].x == near(firsts[0].x + unit, 1e-3));
  CHECK(firsts[1].x == near(firsts[0].x + unit, 1e-3));
  CHECK(firsts[1].width == near(0.8 * unit, 1e-2));
  CHECK(seconds[3].width == near(6 * unit, 1e-2));  // of the second plan, on the same scale
  CHECK(seconds[1].width == near(2 * unit, 1e-2));
  CHECK(firsts[1].y > firsts[0].y);
  CHECK(svg.find("a &lt;b&gt;") != std::string::npos);
  CHECK_THROWS_WITH_AS(schedules_svg({}, "x"), "a picture of schedules needs at least one of them",
                       std::invalid_argument);
}
