// Where everything stands in the maps: worked out here once more from the layout and the grid alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "sim/replay/buffer_map.hpp"
#include "sim/replay/grid_map.hpp"
#include "sim/replay/palette.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/replay/drawn.hpp"

using namespace muonwalk;

namespace {

bool near(double a, double b) { return std::abs(a - b) < 0.02; }

}  // namespace

TEST_CASE("grid_map_svg: every rank stands at its coordinates, once per kind of group, in the colour of its group") {
  for (int dp = 1; dp <= 4; ++dp)
    for (int tp = 1; tp <= 4; ++tp)
      for (int pp = 1; pp <= 3; ++pp) {
        const Grid grid = Grid().dp(dp).tp(tp).pp(pp);
        CAPTURE(grid.text());
        const DrawnPage page(grid_map_svg(grid));
        CHECK(page.complaint() == "");
        const std::vector<Drawn> boxes = page.of_class("mw-box");
        REQUIRE(boxes.size() == static_cast<std::size_t>(3 * grid.size()));
        std::map<std::string, std::pair<double, double>> at;  // where a rank stands in each of the three
        for (std::size_t i = 0; i < boxes.size(); ++i) {
          const std::string name = i < boxes.size() / 3 ? "tp" : i < 2 * boxes.size() / 3 ? "dp" : "pp";
          const int rank = std::atoi(boxes[i].text.c_str() + 5);
          const Place place = grid.place(rank);
          int group = -1;
          const std::vector<Group> groups = grid.groups(name);
          for (std::size_t g = 0; g < groups.size(); ++g)
            for (int member : groups[g].ranks) group = member == rank ? static_cast<int>(g) : group;
          const std::vector<int> members = grid.group(name, rank).ranks;
          CHECK(boxes[i].text == fmt::format("rank {}: dp {}, tp {}, pp {}; {} group {}: ranks {}", rank, place.dp,
                                             place.tp, place.pp, name, group, fmt::join(members, ", ")));
          CHECK(boxes[i].css_class == fmt::format("mw-box mw-p{}", group % kColours));
          CHECK(at.emplace(name + std::to_string(rank), std::make_pair(boxes[i].x, boxes[i].y)).second);
          // Its number and its group stand inside of its box.
          int inside = 0;
          for (const Drawn& text : page.of_class("mw-middle"))
            inside += text.x >= boxes[i].x && text.right() <= boxes[i].right() && text.y >= boxes[i].y &&
                              text.bottom() <= boxes[i].bottom() &&
                              (text.text == std::to_string(rank) || text.text == fmt::format("group {}", group))
                          ? 1
                          : 0;
          CHECK(inside == 2);
        }
        for (const char* name : {"tp", "dp", "pp"})
          for (int a = 0; a < grid.size(); ++a)
            for (int b = 0; b < grid.size(); ++b) {
              const Place p = grid.place(a), q = grid.place(b);
              const auto [x, y] = at[name + std::to_string(a)];
              const auto [u, v] = at[name + std::to_string(b)];
              CHECK((x < u) == (p.pp < q.pp || (p.pp == q.pp && p.tp < q.tp)));
              CHECK((y < v) == (p.dp < q.dp));
            }
        for (const char* name : {"tp", "dp", "pp"}) {  // column and row say which they are
          for (int rank = 0; rank < grid.size(); ++rank) {
            const Place place = grid.place(rank);
            const auto [x, y] = at[name + std::to_string(rank)];
            int columns = 0, rows = 0;
            for (const Drawn& text : page.all) {
              const double middle = text.x + text.width / 2;
              if (text.text ==
                  (pp > 1 ? fmt::format("tp {} pp {}", place.tp, place.pp) : fmt::format("tp {}", place.tp)))
                columns += near(middle, x + boxes[0].width / 2) ? 1 : 0;
              if (text.text == fmt::format("dp {}", place.dp))
                rows += text.y > y && text.bottom() < y + boxes[0].height && text.right() < x ? 1 : 0;
            }
            CHECK(columns == 3);
            CHECK(rows == 1);
          }
        }
      }
}

TEST_CASE("buffer_map_svg: parameters, boundaries and the marked shard stand where their elements are") {
  for (unsigned seed = 9000; seed < 9120; ++seed) {
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int dp = layout.grid.dp(), marked = static_cast<int>(seed) % (dp + 1) - 1;
    INFO("RandomLayout(" << seed << "), marked " << marked);
    const DrawnPage page(buffer_map_svg(layout, marked));
    std::vector<Drawn> runs = page.of_class("mw-gap"), rows = page.of_class("mw-edge"), frames;
    const std::vector<Drawn> boundaries = page.of_class("mw-boundary");
    for (const Drawn& one : page.all)
      if (one.css_class.find("mw-frame") != std::string::npos) frames.push_back(one);
    CHECK(page.complaint() == "");
    Index elements = 0;
    for (const Buffer& buffer : layout.buffers) elements += buffer.size;
    int told = 0;
    for (const Drawn& one : page.of_class("mw-prose"))
      told += one.text.find(fmt::format("Every DP rank owns {} of {} elements.", elements / dp, elements)) == 0 ? 1 : 0;
    CHECK(told == (layout.buffers.empty() ? 0 : 1));

    std::size_t row = 0, run = 0, boundary = 0;
    std::set<int> said;
    for (std::size_t b = 0; b < layout.buffers.size(); ++b)
      for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k, ++row) {
        REQUIRE(row < rows.size());
        const Drawn& here = rows[row];
        const Bucket& bucket = layout.buffers[b].buckets[k];
        const auto x = [&](Index element) {
          return here.x + here.width * static_cast<double>(element - bucket.range.begin) /
                              static_cast<double>(bucket.range.size());
        };
        CHECK((row == 0 || here.y >= rows[row - 1].bottom()));
        for (int p : bucket.parameters) {
          const DistMeta& meta = layout.buffers[b].parameters[static_cast<std::size_t>(p)];
          REQUIRE(run < runs.size());
          const Drawn& drawn = runs[run++];
          CHECK(drawn.css_class == fmt::format("mw-p{} mw-gap", meta.parameter % kColours));
          CHECK(drawn.text.find(fmt::format("{}: TP slice {}, elements {}, DP ranks ", meta.name,
                                            shape_text(meta.shape.rows, meta.shape.cols),
                                            range_text(meta.global_range))) == 0);
          CHECK(near(drawn.x, x(meta.global_range.begin)));
          CHECK((near(drawn.right(), x(meta.global_range.end)) || near(drawn.width, 0.6)));
          CHECK(near(drawn.y, here.y));
          CHECK(near(drawn.height, here.height));
        }
        for (int rank = 1; rank < dp; ++rank) {
          REQUIRE(boundary < boundaries.size());
          const Drawn& drawn = boundaries[boundary++];
          CHECK(near(drawn.x, x(layout.dp_slice(static_cast<int>(b), static_cast<int>(k), rank).begin)));
          CHECK(drawn.width == 0);
          CHECK(drawn.y < here.y);
          CHECK(drawn.bottom() > here.bottom());
        }
        if (marked >= 0) {
          const Range slice = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), marked);
          REQUIRE(row < frames.size());
          CHECK(near(frames[row].x, x(slice.begin)));
          CHECK(near(frames[row].right(), x(slice.end)));
          CHECK(frames[row].css_class == fmt::format("mw-none mw-frame{}", marked % kColours));
          CHECK(frames[row].y < here.y);
          CHECK(frames[row].bottom() > here.bottom());
        }
      }
    CHECK(row == rows.size());
    CHECK(run == runs.size());
    CHECK(boundary == boundaries.size());

    // Each swatch of the legend stands beside its words.
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters) {
        int beside = 0;
        for (const Drawn& swatch : page.of_class(fmt::format("mw-p{}", meta.parameter % kColours)))
          for (const Drawn& name : page.of_class("mw-ink"))
            beside += swatch.width == 14 && swatch.height == 14 && name.text == meta.name && name.x > swatch.right() &&
                              name.x < swatch.right() + 20 && name.y >= swatch.y && name.bottom() <= swatch.bottom()
                          ? 1
                          : 0;
        CHECK(beside == 1);
      }
  }
}

TEST_CASE("xml_text: every character is itself, an entity or U+FFFD; what is not UTF-8 is replaced byte by byte") {
  const std::string replaced = "\xEF\xBF\xBD";
  const auto bytes = [](std::initializer_list<int> all) {
    std::string text;
    for (int byte : all) text += static_cast<char>(byte);
    return text;
  };
  for (int byte = 0; byte < 256; ++byte) {
    CAPTURE(byte);
    const std::string one = bytes({byte}), shown = xml_text(one);
    if (byte == '&' || byte == '<' || byte == '>' || byte == '"' || byte == '\'')
      CHECK((shown.front() == '&' && shown.back() == ';'));
    else
      CHECK(shown == ((byte >= 32 && byte < 128) || byte == 9 || byte == 10 || byte == 13 ? one : replaced));
  }
  // Two bytes, three and four, at the ends of what each length is for; and what is shorter than it is written.
  for (const std::string& good :
       {bytes({0xC2, 0x80}), bytes({0xDF, 0xBF}), bytes({0xE0, 0xA0, 0x80}), bytes({0xED, 0x9F, 0xBF}),
        bytes({0xEE, 0x80, 0x80}), bytes({0xF0, 0x90, 0x80, 0x80}), bytes({0xF4, 0x8F, 0xBF, 0xBF})})
    CHECK(xml_text("a" + good + "b") == "a" + good + "b");
  for (const std::string& bad :
       {bytes({0xC1, 0xBF}), bytes({0xE0, 0x9F, 0xBF}), bytes({0xED, 0xA0, 0x80}), bytes({0xF0, 0x8F, 0xBF, 0xBF}),
        bytes({0xF4, 0x90, 0x80, 0x80}), bytes({0xC2}), bytes({0xE2, 0x82}), bytes({0xC2, 0xC2})}) {
    std::string expected = "a";
    for (std::size_t i = 0; i < bad.size(); ++i) expected += replaced;
    CHECK(xml_text("a" + bad) == expected);
  }
}
