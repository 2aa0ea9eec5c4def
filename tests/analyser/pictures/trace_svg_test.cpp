#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/analyser/figure_table.hpp"
#include "sim/pictures/xml_text.hpp"
#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"
#include "tests/pictures/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// The widths of the rectangles of a class, in the order in which they are drawn.
std::vector<double> widths_of(const std::string& svg, const std::string& style_class) {
  std::vector<double> widths;
  const std::string class_text = "class=\"" + style_class + "\"";
  for (std::size_t at = svg.find("<rect "); at != std::string::npos; at = svg.find("<rect ", at + 1)) {
    const std::string tag = svg.substr(at, svg.find('>', at) - at);
    if (tag.find(class_text) == std::string::npos) continue;
    widths.push_back(std::stod(tag.substr(tag.find("width=\"") + 7)));
  }
  return widths;
}

}  // namespace

TEST_CASE("trace_svg: well-formed, whatever names hold") {
  TraceWriting nasty;
  nasty.kernel("</svg><script>alert(1)</script> & \\\"x\\\" \\u0001", 0, 500).kernel("×", 600, 100);
  for (const std::string& json : {lesson_trace(), rich_trace(), nasty.json()}) {
    const std::string svg = trace_svg(picture_of({json}));
    CHECK(XmlReader(svg).complaint() == "");
    CHECK(svg.find("<script") == std::string::npos);
    CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
    CHECK(svg.find("NaN") == std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
  }
}

TEST_CASE("trace_svg: bars are as long as the summary says, and their figures are the summary's") {
  const TracePicture picture = picture_of(
      {TraceWriting(0, 2).kernel("gemm", 0, 500).collective("allreduce", 400, 300, 8, "Float", "[0, 1]", 2).json(),
       TraceWriting(1, 2).kernel("gemm", 0, 100).event("gpu_memcpy", "Memcpy DtoD", 150, 50).json()});
  const std::string svg = trace_svg(picture);
  const Summary& summary = picture.runs[0].summary;
  std::int64_t longest = 0;
  for (const RankSummary& rank : summary.ranks) longest = std::max(longest, rank.span_ns);
  for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
    const RankSummary& rank = summary.ranks[r];
    const auto parts = span_parts(rank);
    std::string described = fmt::format("{}: span {} ms", rank.label, ms_text(rank.span_ns));
    for (int part = 0; part < kSpanParts; ++part) {
      const std::int64_t ns = parts[static_cast<std::size_t>(part)];
      // The first of each class is its swatch above the bars.
      const double width = widths_of(svg, fmt::format("mw-part{}", part)).at(1 + r);
      CHECK(width == doctest::Approx(912.0 * static_cast<double>(ns) / static_cast<double>(longest)).epsilon(0.001));
      const std::string figures = span_part_figures(ns, rank.span_ns);
      CHECK(svg.find(">" + figures + "<") != std::string::npos);
      described += fmt::format(", {} {}", span_part_text(static_cast<SpanPart>(part)), figures);
    }
    CHECK(svg.find(described + ".") != std::string::npos);
  }
}

TEST_CASE(
    "trace_svg: a lane's slices lie where their events were; what is narrower than half a unit is drawn together") {
  TraceWriting trace;
  trace.kernel("long", 0, 1000);
  for (int i = 0; i < 5000; ++i) trace.kernel("tiny", 1000 + 0.2 * i, 0.1);
  const std::string svg = trace_svg(picture_of({trace.json()}));
  const std::vector<double> widths = widths_of(svg, fmt::format("mw-lane{}", static_cast<int>(LaneKind::computation)));
  CHECK(widths.at(0) == doctest::Approx(398 - 0.2).epsilon(0.001));  // half of the span
  CHECK(widths.size() > 400);
  CHECK(widths.size() < 2000);
  CHECK(svg.find(fmt::format("5,001 events, drawn as {}", fmt::format("{}{}", widths.size() >= 1000 ? "1," : "",
                                                                      widths.size() % 1000))) != std::string::npos);
}

TEST_CASE("trace_svg: two runs stand below each other on one time scale") {
  TracePicture picture = picture_of({TraceWriting().kernel("a", 0, 1000).json()});
  picture.runs.push_back(picture_of({TraceWriting().kernel("b", 5000, 500).json()}).runs[0]);
  const std::string svg = trace_svg(picture);
  CHECK(XmlReader(svg).complaint() == "");
  const std::vector<double> widths = widths_of(svg, "mw-lane0");
  REQUIRE(widths.size() == 2);
  CHECK(widths[0] / widths[1] == doctest::Approx(2).epsilon(0.001));
  CHECK(svg.find(">A · rank 0<") != std::string::npos);
  CHECK(svg.find(">B · rank 0<") != std::string::npos);
}
