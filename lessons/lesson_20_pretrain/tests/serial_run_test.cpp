// The reference of lesson 20, what it writes, and the pieces of an interruption.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "lesson_20_pretrain.hpp"
#include "lessons/lesson_20_pretrain/shipped_text.hpp"
#include "sim/terminal/terminal.hpp"
#include "tests/near.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace lesson_20;

namespace {

Pretraining small_run(int steps, const std::string& decay = "matrices") {
  PretrainingRequest request;
  request.decay = decay;
  request.small = true;
  request.steps = steps;
  RankInfo rank;
  rank.seed = 1;
  rank.products = Products::chain;
  return requested_pretraining(request, rank);
}

}  // namespace

TEST_CASE("a counter in bf16 stops at 256") {
  CHECK(counted_in_bf16(0) == 0);
  CHECK(counted_in_bf16(255) == 255);
  CHECK(counted_in_bf16(256) == 256);
  CHECK(counted_in_bf16(257) == 256);
  CHECK(counted_in_bf16(1000) == 256);
}

TEST_CASE("the reference takes each step once, and says so where weights are gone") {
  const Pretraining asked = small_run(4);
  REQUIRE(asked.ways.size() == 2);
  SerialRun serial(asked, asked.ways[1]);
  const float third = serial.report(3).loss;
  CHECK(serial.report(3).loss == third);
  CHECK(serial.curve().training.size() == 3);
  CHECK_THROWS_WITH_AS(serial.weights_after(2), "the weights after step 2 are gone", std::logic_error);
  SerialRun other(asked, asked.ways[1]);
  for (int step = 1; step <= 3; ++step) other.report(step);
  const auto& a = serial.weights_after(4);
  const auto& b = other.weights_after(4);
  REQUIRE(a.size() == b.size());
  for (std::size_t p = 0; p < a.size(); ++p)
    CHECK(std::memcmp(a[p].matrix.data(), b[p].matrix.data(), sizeof(float) * std::size_t(a[p].matrix.size())) == 0);
  CHECK(serial.curve().validations.front().step == 0);
  CHECK(serial.curve().validations.back().step == 4);
}

TEST_CASE("in a notebook, the lesson goes on with its own grid and seed after --grids and --seeds") {
  static std::string said;
  for (const bool grids : {false, true}) {
    CAPTURE(grids);
    said.clear();
    print_lines_to([](const char* line) { said += std::string(line) + '\n'; }, nullptr);
    request = {};
    request.small = true;
    request.steps = 2;
    (grids ? request.grids : request.optimizer) = grids ? "1x1x1" : "muon";
    request.seeds = grids ? 0 : 2;
    LessonInfo info;
    info.name = "lesson_20_pretrain";
    info.groups = {{"world", {}}};
    Options options;
    options.world = WorldKind::fibers;
    options.grid = Grid().dp(2).tp(2);
    options.threads = 1;
    options.products = Products::chain;
    Lesson<Local> lesson(info, options);
    lesson.require(prepare);
    do_instead(lesson, info);
    train_all(lesson);
    lesson.cost(predict);
    lesson.answer("");
    print_lines_to(nullptr, nullptr);
    request = {};
    CAPTURE(said);
    CHECK(said.find("✔") != std::string::npos);
    CHECK(said.find("✘") == std::string::npos);
    CHECK(lesson.all_equal());
  }
}

TEST_CASE("the number of steps matters to the step after them, and leaves the model of the run as it was") {
  const Pretraining asked = small_run(3);
  for (const ComparedTraining& way : asked.ways) {
    SerialRun right(asked, way), stopped(asked, way);
    right.report(3);
    const PartTensors before = right.model();
    const auto& a = right.weights_later(300);
    const auto& b = stopped.weights_later(253);  // a count of 256
    bool differ = false;
    for (std::size_t p = 0; p < a.size(); ++p)
      differ = differ || std::memcmp(a[p].matrix.data(), b[p].matrix.data(),
                                     sizeof(float) * std::size_t(a[p].matrix.size())) != 0;
    CHECK(differ);
    CHECK(right.model().embedding.flat() == before.embedding.flat());
    CHECK_THROWS_AS(right.weights_after(3), std::logic_error);
  }
}

TEST_CASE("--decay all: the gains of norms shrink by a step, and all else is as with matrices alone") {
  const Pretraining usual = small_run(2), decaying = small_run(2, "all");
  for (std::size_t way = 0; way < usual.ways.size(); ++way) {
    SerialRun spared(usual, usual.ways[way]), shrunk(decaying, decaying.ways[way]);
    const std::vector<NamedMatrix> a = spared.weights_after(1), b = shrunk.weights_after(1);
    REQUIRE(a.size() == b.size());
    int gains = 0;
    for (std::size_t p = 0; p < a.size(); ++p) {
      const bool is_gain = a[p].matrix.rows() == 1;
      gains += is_gain ? 1 : 0;
      INFO(a[p].name);
      for (Index i = 0; i < a[p].matrix.size(); ++i)
        REQUIRE(
            (is_gain ? b[p].matrix.data()[i] < a[p].matrix.data()[i] : b[p].matrix.data()[i] == a[p].matrix.data()[i]));
    }
    CHECK(gains == 2 * usual.ways[way].training.config.layers + 1);
    CHECK(usual.notes(usual.ways[way]).at("decay") == "matrices");
    CHECK(decaying.notes(decaying.ways[way]).at("decay") == "all");
  }
}

TEST_CASE("greedy text is the same each time, printable, and as long as asked for") {
  const Pretraining asked = small_run(3);
  SerialRun serial(asked, asked.ways[0]);
  serial.report(3);
  const GptConfig& model = asked.ways[0].training.config;
  for (const std::string beginning : {"E", "Each rank has a number of its own, and "}) {
    const std::string text = greedy_text(model, serial.model(), beginning, 30);
    CHECK(text.size() == 30);
    CHECK(text == greedy_text(model, serial.model(), beginning, 30));
    for (const char letter : text) CHECK((letter >= ' ' && letter <= '~'));
    CHECK(text.substr(0, 10) == greedy_text(model, serial.model(), beginning, 10));
  }
}

TEST_CASE("a spectrum is shown as shares of the largest, from the first to the last") {
  Matrix diagonal(3, 3);
  diagonal(0, 0) = 2;
  diagonal(1, 1) = 4;
  diagonal(2, 2) = 1;
  CHECK(spectrum_text(diagonal, 3) == "1.000  0.500  0.250");
  CHECK(spectrum_text(diagonal, 2) == "1.000  0.250");
}

TEST_CASE("both texts are ASCII, and long enough") {
  CHECK(shipped_text().size() > 30000);
  CHECK(shipped_code().size() > 3000);
  for (const std::string* text : {&shipped_text(), &shipped_code()})
    for (const char letter : *text) REQUIRE((letter == '\n' || (letter >= ' ' && letter <= '~')));
}

TEST_CASE("--inside: scores are q · k of the heads that belong together, and outputs those of the last layer") {
  const Pretraining asked = small_run(2);
  SerialRun serial(asked, asked.ways[0]);
  serial.report(1);
  const GptConfig& config = asked.ways[0].training.config;
  const auto measured = [&](const PartTensors& model) {
    Validation validation;
    measure_inside(config, model, asked.corpus, validation);
    return validation;
  };
  PartTensors model = serial.model();
  const auto scale = [](Matrix& matrix, float factor) {
    for (float& value : matrix.flat()) value *= factor;
  };
  // Where the first layer's scores are by far the largest, they grow with its queries.
  scale(model.layers[0].query, 4096);
  const float large = measured(model).largest_score;
  scale(model.layers[0].query, 2);
  CHECK(measured(model).largest_score == 2 * large);
  // The later half of the heads reads the later head of keys, and no other.
  for (LayerTensors& layer : model.layers) {
    for (Index i = 0; i < layer.query.size() / 2; ++i) layer.query.data()[i] = 0;
    for (Index i = layer.key.size() / 2; i < layer.key.size(); ++i) layer.key.data()[i] = 0;
  }
  CHECK(measured(model).largest_score == 0);
  // Without layers that write, the output is the embedding of each token.
  for (LayerTensors& layer : model.layers) {
    scale(layer.output, 0);
    scale(layer.mlp.down, 0);
  }
  for (Index i = 0; i < model.embedding.size(); ++i) model.embedding.data()[i] = i % 2 == 0 ? 3.0f : -4.0f;
  CHECK(measured(model).output_rms == near(std::sqrt(12.5), 1e-6));

  // It is measured where it was asked for, and changes nothing.
  Pretraining inside = asked;
  inside.inside = true;
  SerialRun watched(inside, inside.ways[0]);
  watched.report(2);
  serial.report(2);
  REQUIRE(watched.curve().validations.size() == serial.curve().validations.size());
  for (std::size_t i = 0; i < serial.curve().validations.size(); ++i) {
    CHECK(watched.curve().validations[i].held_out == serial.curve().validations[i].held_out);
    CHECK(watched.curve().validations[i].output_rms > 0);
    CHECK(serial.curve().validations[i].output_rms == 0);
  }
}

TEST_CASE("--seeds: a table of as many runs on one process, whose first is the run without it") {
  const auto seeds = muonwalk::testing::run_lesson(LESSON, {"--small", "--steps", "4", "--seeds", "2"});
  CHECK(seeds.exit_code == 0);
  CHECK(seeds.out.find("2 seeds") == 0);
  const auto one = muonwalk::testing::run_lesson(LESSON, {"--small", "--steps", "4", "--seeds", "1", "--seed", "9"});
  const auto other = muonwalk::testing::run_lesson(LESSON, {"--small", "--steps", "4", "--seeds", "1"});
  CHECK(one.out != other.out);
  const Pretraining asked = small_run(4);
  SerialRun serial(asked, asked.ways[0]);
  serial.report(4);
  CHECK(other.out.find(fmt::format("{:.4f}", serial.curve().validations.back().held_out)) != std::string::npos);
}
