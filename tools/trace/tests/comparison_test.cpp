#include "tools/trace/comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/io/temporary_folder.hpp"
#include "tests/near.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using muonwalk::testing::lesson_trace;
using muonwalk::testing::TraceWriting;

namespace {

TraceComparison comparison_of(const TraceWriting& a, const TraceWriting& b) {
  TemporaryFolder folder;
  return compare(summarize({read_trace(a.write(folder.file("a.json")))}),
                 summarize({read_trace(b.write(folder.file("b.json")))}));
}

bool warns(const TraceComparison& comparison, const std::string& part) {
  return std::any_of(comparison.warnings.begin(), comparison.warnings.end(),
                     [&](const std::string& warning) { return warning.find(part) != std::string::npos; });
}

const ComparedFigure& figure(const TraceComparison& comparison, const std::string& name) {
  for (const ComparedFigure& each : comparison.figures)
    if (each.name == name) return each;
  FAIL("no figure " << name);
  return comparison.figures.front();
}

// A step with a reduction in float32 over two ranks: what each case changes one thing of.
TraceWriting reduction(double duration = 10) {
  return TraceWriting(0, 2)
      .event("user_annotation", "ProfilerStep#1", 0, 40)
      .kernel("gemm", 0, 20)
      .collective("allreduce", 20, duration, 8, "Float", "[0, 1]", 2);
}

}  // namespace

TEST_CASE("compare: figures side by side, their ratio, and nothing made up where one side has none") {
  const TraceComparison comparison = comparison_of(
      reduction(),
      TraceWriting(0, 2).kernel("gemm", 0, 10).collective("_allgather_base", 10, 5, 8, "Float", "[0, 1]", 2));
  CHECK(figure(comparison, "computation").ratio().value() == near(0.5));
  CHECK(figure(comparison, "communication, sum").b.value() == near(0.005));
  CHECK(figure(comparison, "all_reduce, calls").a.value() == near(1));
  CHECK_FALSE(figure(comparison, "all_reduce, calls").b.has_value());
  CHECK_FALSE(figure(comparison, "all_reduce, calls").ratio().has_value());
  CHECK_FALSE(figure(comparison, "span, a step").b.has_value());
  CHECK(ComparedFigure{"", "", 4, 0}.ratio().value() == 0);
  CHECK_FALSE(ComparedFigure{"", "", 0, 4}.ratio().has_value());
  CHECK_FALSE(ComparedFigure{"", "", 0, 0}.ratio().has_value());
}

TEST_CASE("compare: a warning for each way in which two runs are not comparable") {
  const TraceWriting same = reduction();
  const TraceComparison equal = comparison_of(same, same);
  for (const char* part : {"Different", "has no", "overlaps", "at the same time", "No steps"})
    CHECK_FALSE(warns(equal, part));
  CHECK(warns(equal, "One rank only in both"));
  CHECK(warns(equal, "do not say which matrices"));
  CHECK(warns(equal, "A has 1 ranges and operators beside its 2 kernels"));
  CHECK(warns(equal, "B has 1 ranges and operators beside its 2 kernels"));

  const TraceWriting base = TraceWriting(0, 2).event("user_annotation", "ProfilerStep#1", 0, 40).kernel("gemm", 0, 20);
  const auto with = [&](const char* type, const char* ranks) {
    return TraceWriting(base).collective("allreduce", 20, 10, 8, type, ranks, 2);
  };
  CHECK(warns(comparison_of(same, with("BFloat16", "[0, 1]")),
              "Different element types: A has float32, B has bfloat16."));
  CHECK(warns(comparison_of(same, with("Float", "[0, 2]")), "Different groups: A has [0, 1], B has [0, 2]."));
  const auto step = [](double begin) {
    return TraceWriting(0, 2)
        .collective("allreduce", 0, 10, 8, "Float", "[0, 1]", 2)
        .kernel("update", 10, 20)
        .event("gpu_user_annotation", "Optimizer.step#A", begin, 30 - begin);
  };
  CHECK(warns(comparison_of(step(0), step(10)), "holds communication in A (0.0100 ms) and none in B"));
}

TEST_CASE("compare: what differs is said whichever run has more of it") {
  const TraceWriting small = reduction();
  const TraceWriting steps = TraceWriting(small).event("user_annotation", "ProfilerStep#2", 50, 40);
  CHECK(warns(comparison_of(steps, small), "Different numbers of steps: A has 2, B has 1;"));
  CHECK(warns(comparison_of(small, steps), "Different numbers of steps: A has 1, B has 2;"));
  const TraceWriting none = TraceWriting(0, 2).kernel("gemm", 0, 1);
  CHECK(warns(comparison_of(none, none), "No steps were found in either:"));
  const TraceWriting large = TraceWriting(0, 4).kernel("gemm", 0, 1);
  CHECK(warns(comparison_of(large, small), "Different numbers of ranks: A ran on 4, B on 2."));
  CHECK(warns(comparison_of(small, large), "Different numbers of ranks: A ran on 2, B on 4."));

  TemporaryFolder folder;
  std::vector<std::string> both;
  for (int rank = 0; rank < 2; ++rank)
    both.push_back(
        TraceWriting(rank, 2).kernel("gemm", 0, 1).write(folder.file("rank" + std::to_string(rank) + ".json")));
  const Summary two = summarize(read_traces(both)), one = summarize(read_traces({both[0]}));
  CHECK(warns(compare(two, one), "A has the traces of 2 ranks, B of 1:"));
  CHECK(warns(compare(one, two), "A has the traces of 1 ranks, B of 2:"));
  CHECK(warns(compare(two, one), "One rank only in B:"));
  CHECK(warns(compare(one, two), "One rank only in A:"));
}

TEST_CASE("compare: a warning about one of the runs names that one, whichever it is") {
  const TraceWriting base = TraceWriting(0, 2).event("user_annotation", "ProfilerStep#1", 0, 40).kernel("gemm", 0, 20);
  const auto with = [&](const char* name, double begin) {
    return TraceWriting(base).collective(name, begin, 10, 8, "Float", "[0, 1]", 2);
  };
  // X stands for the run that has something and Y for the one that has not.
  struct Case {
    TraceWriting has, has_not;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {TraceWriting(base).event("gpu_user_annotation", "Optimizer.step#A", 0, 20),
       base,
       {"The optimizer's range is known of X only."}},
      {base, TraceWriting(0, 2).kernel("gemm", 0, 20), {"No steps were found in Y:"}},
      {with("allreduce", 15), with("allreduce", 20), {"X overlaps 50.0 %"}},
      {TraceWriting(with("allreduce", 20)).collective("allreduce", 25, 10, 8, "Float", "[0, 1]", 2),
       with("allreduce", 20),
       {"X runs collectives at the same time"}},
      {with("allreduce", 20), base, {"Y has no reduction of gradients", "reduce), X has"}},
      {with("reduce_scatter", 20), base, {"Y has no reduction of gradients", "reduce), X has"}},
      {with("_allgather_base", 20), base, {"Y has no gather of parameters", "broadcast), X has"}},
      {with("broadcast", 20), base, {"Y has no gather of parameters", "broadcast), X has"}},
      {with("all_to_all", 20), base, {"Y has no exchange", "all_to_all), X has"}}};
  const auto named = [](std::string words, char x, char y) {
    std::replace(words.begin(), words.end(), 'X', x);
    std::replace(words.begin(), words.end(), 'Y', y);
    return words;
  };
  for (const Case& each : cases) {
    const TraceComparison first = comparison_of(each.has, each.has_not), second = comparison_of(each.has_not, each.has);
    for (const std::string& words : each.words) {
      CAPTURE(words);
      CHECK(warns(first, named(words, 'A', 'B')));
      CHECK_FALSE(warns(first, named(words, 'B', 'A')));
      CHECK(warns(second, named(words, 'B', 'A')));
      CHECK_FALSE(warns(second, named(words, 'A', 'B')));
    }
  }
}

TEST_CASE("compare: runs on different matrices are told apart where the traces say which") {
  TemporaryFolder folder;
  std::string other = lesson_trace();
  other.replace(other.find("\"rows\":4"), 8, "\"rows\":8");
  write_text(folder.file("a.json"), lesson_trace());
  write_text(folder.file("b.json"), other);
  const TraceComparison comparison =
      compare(summarize({read_trace(folder.file("a.json"))}), summarize({read_trace(folder.file("b.json"))}));
  CHECK(warns(comparison, "Different matrices: A has w0 4 × 2, B has w0 8 × 2."));
  const TraceComparison same =
      compare(summarize({read_trace(folder.file("a.json"))}), summarize({read_trace(folder.file("a.json"))}));
  CHECK(same.warnings.empty());
}

TEST_CASE("compare: figures are means over the ranks") {
  TemporaryFolder folder;
  write_text(folder.file("a.json"), lesson_trace());
  const Summary summary = summarize({read_trace(folder.file("a.json"))});
  const TraceComparison comparison = compare(summary, summary);
  CHECK(figure(comparison, "computation").a.value() == near(0.03));
  CHECK(figure(comparison, "all_gather, calls").a.value() == near(1));
  CHECK(figure(comparison, "waiting").a.value() == near(0.01));
  CHECK(figure(comparison, "transfer").a.value() == near(0.02));
  CHECK(figure(comparison, "optimizer, device").a.value() == near(0.05));
  CHECK(figure(comparison, "all_gather, sum").a.value() == near(0.03));
  CHECK(figure(comparison, "all_gather, messages").a.value() == near(32));
}

TEST_CASE("compare: a folder stands for all ranks of a run") {
  TemporaryFolder folder;
  TraceWriting(1, 2).kernel("gemm", 5, 10).write(folder.file("rank_1.json.gz"));
  TraceWriting(0, 2).kernel("gemm", 0, 10).write(folder.file("rank_0.json"));
  write_text(folder.file("README"), "no trace");
  CHECK(trace_paths(folder.path()) ==
        std::vector<std::string>{folder.file("rank_0.json"), folder.file("rank_1.json.gz")});
  CHECK(trace_paths(folder.file("rank_0.json")).size() == 1);
  CHECK(summarize(read_traces(trace_paths(folder.path()))).ranks.size() == 2);
}
