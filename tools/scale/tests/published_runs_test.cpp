// Tables of training runs: what is read, what is refused, and what is predicted of a run.
#include "tools/scale/published_runs.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/training_memory.hpp"
#include "tools/scale/training_time.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const std::string kHeader = "model,nodes,dp,tp,pp,zero,mbs,grad_acc";

// A table that is gone with the test.
class WrittenTable {
 public:
  explicit WrittenTable(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  WrittenTable(const WrittenTable&) = delete;
  WrittenTable& operator=(const WrittenTable&) = delete;
  ~WrittenTable() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "published_runs_test_" + std::to_string(::getpid()) + ".csv";
};

std::string refusal(const std::string& text) {
  const WrittenTable table(text);
  const std::string said = usage_error([&table] { read_runs(table.path()); });
  const std::string begin = "the table of runs \"" + table.path() + "\" can't be used: ";
  CHECK(said.compare(0, begin.size(), begin) == 0);
  return said.substr(std::min(said.size(), begin.size()));
}

}  // namespace

TEST_CASE("read_runs: columns in any order, others left alone, ends of lines of both kinds") {
  const WrittenTable table(
      "\xEF\xBB\xBF"
      "grad_acc,note,model,nodes,dp,tp,pp,zero,mbs\r\n"
      "32,\"a, b\",8B,2,4,2,2,1,2\r\n\r\n16,,80B,64,16,8,4,0,1");
  const PublishedRuns runs = read_runs(table.path());
  CHECK(runs.header == "grad_acc,note,model,nodes,dp,tp,pp,zero,mbs");
  CHECK(!runs.has_results);
  REQUIRE(runs.runs.size() == 2);
  const PublishedRun& first = runs.runs.front();
  CHECK(first.row == "32,\"a, b\",8B,2,4,2,2,1,2");
  CHECK(first.model == "8B");
  CHECK(first.layout.nodes == 2);
  CHECK(first.layout.dp == 4);
  CHECK(first.layout.zero == 1);
  CHECK(first.layout.micro_batch == 2);
  CHECK(first.layout.accumulation == 32);
  CHECK(runs.runs.back().layout.pp == 4);
  CHECK(!first.clean());
}

TEST_CASE("read_runs: results, where the table has them") {
  const WrittenTable table(kHeader + ",tokens_per_s,memory_gb,status,flags\n" +
                           "1B,1,8,1,1,0,1,32,80000,36.5,measured,\n1B,1,8,1,1,0,1,32,,,nan,repeat\n" +
                           "1B,1,8,1,1,0,1,32,80000,36.5,measured,stall;repeat\n");
  const PublishedRuns runs = read_runs(table.path());
  CHECK(runs.has_results);
  REQUIRE(runs.runs.size() == 3);
  CHECK(runs.runs[0].clean());
  CHECK(runs.runs[0].tokens_per_second == 10000);
  CHECK(runs.runs[0].memory_gibibytes == 36.5);
  CHECK(!runs.runs[1].measured);
  CHECK(runs.runs[1].flagged("repeat"));
  CHECK(runs.runs[2].measured);
  CHECK(!runs.runs[2].clean());
}

TEST_CASE("read_layouts: whatever stands in the other columns") {
  const WrittenTable table(kHeader + ",status, tokens_per_s,memory_gb\n 1B , 1,8,1,1,0,1,32,kept,,-\n");
  const PublishedRuns runs = read_layouts(table.path());
  CHECK(!runs.has_results);
  REQUIRE(runs.runs.size() == 1);
  CHECK(runs.runs[0].model == "1B");
  CHECK(runs.runs[0].layout.accumulation == 32);
  CHECK(predicted_rows(runs)[1].find(" 1B , 1,8,1,1,0,1,32,kept,,-,") == 0);
  CHECK(usage_error([&table] { read_runs(table.path()); }).find("line 2 has status = kept") != std::string::npos);
}

TEST_CASE("read_runs: what can't be used is refused in a sentence with the line") {
  CHECK(usage_error([] { read_runs("no/such.csv"); }) ==
        "the table of runs \"no/such.csv\" can't be used: there is no such file");
  CHECK(usage_error([] { read_runs("/"); }) == "the table of runs \"/\" can't be used: it is a folder");
  const std::string results = kHeader + ",tokens_per_s,memory_gb,status\n1B,1,8,1,1,0,1,32,";
  const auto row = [](const char* cells) { return kHeader + "\n" + cells + "\n"; };
  const struct {
    std::string table, begins_with;
  } refused[] = {{"", "it is empty"},
                 {"\n\n", "it is empty"},
                 {kHeader + "\n", "it has no row"},
                 {"model,nodes,dp,tp,pp,zero,mbs\n1B,1,8,1,1,0,1\n", "it has no column grad_acc"},
                 {"nodes,dp,tp,pp,zero,mbs,grad_acc\n1,8,1,1,0,1,1\n", "it has no column model"},
                 {"mo\x1b[2Jdel\n1\n", "it has no column model"},
                 {kHeader + ",dp\n1B,1,8,1,1,0,1,1,4\n", "it has 2 columns dp"},
                 {kHeader + ",pred_tokens_per_s_per_gpu\n1B,1,8,1,1,0,1,32,1\n",
                  "it has a column pred_tokens_per_s_per_gpu already"},
                 {kHeader + ",pred_memory_gb\n1B,1,8,1,1,0,1,32,1\n", "it has a column pred_memory_gb already"},
                 {kHeader + ",pred_fits\n1B,1,8,1,1,0,1,32,1\n", "it has a column pred_fits already"},
                 {row("1B,1,8,1,1,0,1"), "line 2 has 7 cells, and the first line names 8 columns"},
                 {row("1B,1,8,1,1,0,1,1\n\n1B,1,8,1,1,0,1"), "line 4 has 7 cells"},
                 {row("1B"), "line 2 has 1 cell, and"},
                 {row("1B,1,8,1,1,0,1,1,1"), "line 2 has 9 cells"},
                 {kHeader + ",note\n1B,1,8,1,1,0,1,1,\"open\n", "line 2 has a quoted cell"},
                 {kHeader + ",\"note\n1B,1,8,1,1,0,1,1,x\n", "line 1 has a quoted cell"},
                 {row("\n1B,1,8,1,1,0,1,x"), "line 3 has grad_acc = x; it is a whole number from 1 to 1048576"},
                 {row("1B,1,8,1,1,0,0,32"), "line 2 has mbs = 0; it is a whole number from 1 to 1048576"},
                 {row("1B,1,8,1,1,-1,1,32"), "line 2 has zero = -1; it is a whole number from 0 to 1048576"},
                 {row("1B,1,8,1,1,0,1,99999999999"), "line 2 has grad_acc = 99999999999"},
                 {row("1B,1,8,1,1,0,1.5,32"), "line 2 has mbs = 1.5"},
                 {row("1B,1,8,1,1,3,1,32"), "line 2 can't be predicted: ZeRO stage 3"},
                 {row("1B,1,8,2,1,0,1,32"), "line 2 can't be predicted: dp 8 × tp 2"},
                 {row("8B,2,8,1,1,0,1,1"),
                  "line 2 can't be predicted: dp 8 × tp 1 × pp 1 makes 8 ranks, and 2 nodes of 8 GPUs have 16"},
                 {row("8B,1,1048576,1048576,1048576,0,1,1"), "line 2 can't be predicted: "},
                 {row("7B\x1b[2J,1,8,1,1,0,1,32"), "line 2 can't be predicted: the model \"7B\\x1b[2J\" is not known"},
                 {results + "1,1,maybe\n", "line 2 has status = maybe; it is measured or nan"},
                 {results + "nan,1,measured\n", "line 2 has tokens_per_s = nan"}};
  for (const auto& each : refused) {
    CAPTURE(each.table);
    const std::string said = refusal(each.table);
    CHECK_MESSAGE(said.find(each.begins_with) == 0, said);
  }
}

TEST_CASE("predicted_rows: the rows as they were, with three cells more, and numbers also where it does not fit") {
  const WrittenTable table(kHeader + ",note\n1B,1,8,1,1,0,1,32,\"x, y\"\n80B,1,8,1,1,0,16,2,\n1B,2,1,1,16,0,1,256,\n");
  const std::vector<std::string> rows = predicted_rows(read_layouts(table.path()));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == kHeader + ",note,pred_tokens_per_s_per_gpu,pred_memory_gb,pred_fits");
  CHECK(rows[1].find("1B,1,8,1,1,0,1,32,\"x, y\",") == 0);
  CHECK(rows[1].substr(rows[1].size() - 2) == ",1");
  CHECK(rows[2].substr(rows[2].size() - 2) == ",0");
  CHECK(rows[3].substr(rows[3].size() - 2) == ",0");  // a stage stays empty
  for (const std::string& row : rows) CHECK(row.find("nan") == std::string::npos);
}

TEST_CASE("predict_run: speed and memory of any run are those of its step and of its first stage, on h100-efa") {
  const Cluster cluster = cluster_of("h100-efa");
  const TrainingSoftware& nanotron = software_of("nanotron");
  const PublishedRuns runs = carried_runs();
  int fitting = 0;
  for (std::size_t i = 0; i < runs.runs.size(); i += 17) {
    const PublishedRun& run = runs.runs[i];
    CAPTURE(run.row);
    const TrainingLayout& layout = run.layout;
    const StepQuestion question{model_shape(run.model), cluster, nanotron, layout};
    const double tokens = 4096.0 * layout.dp * layout.micro_batch * layout.accumulation;
    const RunPrediction prediction = predict_run(run);
    CHECK(prediction.tokens_per_second == near(tokens / step_seconds(question) / layout.ranks()));
    CHECK(prediction.memory_gibibytes == near(total(stage_bytes(question, 0)) / kGibibyte));
    CHECK(prediction.fits == (fits(total(training_bytes(question)), cluster, nanotron) &&
                              why_it_cannot_run(question.model, layout, nanotron).empty()));
    fitting += prediction.fits;
  }
  CHECK(fitting > 30);
  CHECK(fitting < 110);
}
