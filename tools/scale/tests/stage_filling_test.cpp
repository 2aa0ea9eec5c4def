// How the blocks of a model fill the stages of a pipeline, and which layouts can't run: cases that can be counted.
#include "tools/scale/stage_filling.hpp"

#include <doctest/doctest.h>

#include <random>

#include "tests/near.hpp"
#include "tools/scale/tests/training_case.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// "E3 3 2 H" and the like: E for the embedding, layers, H for the head, C for the cast, X for the loss, - for nothing.
std::string drawn(const std::vector<Stage>& stages) {
  std::string text;
  for (const Stage& stage : stages) {
    text += text.empty() ? "" : " ";
    if (stage.blocks == 0) text += "-";
    if (stage.embedding) text += "E";
    if (stage.layers > 0) text += std::to_string(stage.layers);
    if (stage.head) text += "H";
    if (stage.cast) text += "C";
    if (stage.loss) text += "X";
  }
  return text;
}

std::string drawn(const char* model, int pp) { return drawn(fill_stages(model_shape(model), pp, nanotron())); }

std::string refusal(const char* model, int tp, int pp, int accumulation) {
  TrainingLayout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.accumulation = accumulation;
  return why_it_cannot_run(model_shape(model), layout, nanotron());
}

}  // namespace

TEST_CASE("fill_stages: by cost, the head of 1B is worth four layers, and its stages are filled by hand") {
  CHECK(drawn("1B", 1) == "E16HCX");
  CHECK(drawn("1B", 2) == "E11 5HCX");
  CHECK(drawn("1B", 4) == "E6 5 5 HCX");
  CHECK(drawn("1B", 8) == "E3 3 2 3 2 3 H CX");
  CHECK(drawn("3B", 8) == "E4 4 4 4 4 4 4 HCX");
  CHECK(drawn("8B", 4) == "E9 9 8 6HCX");
  CHECK(drawn("80B", 8) == "E11 10 10 10 10 10 10 9HCX");
}

TEST_CASE("fill_stages: in pipelines about as deep as the model, the last stages stay empty, as its runs failed") {
  CHECK(drawn("1B", 16) == "E2 1 1 2 1 1 1 2 1 1 1 2 H C X -");
  CHECK(refusal("1B", 1, 16, 256) == "stage 15 of 16 stays empty: 1B has 16 layers");
  CHECK(refusal("3B", 1, 32, 256) == "stage 31 of 32 stays empty: 3B has 28 layers");
  CHECK(refusal("8B", 1, 64, 256) == "stage 36 of 64 stays empty: 8B has 32 layers");
  CHECK(refusal("3B", 1, 16, 256).empty());
  CHECK(refusal("8B", 1, 32, 256).empty());
  CHECK(refusal("80B", 1, 64, 256).empty());
}

TEST_CASE("why_it_cannot_run: too few micro-batches, and heads that TP does not divide") {
  CHECK(refusal("8B", 1, 8, 7).empty());
  CHECK(refusal("8B", 1, 8, 6) == "a pipeline of 8 stages takes at least 7 micro-batches, and there are 6");
  CHECK(refusal("8B", 1, 4, 1) == "a pipeline of 4 stages takes at least 3 micro-batches, and there is 1");
  CHECK(refusal("8B", 64, 1, 1) == "tp 64 does not divide the 32 heads of 8B");
}

TEST_CASE("fill_stages: nothing is lost, whatever the model, the depth and the software") {
  for (const std::string& software : software_names())
    for (const std::string& name : model_shape_names())
      for (const int pp : {1, 2, 3, 5, 7, 8, 16, 31, 64, 100}) {
        CAPTURE(software);
        CAPTURE(name);
        CAPTURE(pp);
        const ModelShape& model = model_shape(name);
        Index layers = 0;
        int embeddings = 0, heads = 0, losses = 0;
        for (const Stage& stage : fill_stages(model, pp, software_of(software))) {
          layers += stage.layers;
          embeddings += stage.embedding ? 1 : 0;
          heads += stage.head ? 1 : 0;
          losses += stage.loss ? 1 : 0;
          CHECK(stage.blocks >= stage.layers);
        }
        CHECK(layers == model.layers);
        CHECK(embeddings == 1);
        CHECK(heads == 1);
        CHECK(losses == 1);
      }
}

TEST_CASE("stage_parameters: stages hold the model once, a tied table twice, and TP cuts all of it") {
  for (const char* name : {"1B", "8B"})
    for (const int pp : {1, 2, 4}) {
      CAPTURE(name);
      CAPTURE(pp);
      const ModelShape& model = model_shape(name);
      TrainingLayout layout;
      layout.tp = 4;
      layout.pp = pp;
      double held = 0;
      for (const Stage& stage : fill_stages(model, pp, nanotron())) held += stage_parameters(model, layout, stage);
      const double table = static_cast<double>(model.vocabulary * model.width);
      const double expected = model.parameters() + (model.tied && pp > 1 ? table : 0);
      CHECK(held * layout.tp == near(expected, 1e-3));  // without the gains of norms
    }
}
