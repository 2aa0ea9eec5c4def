// What Muon adds to a step of a run that a file describes: by hand, properties, and what a file can't say.
#include "tools/scale/run_prediction.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/scale/muon_cost.hpp"
#include "tools/scale/prediction_output.hpp"
#include "tools/scale/published_steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using nlohmann::json;

namespace {

// GPT-2 on one node, every field given.
json whole_run() {
  return json::parse(R"({"format": "muonwalk-run 1",
    "gpu": {"name": "H100 SXM", "bf16_tflops": 989, "fp32_tflops": 67, "memory_gb": 80, "memory_gb_per_s": 3350,
            "launch_us": 4},
    "cluster": {"gpus": 8, "gpus_per_node": 8, "inside_gb_per_s": 450, "inside_us": 10, "between_gb_per_s": 50,
                "between_us": 20},
    "model": {"layers": 12, "hidden": 768, "heads": 6, "kv_heads": 6, "ffn": 3072, "gated": false, "vocabulary": 50304,
              "experts": 0, "experts_used": 0, "expert_ffn": 0},
    "training": {"tokens_per_step": 524288, "sequence": 1024, "micro_batch_tokens": 65536, "recompute": false,
                 "weights": "bf16", "masters": "fp32", "gradients": "fp32", "compiled": true},
    "parallel": {"dp": 8, "tp": 1, "pp": 1, "ep": 1, "shard": "ddp"},
    "muon": {"who": "dealt", "then": "all_reduce", "dtype": "bf16", "ns_steps": 5, "for": "hidden", "symmetric": false,
             "gram": false}})");
}

// The same with changes, of the form {"/muon/who", "all"}.
json changed(const std::vector<std::pair<const char*, json>>& changes, json run = whole_run()) {
  for (const auto& [where, value] : changes) run[json::json_pointer(where)] = value;
  return run;
}

TrainingRun run_of(const json& run) { return training_run("run.json", run.dump()); }
RunAnswer answer(const json& run) { return predict_run(run_of(run)); }
RunAnswer answer_with(const std::vector<std::pair<const char*, json>>& changes) { return answer(changed(changes)); }

double amount_of(const RunStep& step, const TermKind& kind) {
  double sum = 0;
  for (const Term& term : step.seconds)
    if (term.kind == &kind) sum += term.amount;
  return sum;
}
double sent(const RunAnswer& of, const char* collective) {
  const auto found = of.sent.find(collective);
  return found == of.sent.end() ? 0 : found->second;
}
bool assumes(const json& run, const std::string& part) {
  const TrainingRun read = run_of(run);
  return std::any_of(read.assumed.begin(), read.assumed.end(),
                     [&part](const std::string& each) { return each.find(part) != std::string::npos; });
}

constexpr double kHidden = 12 * 12.0 * 768 * 768;  // elements of the matrices

}  // namespace

TEST_CASE("a run: FLOPs, bytes and T·m/B by hand") {
  const RunAnswer all = answer_with({{"/muon/who", "all"}});
  double flops = 0;
  for (const Term& term : all.muon.seconds)
    if (term.kind == &terms::newton_schulz) flops = term.inputs.front().value;
  CHECK(flops == near(48 * newton_schulz_flops(768, 768) + 24 * newton_schulz_flops(3072, 768)));
  CHECK(all.sent.empty());
  // AdamW: a bf16 weight, an fp32 gradient, and 24 bytes of moments and master; of the tables alone beside Muon.
  const double tables = 2 * 50304 * 768.0, rate = 0.9 * 3350e9;
  CHECK(amount_of(all.adamw, terms::adamw) == near(30 * (tables + kHidden) / rate));
  CHECK(amount_of(all.muon, terms::adamw) == near(30 * tables / rate));
  CHECK(all.jordan == near(5 * 768.0 / 524288));
  CHECK(sent(answer(whole_run()), "all_reduce") == near(2 * 7 / 8.0 * 2 * kHidden));
  CHECK(sent(answer_with({{"/muon/then", "all_gather"}}), "all_gather") == near(7 / 8.0 * 2 * kHidden));
  CHECK(sent(answer_with({{"/muon/then", "broadcast"}, {"/muon/dtype", "fp32"}}), "broadcast") ==
        near(7 / 8.0 * 4 * kHidden));
  CHECK(sent(answer_with({{"/muon/who", "all"}, {"/parallel/shard", "fsdp2"}}), "all_gather") ==
        near(7 / 8.0 * 2 * kHidden));
  CHECK(sent(answer_with({{"/muon/who", "owner_all_to_all"}, {"/parallel/shard", "fsdp2"}}), "all_to_all") ==
        near(2 * 7 / 64.0 * 2 * kHidden));
  // Three products of five steps each take the other ranks' parts of X, of the Gram matrix, and of X.
  CHECK(sent(answer_with({{"/muon/who", "sharded_products"}, {"/parallel/shard", "fsdp2"}}), "all_gather") ==
        near(7 / 8.0 * 2 * 5 * (2 * kHidden + 72 * 768.0 * 768)));
}

TEST_CASE("a run: the sum of the parts is the whole, whoever orthogonalizes, and the band holds the middle") {
  const json all_ways[] = {"all", "dealt", "owner_all_to_all", "sharded_products", "a", "(b)", "c", "d", "e", "f",
                           "g",   "h"};
  const json shardings[] = {"ddp", "zero1", "fsdp2", json{{"replicate", 2}, {"shard", 4}}};
  for (const json& who : all_ways)
    for (const json& shard : shardings) {
      CAPTURE(who.dump());
      CAPTURE(shard.dump());
      if (who == "sharded_products" && !(shard.is_object() || shard == "fsdp2")) continue;
      const json run = changed({{"/muon/who", who}, {"/parallel/shard", shard}});
      const RunAnswer each = answer(run);
      for (const RunStep* step : {&each.adamw, &each.muon}) {
        CHECK(step->step() == near(total(step->seconds)));
        CHECK(step->optimizer < step->step());
        CHECK(step->newton_schulz ==
              near(amount_of(*step, terms::newton_schulz) + amount_of(*step, terms::newton_schulz_elementwise)));
        for (const Term& term : step->seconds) CHECK(std::isfinite(term.amount));
      }
      CHECK(each.adamw.newton_schulz == 0);
      CHECK(each.muon.newton_schulz > 0);
      // Forward and backward are the same but for a gather that new weights replace.
      const double gathers = amount_of(each.adamw, terms::weight_gather) - amount_of(each.muon, terms::weight_gather);
      CHECK(each.extra() == near(each.muon.optimizer - each.adamw.optimizer - gathers));
      const auto [low, high] = band_of(run_of(run));
      CHECK(low.extra < each.extra());
      CHECK(each.extra() < high.extra);
      CHECK(low.share < each.extra_share());
      CHECK(each.extra_share() < high.share);
    }
}

TEST_CASE("a run: more tokens make Muon's share smaller, and what it adds stays") {
  double before = 1;
  for (const int sequences : {64, 128, 256, 1024}) {
    const RunAnswer each = answer_with({{"/training/tokens_per_step", 8 * 1024 * sequences}});
    CHECK(each.extra() == near(answer(whole_run()).extra()));
    CHECK(each.extra_share() < before);
    before = each.extra_share();
  }
}

TEST_CASE("a run: dealing out divides Newton–Schulz by the owners, and so do experts") {
  const double all = answer_with({{"/muon/who", "all"}}).muon.newton_schulz;
  for (const int dp : {1, 2, 4, 8}) {
    const RunAnswer dealt = answer_with({{"/parallel/dp", dp}, {"/cluster/gpus", dp}});
    CHECK(dealt.muon.newton_schulz == near(all / dp));
  }
  // More owners than matrices: one of the largest is left.
  const double alone =
      answer_with({{"/parallel/dp", 128}, {"/cluster/gpus", 128}, {"/training/micro_batch_tokens", 4096}})
          .muon.newton_schulz;
  CHECK(alone < all / 8);
  CHECK(alone > all / 72);
  const json experts = changed({{"/model/experts", 8},
                                {"/model/experts_used", 2},
                                {"/model/expert_ffn", 512},
                                {"/model/ffn", 0},
                                {"/muon/who", "all"}});
  const double whole = answer(experts).muon.newton_schulz;
  const double shared = answer(changed({{"/parallel/ep", 8}}, experts)).muon.newton_schulz;
  CHECK(shared < whole / 2);
  CHECK(shared > whole / 8);  // attention is not shared out
}

TEST_CASE("a run: a model that is bound by launches doesn't get faster with a faster GPU, a large one does") {
  const std::vector<std::pair<const char*, json>> faster = {{"/gpu/bf16_tflops", 1978}, {"/gpu/memory_gb_per_s", 6700}};
  for (const bool compiled : {false, true}) {
    const json small = changed({{"/model/hidden", 64},
                                {"/model/heads", 1},
                                {"/model/kv_heads", 1},
                                {"/model/ffn", 256},
                                {"/training/compiled", compiled}});
    const RunAnswer slow = answer(small), fast = answer(changed(faster, small));
    CHECK(slow.muon.newton_schulz == near(fast.muon.newton_schulz));
    CHECK(slow.waiting_matrices == slow.matrices);
    CHECK(answer(changed({{"/gpu/launch_us", 8}}, small)).muon.newton_schulz == near(2 * slow.muon.newton_schulz));
    const json large = changed({{"/model/hidden", 4096},
                                {"/model/ffn", 16384},
                                {"/model/heads", 32},
                                {"/model/kv_heads", 32},
                                {"/training/compiled", compiled}});
    CHECK(answer(changed(faster, large)).muon.newton_schulz < 0.7 * answer(large).muon.newton_schulz);
    CHECK(answer(large).waiting_matrices == 0);
  }
  // The side is the one at which it turns.
  const double side = answer(whole_run()).least_side;
  CHECK(answer_with({{"/gpu/bf16_tflops", 1978}}).least_side > side);
  CHECK(answer_with({{"/gpu/launch_us", 8}}).least_side > side);
}

TEST_CASE("a run: slower links, eager kernels, repeated work, float32 and full products all cost more") {
  const json base =
      changed({{"/model/hidden", 2048}, {"/model/ffn", 8192}, {"/model/heads", 16}, {"/model/kv_heads", 16}});
  const double extra = answer(base).extra();
  const auto of = [&base](const std::vector<std::pair<const char*, json>>& changes) {
    return answer(changed(changes, base)).extra();
  };
  CHECK(of({{"/cluster/inside_gb_per_s", 45}}) > extra);
  CHECK(of({{"/cluster/inside_us", 1000}}) > extra);
  CHECK(of({{"/training/compiled", false}}) > extra);
  CHECK(of({{"/muon/who", "all"}}) > extra);
  CHECK(of({{"/muon/dtype", "fp32"}}) > extra);
  CHECK(of({{"/muon/ns_steps", 6}}) > extra);
  CHECK(of({{"/muon/then", "all_gather"}}) < extra);
  CHECK(of({{"/muon/symmetric", true}}) < extra);
  CHECK(of({{"/muon/gram", true}}) < extra);
  // Over the nodes' links it takes longer than inside of one.
  CHECK(of({{"/cluster/gpus_per_node", 4}}) > extra);
}

TEST_CASE("a run: Gram Newton–Schulz and half products have the FLOPs that strategies of the field count") {
  const auto flops = [](bool gram, bool symmetric, int steps = 5) {
    const RunAnswer each = answer(changed({{"/model/matrices", json::array({{{"name", "w"}, {"shape", {512, 2048}}}})},
                                           {"/muon/who", "all"},
                                           {"/muon/gram", gram},
                                           {"/muon/ns_steps", steps},
                                           {"/muon/symmetric", symmetric}}));
    for (const Term& term : each.muon.seconds)
      if (term.kind == &terms::newton_schulz) return term.inputs.front().value;
    return 0.0;
  };
  const double mmn = 512.0 * 512 * 2048, mmm = 512.0 * 512 * 512;
  CHECK(flops(false, false) == near(20 * mmn + 10 * mmm));
  CHECK(flops(false, true) == near(15 * mmn + 5 * mmm));
  CHECK(flops(true, false) == near(8 * mmn + 28 * mmm));
  CHECK(flops(true, true) == near(6 * mmn + 14 * mmm));
  NewtonSchulzSettings settings;
  settings.gram = true;
  for (settings.steps = 1; settings.steps <= 8; ++settings.steps)
    CHECK(flops(true, false, settings.steps) == near(newton_schulz_flops(512, 2048, settings)));
}

TEST_CASE("a run: with TP every rank of a group gathers the matrix and repeats its Newton–Schulz") {
  const json cut = changed({{"/parallel/dp", 4}, {"/parallel/tp", 2}});
  const RunAnswer each = answer(cut), whole = answer_with({{"/parallel/dp", 4}, {"/cluster/gpus", 4}});
  CHECK(each.muon.newton_schulz == near(whole.muon.newton_schulz));
  CHECK(sent(each, "all_gather") == near(1 / 2.0 * 2 * kHidden / 4));
  CHECK(sent(each, "all_reduce") == near(2 * 3 / 4.0 * 2 * kHidden / 2));
  for (const char* who : {"all", "dealt", "owner_all_to_all", "d"}) {
    const RunAnswer shards = answer(changed({{"/muon/who", who}, {"/parallel/shard", "fsdp2"}}, cut));
    CHECK(shards.muon.step() == near(total(shards.muon.seconds)));
    CHECK(sent(shards, "all_gather") > 0);
    // Slices of half the size over four ranks, which lie two apart.
    // Over two nodes, two ranks of a group in each: in two micro-batches weights twice in bf16 and gradients in fp32,
    // of which a twelfth is not hidden.
    const json two_nodes = changed({{"/parallel/shard", "fsdp2"}, {"/cluster/gpus_per_node", 4}}, cut);
    const double bytes = 4 * (kHidden + 2 * 50304 * 768.0) / 2;
    const double once = bytes * (0.5 / (0.82 * 450e9) + 0.25 / (0.97 * 50e9)) + 30e-6;
    CHECK(amount_of(answer(two_nodes).adamw, terms::shard_traffic) == near(2 * 2 * once / 12));
  }
}

TEST_CASE("a run: the same matrices by name and shape cost the same, and only those that are asked for are Muon's") {
  json list = json::array();
  for (const char* name : {"q", "k", "v", "o"})
    list.push_back({{"name", name}, {"count", 12}, {"shape", {768, 768}}, {"optimizer", "muon"}});
  list.push_back({{"name", "h.*.up"}, {"count", 12}, {"shape", {3072, 768}}});
  list.push_back({{"name", "h.*.down"}, {"shape", {12, 768, 3072}}});  // a stack
  list.push_back({{"name", "wte"}, {"shape", {50304, 768}}, {"optimizer", "adamw"}});
  list.push_back({{"name", "head"}, {"shape", {50304, 768}}, {"optimizer", "adamw"}});
  const RunAnswer named = answer_with({{"/model/matrices", list}}), sized = answer(whole_run());
  CHECK(named.muon.step() == near(sized.muon.step()));
  CHECK(named.adamw.step() == near(sized.adamw.step()));
  const RunAnswer some = answer(changed({{"/model/matrices", list}, {"/muon/for", {"h.*", "q"}}}));
  CHECK(some.matrices == 36);
  CHECK(some.extra() < named.extra());
  CHECK(answer_with({{"/muon/for", {"up", "down"}}}).matrices == 24);
  // Without sizes there are the products of the matrices, and no more.
  json alone = changed({{"/model", {{"matrices", list}}}});
  CHECK(answer(alone).muon.newton_schulz > 0);
  CHECK(assumes(alone, "no scores of attention"));
  CHECK(assumes(changed({{"/model/matrices", json::array({list[0]})}}), "the sizes make"));
}

TEST_CASE("a run: memory: one momentum in place of two moments, of what a rank owns") {
  const auto difference = [](const std::vector<std::pair<const char*, json>>& changes) {
    const RunAnswer each = answer_with(changes);
    return each.adamw.memory() - each.muon.memory();
  };
  CHECK(difference({{"/muon/who", "all"}}) == near(4 * kHidden));
  CHECK(difference({}) == near((8 - 4 / 8.0) * kHidden));
  CHECK(difference({{"/muon/who", "d"}, {"/parallel/shard", "zero1"}}) == near(4 / 8.0 * kHidden));
  CHECK(answer_with({{"/parallel/shard", "fsdp2"}}).adamw.memory() <
        answer_with({{"/parallel/shard", "zero1"}}).adamw.memory());
  CHECK(answer_with({{"/parallel/shard", "zero1"}}).adamw.memory() < answer(whole_run()).adamw.memory());
}

TEST_CASE("a run: the letters send what their plans send") {
  for (const Strategy& each : strategies()) {
    CAPTURE(each.letter);
    const RunAnswer here = answer_with({{"/muon/who", std::string(1, each.letter)},
                                        {"/parallel/shard", "zero1"},
                                        {"/parallel/dp", 4},
                                        {"/parallel/tp", 2}});
    std::vector<Parameter> matrices;
    const TrainingRun run = run_of(changed({{"/parallel/dp", 4}, {"/parallel/tp", 2}}));
    for (const RunMatrices& kind : run.matrices)
      for (int n = 0; n < kind.count; ++n)
        matrices.push_back({kind.name + std::to_string(n), kind.shape, kind.tp_split_dim});
    MuonSetup setup;
    setup.strategy = each;
    const MuonCost cost = muon_cost(matrices, 4, 2, 2, megatron_bucket(4), setup, run.cluster);
    double bytes = 0;
    for (const auto& [name, all] : here.sent) bytes += all;
    CHECK(bytes == near(cost.bytes_sent));
  }
}

TEST_CASE("a run: what is left out is taken and named, what can't be known is not") {
  const json least = json::parse(R"({"format": "muonwalk-run 1", "gpu": {"name": "NVIDIA A100-SXM4-80GB"},
    "model": {"layers": 4, "hidden": 256}, "training": {"tokens_per_step": 8192}})");
  for (const char* part : {"gpu.bf16_tflops is left out: 312", "parallel.dp is left out: 1", "muon.who is left out",
                           "training.sequence is left out: 2,048", "model.heads is left out: 2",
                           "model.vocabulary is left out", "muon.for is left out", "gpu.launch_us is left out: 4"})
    CHECK_MESSAGE(assumes(least, part), part);
  CHECK(answer(least).extra() > 0);
  CHECK(!assumes(whole_run(), "left out"));
  json cheaper = least;  // a card whose name is the beginning of another's
  cheaper["gpu"]["name"] = "NVIDIA H100 PCIe";
  CHECK(assumes(cheaper, "gpu.bf16_tflops is left out: 756"));
  cheaper["gpu"]["name"] = "NVIDIA A100-SXM4-40GB";
  CHECK(assumes(cheaper, "gpu.memory_gb is left out: 40"));
  CHECK(assumes(changed({{"/gpu/name", "some card"}}), "no efficiency of products is known for some card"));
}

TEST_CASE("a run: what can't be is refused in one sentence that names the field") {
  const auto refused = [](const json& run, const std::string& part) {
    CAPTURE(run.dump());
    try {
      answer(run);
      FAIL("it was taken");
    } catch (const UsageError& error) {
      const std::string sentence = error.what();
      CAPTURE(sentence);
      CHECK(sentence.find(part) != std::string::npos);
      CHECK(sentence.find('\n') == std::string::npos);
    }
  };
  const auto without = [](const char* where) {
    json run = whole_run();
    const json::json_pointer at(where);
    run[at.parent_pointer()].erase(at.back());
    return run;
  };
  refused(json::array(), "it is JSON, but not an object");
  refused(without("/format"), "its \"format\" is missing");
  refused(changed({{"/format", "muonwalk-run 2"}}), "is not \"muonwalk-run 1\"");
  for (const char* part : {"/gpu", "/model", "/training"}) refused(without(part), "is missing");
  refused(without("/training/tokens_per_step"), "\"training.tokens_per_step\" is missing");
  refused(changed({{"/gpu", {{"name", "some card"}}}}),
          "\"gpu.bf16_tflops\" is missing, and no GPU called \"some card\"");
  refused(changed({{"/model", {{"vocabulary", 10}}}}), "layers and hidden, or a list of matrices");
  for (const char* unknown :
       {"/speed", "/gpu/tflops", "/cluster/links", "/model/depth", "/training/batch", "/parallel/cp", "/muon/steps"})
    refused(changed({{unknown, 1}}), "is not a field that it knows");
  refused(changed({{"/gpu/bf16_tflops", -1}}), "\"gpu.bf16_tflops\" is -1");
  refused(changed({{"/gpu/bf16_tflops", "fast"}}), "is not a number");
  refused(changed({{"/training/compiled", 1}}), "is neither true nor false");
  refused(changed({{"/training/weights", "fp8"}}), "\"fp8\"; it can be bf16, fp32");
  refused(changed({{"/parallel/shard", "zero3"}}), "ddp, zero1, fsdp2, hsdp");
  refused(changed({{"/muon/who", "i"}}), "or a letter from a to h");
  refused(changed({{"/muon/then", "scatter"}}), "all_reduce, all_gather, broadcast");
  refused(changed({{"/muon/who", "sharded_products"}}), "every rank has whole matrices");
  refused(changed({{"/muon/for", {"gate"}}}), "\"gate\", which is not the name of a matrix");
  refused(changed({{"/muon/for", "some"}}), "neither \"hidden\" nor a list");
  refused(changed({{"/parallel/dp", 4}}), "dp 4 × tp 1 × pp 1 = 4 ranks, and there are 8 GPUs");
  refused(changed({{"/cluster/gpus_per_node", 3}}), "does not divide the 8 GPUs");
  refused(changed({{"/parallel/ep", 3}}), "does not divide dp 8");
  refused(changed({{"/parallel/ep", 2}}), "nothing that ep 2 could share out");
  refused(changed({{"/parallel/dp", 2}, {"/parallel/tp", 4}}), "4");  // six heads
  refused(changed({{"/parallel/dp", 1}, {"/parallel/pp", 8}, {"/training/tokens_per_step", 4 * 65536}}),
          "makes 4 micro-batches, and pp 8 takes at least 7");
  refused(changed({{"/parallel/dp", 1}, {"/parallel/pp", 8}}), "stage 6 of 8 stays empty");
  refused(changed({{"/parallel/shard", {{"replicate", 2}, {"shard", 2}}}}), "2 replicas of 2 shards, and dp is 8");
  refused(changed({{"/training/tokens_per_step", 1000}}), "fewer than dp 8 × the 65536");
  refused(changed({{"/model/heads", 7}}), "does not divide the 768 channels");
  refused(changed({{"/model/experts", 8}}), "experts_used has to be from 1");
  refused(changed({{"/model/matrices", json::array({{{"name", "w"}, {"shape", {768}}}})}}), "list of two sizes");
  refused(changed({{"/model/matrices", json::array()}}), "is not a list of 1 to 4096 objects");
  CHECK_THROWS_AS(training_run("run.json", "{\"format\": "), UsageError);
  CHECK_THROWS_AS(training_run("run.json", R"({"format": "muonwalk-run 1", "format": "muonwalk-run 1"})"), UsageError);
}

TEST_CASE("a run: page and JSON say the same") {
  for (const json& run : {whole_run(), changed({{"/muon/who", "e"}, {"/parallel/shard", "zero1"}}),
                          changed({{"/training/micro_batch_tokens", 16384}})}) {
    const TrainingRun read = run_of(run);
    const RunAnswer here = predict_run(read);
    const auto band = band_of(read);
    std::string page;
    for (const std::string& line : run_text(read, here, band)) {
      CHECK(text_width(line) <= kColumns);
      page += line + "\n";
    }
    const bool one = read.layout.accumulation == 1;
    CHECK(page.find(one ? "micro-batch of 65,536\n" : "micro-batches of 16,384\n") != std::string::npos);
    const json answered = json::parse(run_json(read, here, band));
    CHECK(answered["format"] == "muonwalk-answer 1");
    const auto shown = [&page](const json& number, int digits, const char* unit) {
      const std::string text = fixed_text(number.get<double>(), digits, unit);
      CHECK_MESSAGE(page.find(text) != std::string::npos, text);
    };
    for (const char* side : {"adamw", "muon"}) {
      shown(answered[side]["step_ms"], 3, "ms");
      shown(answered[side]["optimizer_ms"], 3, "ms");
      shown(answered[side]["memory_gb"], 3, "GB");
      double sum = 0;
      for (const json& term : answered[side]["terms"]) {
        sum += term["ms"].get<double>();
        CHECK(!term["inputs"].empty());
        for (const json& input : term["inputs"])
          if (side == std::string("muon") && term["ms"] > 0)
            CHECK_MESSAGE(page.find(input["name"].get<std::string>() + " ") != std::string::npos, input);
      }
      CHECK(sum == near(answered[side]["step_ms"].get<double>()));
    }
    shown(answered["muon"]["newton_schulz_ms"], 3, "ms");
    shown(answered["extra_ms"], 3, "ms");
    for (const char* end : {"low", "high"}) {
      shown(answered[end]["extra_ms"], 3, "ms");
      shown(answered[end]["extra_percent"], 2, "%");
    }
    shown(answered["extra_percent"], 2, "%");
    CHECK(answered["extra_ms"].get<double>() ==
          near(answered["muon"]["step_ms"].get<double>() - answered["adamw"]["step_ms"].get<double>()));
    for (const auto& [collective, bytes] : answered["muon"]["bytes"].items()) {
      CHECK(page.find(collective) != std::string::npos);
      shown(bytes.get<double>() / 1e9, 3, "GB");
    }
    for (const json& each : answered["assumed"]) CHECK(!each.get<std::string>().empty());
  }
}

// Which guards against getting worse, and proves nothing: the band was chosen with these in sight.
TEST_CASE("published pairs: closer than \"Muon costs nothing\" and T·m/B in the mean, seven of eight in the band") {
  double ours = 0, nothing = 0, jordan = 0, inside = 0;
  const std::vector<PublishedPair> pairs = published_pairs();
  for (const PublishedPair& each : pairs) {
    ours += std::abs(each.error());
    nothing += std::abs(each.published);
    jordan += std::abs(each.jordan - each.published);
    inside += each.low <= each.published && each.published <= each.high ? 1 : 0;
  }
  REQUIRE(pairs.size() == 8);
  CHECK(ours < nothing);
  CHECK(ours < jordan);
  CHECK(inside >= 7);
  CHECK(pairs[0].adamw == near(0.13861));
  CHECK(pairs[0].tokens);
  CHECK(std::abs(pairs[0].error()) < std::abs(pairs[0].jordan - pairs[0].published));
  for (const std::string& line : testing::lines_of(published_pairs_text())) CHECK(text_width(line) <= kColumns);
}
