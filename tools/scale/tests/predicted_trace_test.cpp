// The trace of a predicted step, as the analyser and any JSON parser read it.
#include "tools/scale/predicted_trace.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/replay/trace_writers.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/summary.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

TrainingLayout layout_of(int dp, int tp, int pp, int accumulation) {
  TrainingLayout layout;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.nodes = std::max(1, dp * tp * pp / 8);
  layout.zero = 1;
  layout.accumulation = accumulation;
  return layout;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

struct Written {
  TraceFile file;
  nlohmann::json json;
};

Written written(const StepQuestion& question, const StepPrediction& prediction) {
  TemporaryFolder folder;
  const std::string path = folder.file("step.json");
  write_chrome_trace(path, predicted_trace(question, prediction));
  return {read_traces({path}).front(), nlohmann::json::parse(read_text(path))};
}

// Of one stage: its moves in the order of time, and when the last of them ended.
struct Moves {
  std::vector<std::string> names;
  std::int64_t end_ns = 0;
};

Moves moves_of(const TraceFile& file, int stage) {
  Moves moves;
  for (const TraceEvent& event : file.events) {
    const std::string& name = file.name_of(event);
    if (file.ranks[static_cast<std::size_t>(event.rank)].rank != stage || event.event_class != EventClass::host_range)
      continue;
    if (name.rfind("forward", 0) != 0 && name.rfind("backward", 0) != 0) continue;
    CHECK(event.begin_ns >= moves.end_ns);
    moves.names.push_back(name);
    moves.end_ns = event.end_ns();
  }
  return moves;
}

void expect_trace_of(const StepQuestion& question, const StepPrediction& prediction) {
  const Written trace = written(question, prediction);
  const int pp = question.layout.pp, accumulation = question.layout.accumulation;
  CHECK(trace.json["muonwalk"]["backend"] == "predicted");
  CHECK(trace.file.dialect == TraceDialect::muonwalk);
  CHECK(trace.file.backend == "predicted");
  const Summary summary = summarize({trace.file});
  CHECK(summary.backend == "predicted");
  REQUIRE(static_cast<int>(summary.ranks.size()) == pp);
  double transfers = 0, behind = 0;
  for (const Term& term : prediction.seconds) {
    if (term.kind->group != nullptr) transfers += term.amount;
    if (term.kind->when == TermKind::at_the_end) behind += term.amount;
  }
  std::int64_t last_move = 0;
  for (int stage = 0; stage < pp; ++stage) {
    CAPTURE(stage);
    const RankSummary& rank = summary.ranks[static_cast<std::size_t>(stage)];
    CHECK(holds(rank.label, "predicted"));
    CHECK(rank.steps == 1);
    CHECK(std::abs(rank.span_ns - nanoseconds(prediction.step_seconds())) <= 1000);
    CHECK(std::abs(rank.communication_sum_ns - nanoseconds(transfers)) <= 1000);
    CHECK(rank.communication_ns == rank.communication_sum_ns);  // one after the other
    const Moves moves = moves_of(trace.file, stage);
    std::map<std::string, int> times;
    for (const std::string& name : moves.names) ++times[name];
    CHECK(static_cast<int>(moves.names.size()) == 2 * accumulation);
    CHECK(static_cast<int>(times.size()) == 2 * accumulation);  // each once
    // 1F1B: a stage begins with as many forwards as there are stages behind it, and one more.
    int first = 0;
    while (first < static_cast<int>(moves.names.size()) && moves.names[static_cast<std::size_t>(first)][0] == 'f')
      ++first;
    CHECK(first == std::min(accumulation, pp - stage));
    last_move = std::max(last_move, moves.end_ns);
  }
  // What comes before the end is the pipeline, and nothing of Muon.
  CHECK(std::abs(last_move - nanoseconds(prediction.step_seconds() - behind)) <= 1000);
}

}  // namespace

TEST_CASE("predicted trace: the analyser reads the predicted times, to the microsecond, of any depth of pipeline") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const auto& layout : {layout_of(8, 1, 1, 1), layout_of(4, 2, 1, 4), layout_of(2, 2, 2, 3), layout_of(4, 1, 8, 7),
                             layout_of(1, 2, 8, 64), layout_of(1, 1, 8, 1)}) {
    const StepQuestion question{model_shape("1B"), cluster, software_of("nanotron"), layout};
    CAPTURE(text(layout));
    expect_trace_of(question, predict_adamw(question));
    for (const Strategy& strategy : strategies()) {
      const MuonSetup setup{strategy};
      CAPTURE(strategy.letter);
      expect_trace_of(question, predict_muon(question, setup));
    }
  }
}

TEST_CASE("predicted trace: thousands of micro-batches round to the same end") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const int accumulation : {1009, 4999}) {
    const StepQuestion question{model_shape("1B"), cluster, software_of("nanotron"), layout_of(4, 1, 2, accumulation)};
    expect_trace_of(question, predict_muon(question, MuonSetup()));
  }
}

TEST_CASE("predicted trace: every slice lies in the step, and bytes are those of the prediction") {
  const Cluster cluster = cluster_of("h100-efa");
  const StepQuestion question{model_shape("8B"), cluster, software_of("nanotron"), layout_of(4, 2, 8, 9)};
  const StepPrediction prediction = predict_muon(question, MuonSetup());
  const Written trace = written(question, prediction);
  std::int64_t step_end = 0;
  for (const TraceEvent& event : trace.file.events)
    if (event.event_class == EventClass::step) step_end = event.end_ns();
  std::map<std::string, std::int64_t> bytes;
  for (const TraceEvent& event : trace.file.events) {
    CHECK(event.begin_ns >= 0);
    CHECK(event.end_ns() <= step_end);
    const CollectiveCall* call = trace.file.call_of(event);
    if (call != nullptr && trace.file.ranks[static_cast<std::size_t>(event.rank)].rank == 0)
      bytes[trace.file.text_of(call->group_name)] += call->sent_bytes;
  }
  // A transfer that is hidden altogether is not drawn.
  std::map<const TermKind*, double> said, drawn;
  for (const Term& term : prediction.seconds) {
    said[term.kind] += term.bytes_sent;
    if (term.amount > 0) drawn[term.kind] += term.bytes_sent;
  }
  REQUIRE(said[&terms::tp_gather] > 0);
  CHECK(bytes["tp"] == std::llround(said[&terms::tp_gather]));
  CHECK(bytes["dp"] == std::llround(drawn[&terms::gradient_sum]) + std::llround(drawn[&terms::weight_gather]));
  CHECK(bytes["dp"] > 0);
  // A ring sends 4 bytes of gradients twice, and 2 of weights once.
  CHECK(said[&terms::gradient_sum] == near(4 * said[&terms::weight_gather]));
}

TEST_CASE("predicted trace: one that would be too large, and one that can't be written, are refused") {
  const Cluster cluster = cluster_of("h100-efa");
  const StepQuestion question{model_shape("1B"), cluster, software_of("nanotron"), layout_of(1, 1, 8, 1 << 20)};
  const StepPrediction prediction = predict_adamw(question);
  TemporaryFolder folder;
  CHECK(usage_error([&] {
          write_chrome_trace(folder.file("t.json"), predicted_trace(question, prediction));
        }).find("a trace of 8,388,608 forwards") != std::string::npos);
  CHECK(folder.names().empty());
  const StepQuestion small{question.model, cluster, question.software, layout_of(8, 1, 1, 1)};
  CHECK(usage_error([&] {
          write_chrome_trace(folder.file("none/t.json"), predicted_trace(small, predict_adamw(small)));
        }).find("can't write") != std::string::npos);
}
