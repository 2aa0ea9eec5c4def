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
#include "tests/layout/expect_usage_error.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;

namespace {

int times(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

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

TEST_CASE("buffer_map_svg: any layout: well-formed, the same every time, a boundary, a run and a frame for each") {
  for (unsigned seed = 7000; seed < 7200; ++seed) {
    const RandomLayout description(seed);
    const Layout layout = description.plan();
    const int dp = layout.grid.dp();
    const int marked = static_cast<int>(seed) % (dp + 1) - 1;
    INFO("RandomLayout(" << seed << "), marked " << marked);
    const std::string svg = buffer_map_svg(layout, marked);
    CHECK(complaint(svg) == "");
    CHECK(svg == buffer_map_svg(layout, marked));
    int buckets = 0;
    int padding = 0;
    for (const Buffer& buffer : layout.buffers) {
      buckets += static_cast<int>(buffer.buckets.size());
      padding += buffer.padding > 0 ? 1 : 0;
    }
    CHECK(times(svg, "class=\"mw-boundary\"") == buckets * (dp - 1));
    CHECK(times(svg, " mw-gap\" stroke-width=\"") == static_cast<int>(description.parameters.size()));
    // A frame on every bucket, and one in the legend.
    CHECK(times(svg, "class=\"mw-none mw-frame") == (marked < 0 ? 0 : buckets + 1));
    // Every shard of a rank is outlined in its colour, or framed, where there is room and it has any.
    if (dp <= 7)
      for (int rank = 0; rank < dp; ++rank) {
        const int owned = marked == rank ? 0 : buckets;
        CHECK(times(svg, fmt::format("<title>DP rank {} owns elements ", rank)) == owned);
        CHECK(times(svg, fmt::format("class=\"mw-none mw-of{} mw-owner\"><title>DP rank {} owns", rank, rank)) ==
              owned);
      }
    CHECK(times(svg, "belongs to no parameter") == (padding > 0 ? 1 : 0));
    for (const Parameter& parameter : description.parameters) CHECK(times(svg, ">" + parameter.name + "<") >= 1);
  }
}

TEST_CASE("buffer_map_svg: a run begins and ends where the parameter does") {
  LayoutOptions options;
  options.parameter_alignment = 1;
  const Layout layout =
      plan_layout({{"a", {1, 2}, SplitDim::none, 0}, {"b", {1, 5}, SplitDim::none, 0}}, Grid().dp(4), options);
  const std::string svg = buffer_map_svg(layout, 1);
  // Eight elements on 800 units that begin at 136: a 0–1, b 2–6, one of padding; boundaries after every two elements.
  CHECK(times(svg, "<rect x=\"136.00\" y=\"128.00\" width=\"200.00\" height=\"34.00\" class=\"mw-p0 mw-gap\" ") == 1);
  CHECK(times(svg, "<rect x=\"336.00\" y=\"128.00\" width=\"500.00\" height=\"34.00\" class=\"mw-p1 mw-gap\" ") == 1);
  for (const char* x : {"336.00", "536.00", "736.00"}) CHECK(times(svg, std::string("<line x1=\"") + x + "\"") == 1);
  CHECK(times(svg, "<title>b: TP slice 1 × 5, elements 2–6, DP ranks 1–3</title>") == 1);
  CHECK(times(svg, "<rect x=\"336.00\" y=\"123.00\" width=\"200.00\" height=\"44.00\" rx=\"3\"") == 1);
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
  CHECK(times(svg, "<title>Map of the virtual buffer, dp 4 × tp 1</title>") == 1);
  CHECK(times(svg, "<desc>") == 1);
  CHECK(times(svg, "The shards of DP rank 2 are framed.") == 1);
  CHECK(times(svg, "@media (prefers-color-scheme:dark)") == 1);
  CHECK(times(svg, std::string("fill:") + parameter_colour(0).light) == 1);
  CHECK(times(svg, std::string("fill:") + parameter_colour(0).dark) == 1);
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

TEST_CASE("xml_text: what XML forbids becomes U+FFFD, the rest stays") {
  CHECK(xml_text("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&apos;");
  CHECK(xml_text("größe × 重み 𝄞") == "größe × 重み 𝄞");
  CHECK(xml_text("\x01") == "\xEF\xBF\xBD");
  CHECK(xml_text("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");      // an overlong slash
  CHECK(xml_text("\xED\xA0\x80").find("\xEF\xBF\xBD") == 0);      // a surrogate
  CHECK(xml_text("\xEF\xBF\xBE") == "\xEF\xBF\xBD");              // U+FFFE
  CHECK(xml_text("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");      // cut short
  CHECK(xml_text("\xF4\x90\x80\x80").find("\xEF\xBF\xBD") == 0);  // beyond U+10FFFF
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
  // Two fills that meet are told apart by the line between them, and padding by its line and its hatching.
  for (int i = 0; i < kColours; ++i) {
    CHECK(contrast(parameter_colour(i).light, kInk.light) >= 3);
    CHECK(contrast(parameter_colour(i).dark, kInk.dark) >= 3);
  }
  CHECK(contrast(kPadding.light, kInk.light) >= 3);
  CHECK(contrast(kPadding.dark, kInk.dark) >= 3);
  CHECK(contrast(kQuiet.light, kPaper.light) >= 4.5);
  CHECK(contrast(kQuiet.dark, kPaper.dark) >= 4.5);
  CHECK(parameter_colour(kColours).light == parameter_colour(0).light);
}
