// All that muonwalk-trace says of made-up runs, in all its forms: texts, JSON, CSV, the picture and the page are, byte
// for byte, what is kept.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>

#include "sim/analyser/comparison.hpp"
#include "sim/analyser/output.hpp"
#include "sim/analyser/pictures/picture.hpp"
#include "sim/pictures/page_texts.hpp"
#include "tests/analyser/published_by_hand.hpp"
#include "tests/golden/golden_text.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// A rank of a run on devices: steps, copies, kernels on two streams, and calls of which each rank enters some late;
// operators and ranges that bear the names of calls, too, and what is in no figure.
TraceFile random_rank(unsigned seed, int rank, int ranks) {
  Draws draw(seed), late(seed * 31 + static_cast<unsigned>(rank));
  TraceWriting trace(rank, ranks);
  double now = 100;
  for (int step = 0; step < 1 + static_cast<int>(seed) % 3; ++step) {
    const double begin = now;
    for (int k = draw(2, 4); k > 0; --k) {
      const double lasts = 10.5 * draw(1, 9);
      trace.kernel(fmt::format("gemm_{}", draw(0, 2)), now, lasts);
      if (draw(0, 2) == 0) trace.kernel("pointwise", now + 3, lasts, 9);
      now += lasts + draw(0, 12);
    }
    trace.event("gpu_memcpy", "Memcpy DtoD", now, draw(1, 9)).event("cpu_op", "aten::mm", now - 30, 4);
    const double optimizer = now;
    for (int c = draw(1, 3); c > 0; --c) {
      const bool gather = draw(0, 1) == 0;
      const int wait = late(0, 20), lasts = draw(20, 60), elements = 64 * draw(1, 40);
      trace.event("cpu_op", gather ? "c10d::_allgather_base_" : "c10d::allreduce_", now - 20, 3);
      trace.event("gpu_user_annotation", gather ? "nccl:_all_gather_base" : "nccl:all_reduce", now + wait, lasts);
      trace.collective(gather ? "_allgather_base" : "allreduce", now + wait, lasts + 20 - wait, elements,
                       draw(0, 1) == 0 ? "BFloat16" : "Float", ranks == 2 ? "[0, 1]" : "[0, 1, 2]", ranks);
      if (draw(0, 1) == 0) trace.kernel("overlapped", now + 10, 15, 9);
      now += 90;
    }
    trace.event("gpu_user_annotation", "Optimizer.step#Muon.step", optimizer, now - optimizer);
    trace.event("user_annotation", "Optimizer.step#Muon.step", optimizer - 40, 25);
    trace.event("user_annotation", fmt::format("ProfilerStep#{}", step), begin, now - begin);
    trace.event("cuda_runtime", "cudaLaunchKernel", now, 2).event("overhead", "Activity Buffer", now, 1);
    now += 15;
  }
  if (seed % 2 == 0) trace.event("kernel", "ncclDevKernel_SendRecv", now, 12, R"("Collective name": "send")");
  trace.raw(R"("ph": "X", "cat": "kernel", "name": "damaged", "pid": 0, "tid": 7, "ts": 5, "dur": -4)");
  return read_trace_text(fmt::format("rank{}.json", rank), trace.json());
}

std::vector<TraceFile> random_run(unsigned seed, int ranks) {
  std::vector<TraceFile> files;
  for (int rank = 0; rank < ranks; ++rank) files.push_back(random_rank(seed, rank, ranks));
  return files;
}

std::vector<std::vector<TraceFile>> runs() {
  return {random_run(1, 2),
          random_run(2, 3),
          {read_trace_text("rich.json", rich_trace())},
          {read_trace_text("lesson.json", lesson_trace())},
          {read_trace_text("one.json", TraceWriting().event("cpu_op", "aten::mm", 0, 1).json())}};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Without what the project has as files of its own: styles and scripts.
std::string without_files(std::string page) {
  for (const char* part :
       {page_texts::page_css, page_texts::trace_css, page_texts::echarts_js, page_texts::echarts_notice,
        page_texts::tooltip_js, page_texts::bars_js, page_texts::timeline_js, page_texts::page_js}) {
    const std::size_t at = page.find(part);
    REQUIRE(at != std::string::npos);
    page.erase(at, std::string(part).size());
  }
  return page;
}

}  // namespace

TEST_CASE("golden: what is printed of runs, of two runs beside each other and of the published claims, in every form") {
  std::string texts, documents;
  std::vector<Summary> summaries;
  for (const std::vector<TraceFile>& files : runs()) {
    summaries.push_back(summarize(files));
    texts += joined(summary_text(summaries.back())) + "\n";
    documents += summary_json(summaries.back()) + summary_csv(summaries.back());
  }
  for (const auto& [a, b] : std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {2, 3}, {4, 0}}) {
    const TraceComparison comparison = compare(summaries[a], summaries[b]);
    texts += joined(comparison_text(comparison)) + "\n";
    documents += comparison_json(comparison) + comparison_csv(comparison);
  }
  const std::vector<PublishedClaim> claims = published_claims({muon(), adamw(), muon_async(), adamw_async()});
  const std::vector<std::string> paths = {"muon.json", "adamw.json", "muon_async.json", "adamw_async.json"};
  texts += joined(published_text(claims, paths)) + "\n" + joined(published_text(claims, {}));
  documents += published_json(claims, paths) + published_csv(claims);
  expect_golden("analyser_texts.txt", texts);
  expect_golden("analyser_documents.txt", documents);
}

TEST_CASE("golden: what is drawn of runs, alone and beside each other, as a picture and as a page") {
  std::string drawn;
  const auto add = [&drawn](const TracePicture& picture, std::int64_t most_slices) {
    const std::string svg = trace_svg(picture), page = without_files(trace_page(picture, most_slices));
    drawn += svg.substr(svg.find("</style>")) + page;
  };
  std::vector<PictureRun> pictures;
  for (const std::vector<TraceFile>& files : runs()) pictures.push_back(picture_run(files, summarize(files)));
  add({{pictures[1]}, {}}, 12'000);
  add({{pictures[2], pictures[3]}, {"A warning & its words.", "Another one."}}, 12'000);
  add({{pictures[0], pictures[4]}, {}}, 9);
  expect_golden("analyser_pictures.txt", drawn);
}
