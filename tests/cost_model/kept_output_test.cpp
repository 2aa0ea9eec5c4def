// All that muonwalk-scale says of some questions, whole: its figures with their formulas and sources, and its refusals.
#include <doctest/doctest.h>

#include <sstream>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/found_layouts_output.hpp"
#include "sim/cost_model/validate_here.hpp"
#include "sim/cost_model/validation.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/sim/run_program.hpp"

TEST_CASE("muonwalk-scale: what it says of made-up questions is, word by word, what is kept") {
  const char* questions[] = {
      "--help", "plan --help", "explain --help", "map --help", "predict --help", "validate --help", "measure --help",
      "list", "plan --gpus 64", "plan --gpus 32 --model qwen3-30b --most 2 --csv",
      "plan --gpus 16 --model 1B --optimizer adamw --software megatron --cluster a100-selene",
      "plan --gpus 8 --model gpt2 --sequences 64 --cluster rtx4090-100gbe --most 3",
      "explain --dp 4 --tp 2 --pp 8 --accumulation 8",
      "explain --dp 8 --ep 4 --model qwen3-30b --strategy b --overlap --cluster gb300-nvl72",
      "explain --dp 2 --tp 8 --pp 4 --accumulation 8 --micro-batch 2 --chunks 2 --recompute selective "
      "--software megatron --model megatron-22b --zero 0 --optimizer adamw --cluster a100-selene",
      "explain --dp 16 --tp 4 --model llama-7b --strategy c --recompute full --cluster h200-ndr",
      "explain --dp 4 --tp 2 --model 3B --strategy a --csv", "explain --dp 4 --tp 2 --model 3B --strategy b --csv",
      "explain --dp 4 --tp 2 --model 3B --strategy c --csv",
      "explain --dp 4 --tp 2 --model 3B --strategy d --overlap --csv",
      "explain --dp 4 --tp 2 --model 3B --strategy e --csv", "explain --dp 4 --tp 2 --model 3B --strategy f --csv",
      "explain --dp 4 --tp 2 --model 3B --strategy g --csv", "explain --dp 4 --tp 2 --model 3B --strategy h --csv",
      "explain --dp 16 --model gpt2 --cluster laptop --csv", "map --gpus 64 --model gpt2",
      "map --gpus 32 --model 1B --over grid --csv", "validate",
      // What can't be.
      "", "plan", "plan --gpus 12", "plan --gpus 8 --model 80B", "plan --gpus 8 --model 9B",
      "plan --gpus 8 --cluster moon", "plan --gpus 8 --software torch", "plan --gpus 8 --optimizer sgd",
      "plan --gpus 8 --sequences 7", "explain --strategy z", "explain --recompute some", "explain --dp 3 --tp 4",
      "explain --dp 65536 --tp 65536", "explain --pp 40 --accumulation 64", "explain --pp 8 --accumulation 2",
      "explain --pp 8 --accumulation 8 --chunks 5", "explain --tp 7", "explain --tp 64", "explain --dp 8 --ep 3",
      "explain --dp 8 --ep 4", "explain --zero 2", "explain --dp 0", "map --over time", "map --gpus 4",
      "map --cluster none.json", "predict", "predict none.csv", "validate none.csv", "measure /"};
  std::string text;
  for (const char* question : questions) {
    std::vector<std::string> words = {MUONWALK_SCALE_PROGRAM};
    std::istringstream split(question);
    for (std::string word; split >> word;) words.push_back(word);
    const muonwalk::testing::Outcome outcome = muonwalk::testing::run_program(words, 120);
    text += "$ " + std::string(question) + "\n" + outcome.out + outcome.err + "= " + std::to_string(outcome.exit_code) +
            "\n";
  }
  muonwalk::testing::expect_golden("scale_program.txt", text);
}

TEST_CASE("clusters and steps on this machine: their texts are, word by word, what is kept") {
  using namespace muonwalk::sim;
  std::string text;
  for (const std::string& name : cluster_names()) text += cluster_text(cluster_of(name));
  std::vector<StepHere> steps;
  for (int i = 0; i < 3; ++i) {
    StepHere step;
    step.what = "lesson 09, Muon " + std::to_string(i);
    step.grid = muonwalk::Grid().dp(2 << i).tp(2);
    step.predicted_seconds = 0.0125 * (i + 1);
    step.measured_seconds = 0.01 * (3 - i);
    step.processor_share = 0.9 - 0.35 * i;
    step.extrapolated = i == 1;
    step.predicted_bytes = step.counted_bytes = 1'234'567LL << i;
    steps.push_back(step);
  }
  text += here_table(steps) + "\n" + here_table({steps[1]}) + "\n" + here_table({steps[0]}) + "\n";
  StepHere quiet = steps[0];
  quiet.measured_seconds = 0.02;
  text += here_table({steps[0], quiet, steps[1]}) + "\n" + here_table({steps[2], quiet}) + "\n";
  steps[0].counted_bytes += 1;
  steps[2].difference = "rank 3: dp all_gather of float32: 1 byte more";
  text += here_table(steps) + "\n";
  muonwalk::testing::expect_golden("scale_texts.txt", text);
}
