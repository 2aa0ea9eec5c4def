#include "lessons/lesson_15_sharding_layouts/sharding_map.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/replay/palette.hpp"
#include "src/layout/sharding.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/near.hpp"
#include "tests/replay/drawn.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;

namespace {

// The same parameters in each kind of ownership.
std::vector<std::pair<std::string, Layout>> all_kinds(RandomLayout random) {
  std::vector<std::pair<std::string, Layout>> layouts;
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
    random.own(ownership);
    layouts.emplace_back(ownership_name(ownership), random.plan());
  }
  return layouts;
}

}  // namespace

TEST_CASE("sharding_map_svg: any layouts: well-formed, the same every time; a run per matrix, marks, owners, bars") {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    const RandomLayout random(seed);
    INFO("RandomLayout(" << seed << ")");
    const auto layouts = all_kinds(random);
    const std::string svg = sharding_map_svg(layouts);
    CHECK(XmlReader(svg).complaint() == "");
    CHECK(svg == sharding_map_svg(layouts));
    const DrawnPage page(svg);
    std::size_t cut = 0, owned = 0, busy = 0;
    for (const auto& [name, layout] : layouts) {
      cut += static_cast<std::size_t>(sharding_of(layout).cut);
      for (const Index elements : sharding_of(layout).elements) busy += elements > 0;
      for (std::size_t b = 0; b < layout.buffers.size(); ++b)
        for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k)
          for (const Index count : layout.dp_counts(static_cast<int>(b), static_cast<int>(k))) owned += count > 0;
      CHECK(svg.find(fmt::format("{} · {} of {} cut", name, sharding_of(layout).cut, random.parameters.size())) !=
            std::string::npos);
    }
    std::size_t runs = 0, marks = 0;
    for (const Drawn& one : page.told(": elements ")) ++(one.css_class == "mw-dots mw-line" ? marks : runs);
    CHECK(runs == 3 * random.parameters.size());
    CHECK(page.told(" owns ").size() == owned);
    CHECK(marks == cut);
    CHECK(page.told("equal share of the elements").size() == busy);
    CHECK(page.told("equal share of the work").size() == busy);
  }
}

TEST_CASE("sharding_map_svg: bars are as high as the loads, to one scale; what a rank owns stands below its matrices") {
  const std::vector<Parameter> two = {{"a", {8, 8}}, {"b", {4, 16}}};
  const auto layout = [&](Ownership ownership, std::vector<int> owners) {
    return plan_layout(two, Grid().dp(2), {0, 1, 1, ownership, std::move(owners)});
  };
  const DrawnPage page(sharding_map_svg(
      {{"dealt", layout(Ownership::matrices, {0, 1})}, {"one owns all", layout(Ownership::matrices, {1, 1})}}));
  CHECK(page.complaint() == "");
  const std::vector<Drawn> elements = page.told("of the elements"), work = page.told("of the work");
  // Two ranks in the first layout, one in the second.
  REQUIRE(elements.size() == 3);
  REQUIRE(work.size() == 3);
  const double share = elements[0].height;
  CHECK(elements[1].height == near(share, 0.01));
  CHECK(elements[2].height == near(2 * share, 0.01));
  // 15,360 of 20,480 operations belong to the square matrix: 30 · 8³ against 20 · 4² · 16 + 10 · 4³.
  const double all = 30.0 * 512 + 20.0 * 256 + 640;
  CHECK(work[0].height == near(share * 2 * 30 * 512 / all, 0.01));
  CHECK(work[1].height == near(share * 2 * (20 * 256 + 640) / all, 0.01));
  CHECK(work[2].height == near(2 * share, 0.01));
  // All bars of a layout stand on one line.
  CHECK(std::abs(elements[0].bottom() - work[1].bottom()) < 0.02);
  CHECK(elements[0].bottom() < elements[2].y);

  const std::vector<Drawn> b = page.of_class("mw-p1 mw-line"), second = page.told("DP rank 1 owns");
  REQUIRE(b.size() == 2);
  REQUIRE(second.size() == 2);
  CHECK(std::abs(b[0].x - second[0].x) < 0.02);
  CHECK(std::abs(b[0].right() - second[0].right()) < 0.02);
  CHECK(second[0].y > b[0].bottom());
  CHECK(second[1].width == near(2 * second[0].width, 0.01));
}

TEST_CASE("sharding_map_svg: the buffers of a layout stand beside each other, and fill the row") {
  const std::vector<Parameter> two = {{"a", {8, 8}}, {"b", {8, 8}, SplitDim::none, /*group=*/1}};
  const DrawnPage page(sharding_map_svg({{"both", plan_layout(two, Grid().dp(2), {0, 1, 1, Ownership::buckets, {}})}}));
  CHECK(page.complaint() == "");
  const std::vector<Drawn> a = page.of_class("mw-p0 mw-line"), b = page.of_class("mw-p1 mw-line");
  REQUIRE(a.size() == 1);
  REQUIRE(b.size() == 1);
  CHECK(std::abs(a[0].right() - b[0].x) < 0.02);
  CHECK(std::abs(a[0].width - b[0].width) < 0.02);
  const std::vector<Drawn> owners = page.told("DP rank 1 owns");
  REQUIRE(owners.size() == 2);
  CHECK(std::abs(owners[0].right() - a[0].right()) < 0.02);
  CHECK(std::abs(owners[1].right() - b[0].right()) < 0.02);
}

TEST_CASE("sharding_map_svg: names with markup stay text; without a layout there is no picture") {
  const Layout layout = plan_layout({{"<b>&", {2, 2}}}, Grid().dp(2));
  CHECK(XmlReader(sharding_map_svg({{"\"<x>\"", layout}})).complaint() == "");
  CHECK(XmlReader(sharding_map_svg({{"nothing", plan_layout({}, Grid().dp(2))}})).complaint() == "");
  CHECK_THROWS_AS(sharding_map_svg({}), std::invalid_argument);
}

TEST_CASE("sharding_map_svg: up to 16 ranks have their numbers below their bars, and the legend has each colour once") {
  for (const int dp : {1, 2, 7, 8, 9, 15, 16, 17, 40}) {
    CAPTURE(dp);
    const DrawnPage page(sharding_map_svg({{"one", plan_layout({{"w", {dp, 4}}}, Grid().dp(dp), {0, 1, 1, {}, {}})}}));
    std::vector<int> numbers;
    for (const Drawn& one : page.all)
      if (one.css_class == "mw-middle mw-small mw-quiet") numbers.push_back(std::stoi(one.text));
    REQUIRE(numbers.size() == (dp <= 16 ? static_cast<std::size_t>(dp) : 0));
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<int>(i));
    int in_legend = 0;
    for (const Drawn& one : page.all) in_legend += one.tag == "text" && one.text.find("DP rank ") == 0 ? 1 : 0;
    CHECK(in_legend == std::min(dp, kColours));
  }
}
