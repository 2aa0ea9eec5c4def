// The time of a training step: every formula by hand, and what holds for all layouts.
#include "tools/scale/training_time.hpp"

#include <doctest/doctest.h>

#include <random>

#include "tests/near.hpp"
#include "tools/scale/tests/training_case.hpp"
#include "tools/scale/training_memory.hpp"
#include "tools/scale/training_software.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const Cluster& h100() {
  static const Cluster cluster = cluster_of("h100-efa");
  return cluster;
}

std::vector<Term> seconds_of(const char* model, const TrainingLayout& layout) {
  return training_seconds({model_shape(model), h100(), nanotron(), layout});
}

// A layout on 1 to 64 nodes of eight, with 256 sequences per step.
TrainingLayout random_layout(std::mt19937& random) {
  const auto power = [&random](int most) { return 1 << std::uniform_int_distribution<int>(0, most)(random); };
  for (;;) {
    const int nodes = power(6), tp = power(5), pp = power(5), micro_batch = power(4);
    const int dp = nodes * 8 / (tp * pp);
    if (dp < 1 || dp * micro_batch > 256) continue;
    return layout_of(nodes, dp, tp, pp, power(1) - 1, micro_batch, 256 / (dp * micro_batch));
  }
}

constexpr double kTokens = 4096, kLayerOf1B = 4.0 * 2048 * 2048 + 3.0 * 2048 * 8192, kLayerOf8B = 243269632;
constexpr double kMemory = 0.9 * 3350e9;
const double kNode = nanotron().node_link_share * 361.7e9;

}  // namespace

TEST_CASE("training_seconds: one node, DP alone: every term of 1B by hand") {
  const std::vector<Term> terms = seconds_of("1B", layout_of(1, 8, 1, 1, 0, 1, 32));
  const double table = 131072.0 * 2048, held = 16 * kLayerOf1B + table;
  const double rate = 989e12 * nanotron().product_efficiency;
  CHECK(amount(terms, &terms::products) == near(32 * 16 * 6 * kLayerOf1B * kTokens / rate));
  CHECK(amount(terms, &terms::attention) == near(32 * 16 * 12 * 2048.0 * 4096 * kTokens / (989e12 * 0.7)));
  CHECK(amount(terms, &terms::elementwise) == near(32 * 16 * kTokens * (160.0 * 2048 + 34.0 * 8192) / kMemory));
  CHECK(amount(terms, &terms::gradients_added) == near(32 * held * 12 / kMemory));
  CHECK(amount(terms, &terms::output_layer) == near(32 * 6 * table * kTokens / rate));
  CHECK(amount(terms, &terms::loss) == near(32 * kTokens * 131072 * 56 / kMemory));
  CHECK(amount(terms, &terms::adamw) == near(held * 46 / kMemory));
  CHECK(amount(terms, &terms::tp_transfers) == 0);
  CHECK(amount(terms, &terms::host) == 0);
  // Over NVLink all of the gradients' sum is hidden behind the last backward pass.
  CHECK(amount(terms, &terms::gradient_sum) == 0);
  CHECK(terms.size() == 8);
}

TEST_CASE("training_seconds: between nodes, with one micro-batch: what of the sum over DP is not hidden, and ZeRO-1") {
  const std::vector<Term> terms = seconds_of("1B", layout_of(32, 256, 1, 1, 1, 1, 1));
  const double held = 16 * kLayerOf1B + 131072.0 * 2048, wait = nanotron().group_seconds_per_doubling * 5;
  double slot = 0;
  for (const TermKind* id : {&terms::products, &terms::attention, &terms::elementwise, &terms::gradients_added,
                             &terms::output_layer, &terms::loss})
    slot += amount(terms, id);
  CHECK(amount(terms, &terms::gradient_sum) == near(2 * 255.0 / 256 * 4 * held / kNode + wait - slot * 2 / 3));
  CHECK(amount(terms, &terms::weight_gather) == near(255.0 / 256 * 2 * held / kNode + wait));
  CHECK(amount(terms, &terms::adamw) == near(held * (16 + 30.0 / 256) / kMemory));
}

TEST_CASE("training_seconds: TP inside of a node waits for the host, and beyond it for the network") {
  const std::vector<Term> inside = seconds_of("8B", layout_of(1, 1, 8, 1, 0, 1, 256));
  const double gathered = kTokens * 4096 * 2 * 7 / 8;
  CHECK(amount(inside, &terms::tp_transfers) == near(256 * 32 * 8 * gathered / (18 * 20.6e9)));
  double slots = 0;
  for (const Term& term : inside)
    if (term.kind != &terms::adamw) slots += term.amount;
  CHECK(slots == near(256 * 32 * nanotron().host_seconds_per_layer));
  const std::vector<Term> beyond = seconds_of("8B", layout_of(2, 1, 16, 1, 0, 1, 256));
  CHECK(amount(beyond, &terms::tp_latency) == near(256 * 32 * 15 * nanotron().node_hop_seconds));
  CHECK(amount(beyond, &terms::tp_transfers) == near(256 * 32 * 8 * kTokens * 4096 * 2 * 15 / 16 / kNode));
}

TEST_CASE("training_seconds: in pipelines over several nodes the host is slower by every TP rank") {
  // Two stages of 18 and 14 layers, the head with the second.
  const std::vector<Term> terms = seconds_of("8B", layout_of(2, 2, 4, 2, 1, 1, 128));
  const double floor = nanotron().host_seconds_per_layer + 4 * nanotron().pipeline_rank_seconds;
  double slots = 0;
  for (const Term& term : terms) {
    if (term.kind == &terms::fill_and_drain) break;
    slots += term.amount;
  }
  CHECK(slots == near(128 * 18 * floor));
  CHECK(amount(terms, &terms::fill_and_drain) == near(14 * floor));
  // Over four nodes per TP group, with the latency of three crossings.
  const double far =
      nanotron().host_seconds_per_layer + 32 * nanotron().pipeline_rank_seconds + nanotron().node_hop_seconds * 31 * 3;
  const std::vector<Term> wide = seconds_of("8B", layout_of(8, 1, 32, 2, 0, 1, 256));
  CHECK(amount(wide, &terms::fill_and_drain) == near(14 * far));
}

TEST_CASE("training_seconds: activations go on to the next stage, and the two copies of a tied table are summed") {
  // Two stages of 1B: the embedding and 11 layers, 5 layers and the head.
  const std::vector<Term> node = seconds_of("1B", layout_of(1, 4, 1, 2, 1, 1, 64));
  CHECK(amount(node, &terms::next_stage) == near(64 * 2 * 2 * kTokens * 2048 / (18 * 20.6e9)));
  CHECK(amount(node, &terms::tied_table) == near(4 * 131072.0 * 2048 / (18 * 20.6e9)));
  const std::vector<Term> nodes = seconds_of("1B", layout_of(2, 4, 2, 2, 1, 1, 64));
  CHECK(amount(nodes, &terms::tied_table) == near(4 * 131072.0 * 2048 / 2 / (kNode / 8)));
  CHECK(amount(seconds_of("8B", layout_of(1, 4, 1, 2, 1, 1, 64)), &terms::tied_table) == 0);
}

TEST_CASE("training_seconds: with TP the output layer gathers its input, and with EP tokens go to their experts") {
  const double gathered = kTokens * 4096 * 2 * 7 / 8, link = 18 * 20.6e9, rate = 989e12 * nanotron().product_efficiency;
  CHECK(amount(seconds_of("8B", layout_of(1, 1, 8, 1, 0, 1, 256)), &terms::output_layer) ==
        near(256 * (6 * 131072.0 * 4096 * kTokens / 8 / rate + 2 * gathered / link)));
  TrainingLayout layout = layout_of(1, 8, 1, 1, 1, 1, 32);
  layout.ep = 8;
  const ModelShape& qwen = model_shape("qwen3-30b");
  const double sent = 4 * 2 * kTokens * static_cast<double>(qwen.width * qwen.experts.chosen) * 7 / 8;
  CHECK(amount(seconds_of("qwen3-30b", layout), &terms::expert_tokens) ==
        near(32 * static_cast<double>(qwen.layers) * sent / link));
}

TEST_CASE(
    "training_seconds: what is recomputed takes a third more, and attention that is not fused writes its scores") {
  Cluster a100 = cluster_of("a100-selene");
  a100.accelerator.product_efficiency = {};
  const ModelShape& model = model_shape("megatron-22b");
  TrainingLayout layout = layout_of(1, 1, 8, 1, 0, 4, 1);
  const auto with = [&](Recomputation recomputation, const TermKind* id) {
    layout.recomputation = recomputation;
    return amount(training_seconds({model, a100, software_of("megatron"), layout}), id);
  };
  // A layer has 12 · 6144² weights, in products of four sizes that are taken as one.
  const double tokens = 4 * 2048, product = 2 * tokens * 12 * 6144 * 6144 / 8 / 4;
  const double rate = 312e12 * product_efficiency(a100.accelerator, product).value;
  const double scores = tokens * 64 * 2048 / 8;  // 64 heads
  CHECK(with(Recomputation::none, &terms::attention) ==
        near(48 * (12 * 6144 * 2048 * tokens / 8 / rate + 22 * scores / (0.9 * 2039e9))));
  for (const TermKind* id : {&terms::products, &terms::elementwise, &terms::tp_transfers}) {
    CHECK(with(Recomputation::selective, id) == with(Recomputation::none, id));
    CHECK(with(Recomputation::full, id) == near(with(Recomputation::none, id) * 4 / 3));
  }
  for (const Recomputation recomputation : {Recomputation::selective, Recomputation::full})
    CHECK(with(recomputation, &terms::attention) == near(with(Recomputation::none, &terms::attention) * 4 / 3));
}

TEST_CASE("training_seconds: memory beyond the card costs time for every micro-batch") {
  const TrainingLayout layout = layout_of(1, 4, 1, 2, 1, 1, 64);
  const double over = peak_bytes({model_shape("8B"), h100(), nanotron(), layout}) / kGibibyte - 80e9 / kGibibyte;
  CHECK(over > 0);
  CHECK(amount(seconds_of("8B", layout_of(2, 8, 1, 2, 1, 2, 16)), &terms::memory_mapped) == 0);
  CHECK(amount(seconds_of("8B", layout), &terms::memory_mapped) ==
        near(64 * nanotron().remap_seconds_per_gibibyte * over));
}

TEST_CASE("training_seconds: sizes outside of the fitted runs are marked, those inside are not") {
  CHECK(!any_extrapolated(seconds_of("8B", layout_of(64, 64, 8, 1, 1, 1, 4))));
  CHECK(any_extrapolated(seconds_of("80B", layout_of(64, 8, 8, 8, 1, 1, 32))));
  CHECK(any_extrapolated(seconds_of("8B", layout_of(128, 128, 8, 1, 1, 1, 2))));
  for (const Term& term : seconds_of("80B", layout_of(64, 8, 8, 8, 1, 1, 32)))
    for (const TermInput& input : term.inputs)
      if (input.nearest_at) CHECK(*input.nearest_at == 4096);
}

TEST_CASE("training_seconds: any layout: terms are not negative, their sum is the step, and it explains itself") {
  const unsigned seed = 2109;
  std::mt19937 random(seed);
  CAPTURE(seed);
  for (int i = 0; i < 300; ++i) {
    const TrainingLayout layout = random_layout(random);
    const char* model = std::vector<const char*>{"1B", "3B", "8B", "80B"}[static_cast<std::size_t>(i) % 4];
    CAPTURE(i);
    CAPTURE(model);
    CAPTURE(text(layout));
    const std::vector<Term> terms = seconds_of(model, layout);
    for (const Term& term : terms) CHECK(term.amount >= 0);
    CHECK(total(terms) == near(step_seconds({model_shape(model), h100(), nanotron(), layout}), 1e-12));
    for (const std::string& line : explain(terms, "s")) CHECK(line.find("= nan") == std::string::npos);
  }
}

TEST_CASE("step_seconds: any layout: better links, a faster accelerator or host, and less work never make it slower") {
  const unsigned seed = 81;
  std::mt19937 random(seed);
  CAPTURE(seed);
  Cluster links = h100(), faster = h100();
  for (NetworkLevel& level : links.levels) level.bytes_per_second *= 2;
  faster.accelerator.flops_per_second *= 2;
  faster.accelerator.memory_bytes_per_second *= 2;
  TrainingSoftware host = nanotron();
  host.host_seconds_per_layer /= 2;
  host.pipeline_rank_seconds /= 2;
  for (int i = 0; i < 300; ++i) {
    const TrainingLayout layout = random_layout(random);
    CAPTURE(i);
    CAPTURE(text(layout));
    const ModelShape& model = model_shape("8B");
    const double seconds = step_seconds({model, h100(), nanotron(), layout});
    // A shorter slot hides less of the sum over DP: that much may come back.
    const double hidden = 1 + 1e-12;
    CHECK(step_seconds({model, links, nanotron(), layout}) <= seconds * hidden);
    CHECK(step_seconds({model, faster, nanotron(), layout}) <= seconds * hidden);
    CHECK(step_seconds({model, h100(), host, layout}) <= seconds * hidden);
    CHECK(step_seconds({model_shape("80B"), h100(), nanotron(), layout}) > seconds);
    TrainingLayout longer = layout;
    ++longer.accumulation;
    CHECK(step_seconds({model, h100(), nanotron(), longer}) > seconds);
  }
}

TEST_CASE("step_seconds: recomputation costs time and saves memory, and interleaved stages shorten the bubble") {
  const ModelShape& model = model_shape("megatron-175b");
  const TrainingSoftware& megatron = software_of("megatron");
  const Cluster a100 = cluster_of("a100-selene");
  TrainingLayout layout = layout_of(8, 1, 8, 8, 0, 1, 64);
  const auto seconds = [&] { return step_seconds({model, a100, megatron, layout}); };
  const double none = seconds(), memory = total(training_bytes({model, a100, megatron, layout}));
  layout.recomputation = Recomputation::selective;
  const double selective = seconds(), less = total(training_bytes({model, a100, megatron, layout}));
  layout.recomputation = Recomputation::full;
  CHECK(none < selective);
  CHECK(selective < seconds());
  CHECK(less < memory);
  CHECK(total(training_bytes({model, a100, megatron, layout})) < less);
  const double whole = seconds();
  layout.chunks = 3;
  CHECK(seconds() < whole);
}
