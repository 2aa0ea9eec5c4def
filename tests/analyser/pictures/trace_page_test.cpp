#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/pictures/page_data.hpp"
#include "sim/analyser/pictures/page_texts.hpp"
#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

std::string source_file(const std::string& path) { return read_text(MUONWALK_SOURCE_DIR "/" + path); }

nlohmann::json data_of(const std::string& page) {
  const std::string open = "id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("embed_texts: the program holds the files byte for byte") {
  CHECK(page_texts::echarts_js == source_file("third_party/echarts/echarts.min.js"));
  CHECK(page_texts::echarts_notice == source_file("third_party/echarts/NOTICE"));
  CHECK(page_texts::page_html == source_file("sim/analyser/pictures/page/page.html"));
  CHECK(page_texts::page_css == source_file("sim/analyser/pictures/page/page.css"));
  CHECK(page_texts::page_js == source_file("sim/analyser/pictures/page/page.js"));
  CHECK(page_texts::bars_js == source_file("sim/analyser/pictures/page/bars.js"));
  CHECK(page_texts::timeline_js == source_file("sim/analyser/pictures/page/timeline.js"));
}

TEST_CASE("trace_page: names can neither end a script nor fill a place of the page, and stay what they are") {
  TraceWriting trace;
  trace.kernel("</script><script>alert(1)</script>", 0, 10).kernel("{{data}} \\u2028 <!--", 20, 10);
  const std::string page = trace_page(picture_of({trace.json()}));
  CHECK(times(page, "</script>") == 3);  // the library, the data, our own
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  const auto texts = data_of(page)["texts"];
  CHECK(texts[0] == "</script><script>alert(1)</script>");
  CHECK(texts[1] == "{{data}} \u2028 <!--");
}

TEST_CASE("trace_page: it loads nothing") {
  const std::string page = trace_page(picture_of({rich_trace()}));
  for (const char* loading : {"src=\"", "url(", "@import", "<iframe", "<object", "<embed"}) {
    CAPTURE(loading);
    CHECK(times(page, loading) == times(page_texts::echarts_js, loading));
  }
  CHECK(times(page, "<link") == 1);
  CHECK(page.find("<link rel=\"icon\" href=\"data:,\">") != std::string::npos);
}

TEST_CASE("trace_page: bars, slices and tables hold the summary's figures") {
  const TracePicture picture = picture_of({lesson_trace()});
  const std::string page = trace_page(picture);
  const auto data = data_of(page);
  REQUIRE(data["bars"].size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    const RankSummary& rank = picture.runs[0].summary.ranks[r];
    CHECK(data["bars"][r]["span_ns"] == rank.span_ns);
    CHECK(data["bars"][r]["parts_ns"] == nlohmann::json(span_parts(rank)));
    for (const std::int64_t part : span_parts(rank))
      CHECK(page.find("<td>" + span_part_figures(part, rank.span_ns) + "</td>") != std::string::npos);
  }
  CHECK(data["slices"].size() == 8);
  CHECK(data["span_ns"] == 100'000);
}

TEST_CASE("trace_page: a large trace is drawn with as many slices as were allowed, and the page says so") {
  TraceWriting trace;
  for (int i = 0; i < 40'000; ++i) trace.kernel("k" + std::to_string(i % 7), i, 0.5 + 0.1 * (i % 3), 7 + i % 2);
  const TracePicture picture = picture_of({trace.json()});
  const std::string page = trace_page(picture, 3000);
  const auto data = data_of(page);
  CHECK(data["slices"].size() <= 3000);
  CHECK(data["slices"].size() > 1000);
  std::int64_t events = 0;
  for (const auto& slice : data["slices"]) events += slice[4].get<std::int64_t>();
  CHECK(events == 40'000);
  CHECK(page.find("40,000 events, drawn as ") != std::string::npos);
  CHECK(trace_page(picture, 100'000).find("40,000 events, each drawn.") != std::string::npos);
}

TEST_CASE("trace_page: a run in which nothing could be timed has a page, too") {
  const std::string page = trace_page(picture_of({TraceWriting().event("user_annotation", "range", 0, 5).json()}));
  CHECK(page.find("nothing that could be timed") != std::string::npos);
  CHECK(data_of(page)["bars"].empty());
}
