// What is printed of a search and of one layout: text that fits, JSON and CSV that other programs read.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/scale/prediction_output.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

LayoutSearch search_of(const char* model, const Cluster& cluster, int gpus, bool muon = true, int sequences = 0) {
  const ModelShape& shape = model_shape(model);
  return {shape, cluster, software_of("nanotron"), gpus, {sequences * shape.tokens}, muon};
}

void expect_readable(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(text_width(line) <= kColumns);
    CHECK((line.empty() || line.back() != ' '));
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.find('\x1b') == std::string::npos);
    for (const char* wrong : {" nan ", " inf ", "-nan", "-inf", "micro-batchs", " 1 GPUs"})
      CHECK(line.find(wrong) == std::string::npos);
  }
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TrainingLayout pipeline_layout() {
  TrainingLayout layout;
  layout.nodes = 8;
  layout.dp = 4;
  layout.tp = 2;
  layout.pp = 8;
  layout.zero = 1;
  layout.micro_batch = 2;
  layout.accumulation = 8;
  return layout;
}

double sum_of(const nlohmann::json& terms, const char* amount) {
  double sum = 0;
  for (const auto& term : terms) sum += term[amount].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("layouts_text: 100 columns, on every scale, with every optimizer") {
  for (const char* name : {"h100-efa", "gb300-nvl72"}) {
    const Cluster cluster = cluster_of(name);
    const int node = cluster.node();
    for (const auto& [model, gpus, muon, sequences] : {std::tuple{"8B", 1, true, 0},
                                                       {"8B", 32 * node, true, 0},
                                                       {"kimi-k2", 8192 * node, true, 4096 * node},
                                                       {"80B", 64 * node, false, 0},
                                                       {"1B", node, true, 1 << 24},
                                                       {"gpt2", 1, true, 0}}) {
      CAPTURE(model);
      if (std::string(model) == "8B" && gpus == 1 && node == 8) continue;  // does not fit
      const LayoutSearch search = search_of(model, cluster, gpus, muon, sequences);
      const FoundLayouts found = find_layouts(search);
      const std::vector<std::string> lines = layouts_text(search, found);
      expect_readable(lines);
      const std::string text = joined(lines);
      CHECK(text.find("e+") == std::string::npos);
      CHECK((text.find("(d) owner, by work") != std::string::npos) == muon);
      CHECK((text.find("T · m / B = 5 · ") != std::string::npos) == muon);
      CHECK(text.find(" tokens per step (") < text.find("layouts, "));
      CHECK(text.find(number_text(found.tried) + " layouts, " + number_text(found.fit) + " of them fit") !=
            std::string::npos);
      if (found.best.size() > 1) {
        std::string sentence = why_slower(found.best[0], found.best[1]), flat;
        std::istringstream words(text);
        for (std::string word; words >> word;) flat += word + " ";
        CHECK(flat.find("the runner-up is " + sentence) != std::string::npos);
      }
    }
  }
}

TEST_CASE("layouts_text and explanation_text: a cluster's name from a file can't break out of its line") {
  Cluster cluster = cluster_of("h100-efa");
  cluster.name = "evil\x1b[31m\nname " + std::string(300, 'x');
  const LayoutSearch search = search_of("1B", cluster, 8);
  expect_readable(layouts_text(search, find_layouts(search)));
  const StepQuestion question{model_shape("8B"), cluster, software_of("nanotron"), pipeline_layout()};
  expect_readable(explanation_text(question, predict_adamw(question)));
}

TEST_CASE("layouts_json: the figures of the search, with their units, and terms that come to the step") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const bool muon : {true, false}) {
    const LayoutSearch search = search_of("qwen3-30b", cluster, 64, muon);
    const FoundLayouts found = find_layouts(search);
    const std::string document = layouts_json(search, found);
    CHECK(document.back() == '\n');
    const nlohmann::json json = nlohmann::json::parse(document);
    CHECK(json["format"] == "muonwalk-scale-layouts");
    CHECK(json["model"] == "qwen3-30b");
    CHECK(json["cluster"] == "h100-efa");
    CHECK(json["software"] == "nanotron");
    CHECK(json["gpus"] == 64);
    CHECK(json["tried"] == found.tried);
    CHECK(json["fit"] == found.fit);
    REQUIRE(json["layouts"].size() == found.best.size());
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      const nlohmann::json& each = json["layouts"][i];
      const FoundLayout& expected = found.best[i];
      const nlohmann::json& layout = each["layout"];
      CHECK(layout["nodes"] == expected.layout.nodes);
      CHECK(layout["dp"] == expected.layout.dp);
      CHECK(layout["tp"] == expected.layout.tp);
      CHECK(layout["pp"] == expected.layout.pp);
      CHECK(layout["ep"] == expected.layout.ep);
      CHECK(layout["zero"] == expected.layout.zero);
      CHECK(layout["micro_batch_sequences"] == expected.layout.micro_batch);
      CHECK(layout["accumulation"] == expected.layout.accumulation);
      CHECK(layout["recomputation"] == recomputation_name(expected.layout.recomputation));
      CHECK(layout["chunks"] == expected.layout.chunks);
      if (muon)
        CHECK(each["strategy"] == std::string(1, expected.strategy->letter));
      else
        CHECK(each["strategy"].is_null());
      CHECK(each["step_seconds"] == expected.prediction.step_seconds());
      CHECK(each["tokens_per_second_per_gpu"] == expected.prediction.tokens_per_second / 64);
      CHECK(each["memory_bytes"] == total(expected.prediction.bytes));
      CHECK(each["fits"] == true);
      CHECK(sum_of(each["seconds"], "seconds") == near(expected.prediction.step_seconds()));
      CHECK(sum_of(each["memory"], "bytes") == near(total(expected.prediction.bytes)));
    }
  }
}

TEST_CASE("explanations: text and JSON have every term, and terms come to the step and to the memory") {
  const Cluster cluster = cluster_of("h100-efa");
  const StepQuestion question{model_shape("8B"), cluster, software_of("nanotron"), pipeline_layout()};
  for (const StepPrediction& prediction : {predict_adamw(question), predict_muon(question, MuonSetup())}) {
    const std::vector<std::string> lines = explanation_text(question, prediction);
    expect_readable(lines);
    const std::string text = joined(lines);
    CHECK(text.find("dp 4 × tp 2 × pp 8") != std::string::npos);
    CHECK(text.find("262,144 tokens per step (64 sequences of 4,096)") != std::string::npos);
    const nlohmann::json json = nlohmann::json::parse(explanation_json(question, prediction));
    CHECK(json["format"] == "muonwalk-scale-explanation");
    CHECK(json["layout"]["pp"] == 8);
    CHECK(json["step_seconds"] == prediction.step_seconds());
    CHECK(json["tokens_per_second_per_gpu"] == prediction.tokens_per_second / 64);
    CHECK(json["fits"] == prediction.fits);
    CHECK(sum_of(json["seconds"], "seconds") == near(prediction.step_seconds()));
    CHECK(sum_of(json["memory"], "bytes") == near(json["memory_bytes"].get<double>()));
    for (const auto& terms : {prediction.seconds, prediction.bytes})
      for (const Term& term : terms) CHECK_MESSAGE(text.find(term.kind->name) != std::string::npos, term.kind->name);
    // Every input is there, with its source; what was not measured says what is nearest.
    for (std::size_t t = 0; t < prediction.seconds.size(); ++t) {
      const Term& term = prediction.seconds[t];
      const nlohmann::json& there = json["seconds"][t];
      CHECK(there["extrapolated"] == term.extrapolated());
      REQUIRE(there["inputs"].size() == term.inputs.size());
      for (std::size_t i = 0; i < term.inputs.size(); ++i) {
        CHECK(there["inputs"][i]["name"] == term.inputs[i].name);
        CHECK(there["inputs"][i]["value"] == term.inputs[i].value);
        CHECK(there["inputs"][i].contains("nearest_measured_at") == term.inputs[i].nearest_at.has_value());
      }
    }
  }
}
