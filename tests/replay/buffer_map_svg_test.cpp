#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "sim/replay/buffer_map.hpp"
#include "sim/replay/palette.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/replay/drawn.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;

namespace {

int times(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

bool close(double a, double b) { return std::abs(a - b) < 0.02; }

std::string complaint(const std::string& xml) { return XmlReader(xml).complaint(); }

// Relative luminance and contrast as WCAG 2 defines them.
double luminance(const char* colour) {
  const long rgb = std::strtol(colour + 1, nullptr, 16);
  const auto linear = [](long byte) {
    const double c = static_cast<double>(byte) / 255;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) + 0.0722 * linear(rgb & 255);
}

double contrast(const char* a, const char* b) {
  const double high = std::max(luminance(a), luminance(b));
  const double low = std::min(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

}  // namespace

TEST_CASE("well-formed: the test's own reader of XML sees what is wrong") {
  CHECK(complaint("<a b=\"1\"><c/>x &amp; y</a>\n") == "");
  for (const char* bad :
       {"<a>", "<a></b>", "<a><b></a></b>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>", "<a>x < y</a>",
        "<a>&nbsp;</a>", "<a/><b/>", "<a b=\"<\"/>", "text", "<a>\x01</a>", "<a b=\"\"c=\"\"", ""}) {
    INFO(bad);
    CHECK(complaint(bad) != "");
  }
}

TEST_CASE(
    "buffer_map_svg: any layout: parameters, boundaries, owners and the marked shard stand where their elements are") {
  for (unsigned seed = 9000; seed < 9120; ++seed) {
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int dp = layout.grid.dp(), marked = static_cast<int>(seed) % (dp + 1) - 1;
    INFO("RandomLayout(" << seed << "), marked " << marked);
    const std::string svg = buffer_map_svg(layout, marked);
    CHECK(complaint(svg) == "");
    CHECK(svg == buffer_map_svg(layout, marked));
    const DrawnPage page(svg);
    CHECK(page.complaint() == "");
    const std::vector<Drawn> runs = page.told(": TP slice "), outlines = page.told(" owns elements ");
    const std::vector<Drawn> boundaries = page.of_class("mw-line"), grounds = page.told("padding");
    std::vector<Drawn> lines, rows;
    for (const Drawn& one : boundaries)
      if (one.tag == "line") lines.push_back(one);
    for (const Drawn& one : grounds)
      if (one.css_class == "mw-padding") rows.push_back(one);
    Index elements = 0;
    bool padded = false;
    for (const Buffer& buffer : layout.buffers) elements += buffer.size, padded = padded || buffer.padding > 0;
    CHECK(times(svg, fmt::format("Every DP rank owns {} of {} elements.", elements / dp, elements)) ==
          (layout.buffers.empty() ? 0 : 1));

    std::size_t row = 0, run = 0, line = 0, outline = 0;
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
          CHECK(drawn.css_class == fmt::format("mw-p{} mw-line", meta.parameter % kColours));
          CHECK(drawn.text.find(fmt::format("{}: TP slice {}, elements {}, DP ranks ", meta.name,
                                            shape_text(meta.shape.rows, meta.shape.cols),
                                            range_text(meta.global_range))) == 0);
          CHECK(close(drawn.x, x(meta.global_range.begin)));
          CHECK((close(drawn.right(), x(meta.global_range.end)) || close(drawn.width, 0.6)));
          CHECK(close(drawn.y, here.y));
          CHECK(close(drawn.height, here.height));
        }
        for (int rank = 0; rank < dp; ++rank) {
          const Range shard = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), rank);
          if (rank > 0) {
            REQUIRE(line < lines.size());
            CHECK(close(lines[line].x, x(shard.begin)));
            CHECK(lines[line].width == 0);
            CHECK(lines[line].y < here.y);
            CHECK(lines[line++].bottom() > here.bottom());
          }
          // Every shard is outlined in its owner's colour, where there is room; the marked one is framed in any case.
          if (rank != marked && x(shard.end) - x(shard.begin) <= 12) continue;
          REQUIRE(outline < outlines.size());
          const Drawn& around = outlines[outline++];
          CHECK(around.text == fmt::format("DP rank {} owns elements {}", rank, range_text(shard)));
          CHECK(around.css_class ==
                fmt::format("mw-none mw-o{} {}", rank % kColours, rank == marked ? "mw-frame" : "mw-wide"));
          CHECK(std::abs(around.x - x(shard.begin)) < 1.6);
          CHECK(std::abs(around.right() - x(shard.end)) < 1.6);
          CHECK(around.y < here.y);
          CHECK(around.bottom() > here.bottom());
        }
      }
    CHECK(row == rows.size());
    CHECK(run == runs.size());
    CHECK(line == lines.size());
    CHECK(outline == outlines.size());
    CHECK(times(svg, "padding, of no parameter") == (padded ? 1 : 0));
    CHECK(times(svg, "what DP rank ") == (marked >= 0 ? 1 : 0));

    // Each swatch of the legend stands beside its words.
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters) {
        int beside = 0;
        for (const Drawn& swatch : page.of_class(fmt::format("mw-p{}", meta.parameter % kColours)))
          for (const Drawn& name : page.all)
            beside += swatch.width == 14 && name.tag == "text" &&
                              name.text == meta.name + "  " + shape_text(meta.shape.rows, meta.shape.cols) &&
                              name.x > swatch.right() && name.x < swatch.right() + 20 && name.y >= swatch.y &&
                              name.bottom() <= swatch.bottom()
                          ? 1
                          : 0;
        CHECK(beside == 1);
      }
  }
}

// The numbers over the shards, in order: those of texts "7" or "rank 7" in the middle of something.
std::vector<int> labelled_ranks(const std::string& svg) {
  std::vector<int> ranks;
  const std::regex label("class=\"mw-middle mw-[^\"]*\"[^>]*>(?:rank )?([0-9]+)</text>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at)
    ranks.push_back(std::stoi((*at)[1]));
  return ranks;
}

TEST_CASE("buffer_map_svg: the marked rank has its number, and so has every other one for which there is room") {
  for (const int dp : {4, 64, 128}) {
    const Layout layout = plan_layout({{"w", {dp, 4}, SplitDim::none}}, Grid().dp(dp), {});
    const std::vector<int> all = labelled_ranks(buffer_map_svg(layout, -1));
    REQUIRE(all.size() > 1);
    const int step = all[1] - all[0];
    CHECK((dp > 4) == (step > 1));
    for (int marked = 0; marked<dp; marked += dp> 4 ? 7 : 1) {
      CAPTURE(dp);
      CAPTURE(marked);
      std::vector<int> expected;
      for (int rank = 0; rank < dp; ++rank)
        if (rank == marked || (rank % step == 0 && std::abs(rank - marked) >= step)) expected.push_back(rank);
      CHECK(labelled_ranks(buffer_map_svg(layout, marked)) == expected);
    }
  }
}

TEST_CASE("buffer_map_svg: has a title, a description, and colours for light and dark") {
  const std::string svg = buffer_map_svg(plan_layout({{"w", {9, 9}, SplitDim::none, 0}}, Grid().dp(4)), 2);
  for (const std::string& once :
       {std::string("<title>Map of the virtual buffer, dp 4 × tp 1</title>"), std::string("<desc>"),
        std::string("The shards of DP rank 2 are framed."), std::string("@media (prefers-color-scheme:dark)"),
        std::string("mw-p0{fill:") + parameter_colour(0).light, std::string("mw-p0{fill:") + parameter_colour(0).dark})
    CHECK_MESSAGE(times(svg, once) == 1, once);
}

TEST_CASE("buffer_map_svg: any name stays text") {
  const std::string names[] = {"<script>alert(1)</script>",
                               "a & b",
                               "\"quoted\" 'twice'",
                               "tab\tnew\nline",
                               "\x01\x1b[0m",
                               "broken \xff\xc3 utf-8",
                               "]]>",
                               "größe × 重み",
                               "&amp;",
                               std::string("nul\0", 4),
                               ""};
  std::vector<Parameter> parameters;
  for (const std::string& name : names) parameters.push_back({name, {40, 40}, SplitDim::none, 0});
  LayoutOptions options;
  options.bucket_capacity = 1;
  const std::string svg = buffer_map_svg(plan_layout(parameters, Grid().dp(2), options), 0);
  CHECK(complaint(svg) == "");
  CHECK(times(svg, "<script") == 0);
  CHECK(times(svg, ">a &amp; b<") >= 1);
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
  CHECK(xml_text("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&apos;");
  CHECK(xml_text("größe × 重み 𝄞") == "größe × 重み 𝄞");
  CHECK(xml_text("\xEF\xBF\xBE") == replaced);  // U+FFFE
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

TEST_CASE("buffer_map_svg: no parameters, and a rank that is not there") {
  CHECK(complaint(buffer_map_svg(plan_layout({}, Grid()))) == "");
  const Layout layout = plan_layout({{"w", {9, 9}, SplitDim::none, 0}}, Grid().dp(4));
  CHECK(usage_error([&] { buffer_map_svg(layout, 4); }) ==
        "there is no DP rank 4 to mark in dp 4 × tp 1; try 0 to 3, or -1 for none");
  CHECK(usage_error([&] { buffer_map_svg(layout, -2); }).find("there is no DP rank -2") == 0);
}

TEST_CASE("palette: text on a parameter, and a rank on the page, have a contrast of at least 4.5, light and dark") {
  for (int i = 0; i < kColours; ++i) {
    INFO("colour " << i);
    CHECK(contrast(parameter_colour(i).light, kInk.light) >= 4.5);
    CHECK(contrast(parameter_colour(i).dark, kInk.dark) >= 4.5);
    CHECK(contrast(rank_colour(i).light, kPaper.light) >= 4.5);
    CHECK(contrast(rank_colour(i).dark, kPaper.dark) >= 4.5);
  }
  // Padding is told apart by its line and its hatching.
  CHECK(contrast(kPadding.light, kInk.light) >= 3);
  CHECK(contrast(kPadding.dark, kInk.dark) >= 3);
  CHECK(contrast(kQuiet.light, kPaper.light) >= 4.5);
  CHECK(contrast(kQuiet.dark, kPaper.dark) >= 4.5);
  CHECK(parameter_colour(kColours).light == parameter_colour(0).light);
}
