// What lesson 20 is asked for: what it makes of that, and what it refuses.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

RankInfo info_of(std::uint64_t seed) {
  RankInfo rank;
  rank.seed = seed;
  rank.products = Products::chain;
  return rank;
}

PretrainingRequest small() {
  PretrainingRequest request;
  request.small = true;
  return request;
}

std::string refusal(const PretrainingRequest& request) {
  return usage_error([&] { requested_pretraining(request, info_of(1)); });
}

}  // namespace

TEST_CASE("a run as it is asked for: steps, validations, the pause, rates, and a way for each optimizer") {
  PretrainingRequest request = small();
  for (const auto& [asked, steps, every, pause, warmup] : {std::tuple(kUsualSteps, 6, 1, 3, 1),
                                                           {2, 2, 1, 1, 1},
                                                           {49, 49, 2, 24, 4},
                                                           {100000, 100000, 4166, 50000, 10000}}) {
    request.steps = asked;
    const Pretraining run = requested_pretraining(request, info_of(1));
    CHECK(run.steps == steps);
    CHECK(run.every == every);
    CHECK(run.pause == pause);
    CHECK(run.rates.warmup == warmup);
    CHECK(run.rates.steps == steps);
    CHECK(run.rates.final_fraction == 0.1f);
  }
  CHECK(requested_pretraining(PretrainingRequest(), info_of(1)).steps == 120);
  request.steps = 49;
  for (const std::string optimizer : {"both", "muon", "adamw"}) {
    request.optimizer = optimizer;
    std::string words;
    for (const ComparedTraining& way : requested_pretraining(request, info_of(1)).ways) words += way.word + " ";
    CHECK(words == (optimizer == "both" ? "adamw muon " : optimizer + " "));
  }
  request = small();
  request.save = "somewhere";
  Pretraining run = requested_pretraining(request, info_of(1));
  for (int step = 1; step <= 6; ++step) CHECK(run.saves(step) == (step == 6));
  run.save_every = 4;
  for (int step = 1; step <= 6; ++step) CHECK(run.saves(step) == (step == 4 || step == 6));
  run.every = 4;
  for (int step = 1; step <= 6; ++step) CHECK(run.validates(step) == (step == 4 || step == 6));
  run.save.clear();
  for (int step = 1; step <= 6; ++step) CHECK_FALSE(run.saves(step));
}

TEST_CASE("what decides the bits of a run is in its notes, and the two ways differ in what is theirs") {
  PretrainingRequest request = small();
  request.decay = "all";
  request.lr = 0.03f;
  request.outer_lr = 0.04f;
  request.adamw_lr = 0.05f;
  request.micro_batches = 4;
  RankInfo rank = info_of(17);
  rank.precision = Precision::bf16;
  const Pretraining run = requested_pretraining(request, rank);
  REQUIRE(run.ways.size() == 2);
  const ComparedTraining &adamw = run.ways[0], &muon = run.ways[1];
  std::map<std::string, std::string> expected = {
      {"seed", "17"},
      {"text", run.corpus.digest()},
      {"model", "width 16, 2 layers, 4 heads of queries, 2 of keys and values, hidden 32, 16 tokens"},
      {"optimizer", "adamw"},
      {"rates", "Muon 0.03, AdamW 0.05, warm-up 1 of 6 steps"},
      {"decay", "all"},
      {"batch", "4 micro-batches of " + std::to_string(adamw.training.rows()) + " tokens"},
      {"newton_schulz", "bf16, chain"}};
  CHECK(run.notes(adamw) == expected);
  expected["optimizer"] = "muon";
  expected["rates"] = "Muon 0.03, AdamW 0.04, warm-up 1 of 6 steps";
  CHECK(run.notes(muon) == expected);
  CHECK(adamw.training.adamw_alone);
  CHECK_FALSE(muon.training.adamw_alone);
  CHECK(muon.training.muon.momentum == 0.95);
  CHECK(muon.training.adamw.beta2 == 0.95f);
  CHECK(adamw.name == "AdamW");
  CHECK(muon.name == "Muon + AdamW");
  // Up to the pause in the first layout, and from there on in the other.
  for (int steps = 0; steps <= 6; ++steps)
    CHECK(&training_behind(run, muon, steps) == (steps < 3 ? &muon.training : &muon.rearranged));
  CHECK(muon.training.bucket_capacity == 0);
  CHECK(muon.rearranged.bucket_capacity == 500);
  ComparedTraining resumed = muon;
  resumed.done = 4;
  const auto tokens = [&](int steps) { return std::to_string(steps * 4 * muon.training.rows() / 2); };
  CHECK(pace_text(run, muon, 2) ==
        "Muon + AdamW: " + tokens(6) + " tokens per second with the reference beside it, 2.0 s in all");
  CHECK(pace_text(run, resumed, 2) ==
        "Muon + AdamW: " + tokens(2) + " tokens per second with the reference beside it, 2.0 s in all");
}

TEST_CASE("a run that can't be is refused in a sentence, at both ends of what can") {
  const auto with = [](const std::function<void(PretrainingRequest&)>& change) {
    PretrainingRequest request = small();
    change(request);
    return refusal(request);
  };
  for (const int steps : {1, 0, -3, 100001})
    CHECK(with([=](PretrainingRequest& r) { r.steps = steps; }) ==
          "--steps " + std::to_string(steps) + " is not possible; it can be 2 to 100000.");
  CHECK(with([](PretrainingRequest& r) { r.optimizer = "sgd"; }) ==
        "--optimizer takes muon, adamw or both, and not \"sgd\".");
  CHECK(with([](PretrainingRequest& r) { r.decay = "some"; }) == "--decay takes matrices or all, and not \"some\".");
  for (const int every : {2, -1})
    CHECK(with([=](PretrainingRequest& r) { r.save_every = every; }) ==
          "--save-every " + std::to_string(every) + " needs --save FOLDER, and a number of steps.");
  CHECK(with([](PretrainingRequest& r) { r.save = "x", r.save_every = -1; }) ==
        "--save-every -1 needs --save FOLDER, and a number of steps.");
  for (const char* option : {"--save", "--resume"})
    CHECK(with([=](PretrainingRequest& r) {
            r.experts = 4;
            (option == std::string("--save") ? r.save : r.resume) = "x";
          }) ==
          std::string("--experts trains without an interruption, because checkpoints hold no experts, so it does not "
                      "go with ") +
              option + "; leave one of them out.");
  CHECK(with([](PretrainingRequest& r) { r.ep = 2; }).find("--ep 2 can't deal out 0 experts") == 0);
  CHECK(with([](PretrainingRequest& r) { r.experts = -4; }).find("a router can't choose 2 of -4 experts") == 0);
  const std::string one_process =
      "--sweep trains with one rate after the other on one process, and writes no file, so it does not go with ";
  const std::string grids =
      "--grids trains on one grid after the other from the first weights, and writes no file, so it does not go with ";
  const std::vector<std::pair<std::string, std::string PretrainingRequest::*>> files = {
      {"--save", &PretrainingRequest::save}, {"--resume", &PretrainingRequest::resume}};
  for (const auto& [option, value] : files) {
    const auto given = value;
    CHECK(with([=](PretrainingRequest& r) { r.sweep = true, r.*given = "x"; }) ==
          one_process + option + "; leave one of them out.");
    CHECK(with([=](PretrainingRequest& r) { r.grids = "1x1x1", r.*given = "x"; }) ==
          grids + option + "; leave one of them out.");
  }
  for (const int seeds : {-1, 101})
    CHECK(with([=](PretrainingRequest& r) { r.seeds = seeds; }) ==
          "--seeds " + std::to_string(seeds) + " makes no sense; it takes a number from 1 to 100.");
  CHECK(with([](PretrainingRequest& r) { r.seeds = 2, r.sweep = true; }) ==
        "--seeds trains with one seed after the other on one process, and writes no file, so it does not go with "
        "--sweep; leave one of them out.");
  CHECK(with([](PretrainingRequest& r) { r.sweep = true, r.grids = "1x1x1"; }) ==
        one_process + "--grids; leave one of them out.");
  CHECK(with([](PretrainingRequest& r) {
          r.grids = "1x1x1,3x1x1";
        }).find("--micro-batches 8 can't be dealt out to 3") == 0);
}

TEST_CASE("grids as they are asked for: dp, tp and pp, of as many ranks as there can be") {
  const std::vector<Grid> two = grids_of("1x2x3,2x1x1");
  REQUIRE(two.size() == 2);
  CHECK(two[0] == Grid().dp(1).tp(2).pp(3));
  CHECK(two[1] == Grid().dp(2));
  const std::string most = std::to_string(kMostRanks), more = std::to_string(kMostRanks + 1);
  CHECK(grids_of(most + "x1x1")[0].size() == kMostRanks);
  for (const std::string& wrong :
       {std::string("1x2"), std::string("0x1x1"), std::string("1x0x1"), std::string("1x1x0"), std::string("ax1x1"),
        std::string("1x1x1x"), std::string(""), more + "x1x1", "1x" + more + "x1", "1x1x" + more})
    CHECK(usage_error([&] { grids_of("1x1x1," + wrong); }) == "--grids \"1x1x1," + wrong + "\" has \"" + wrong +
                                                                  "\" in it, which is not a grid of 1 to " + most +
                                                                  " ranks; try --grids 1x1x1,2x2x2 (dp x tp x pp)");
}

TEST_CASE("--resume: a file, a folder, or the way's own folder in it; each with the latest, or a sentence") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& where, int steps) {
    write_text(checkpoint_path(where, steps), "not looked at");
    return checkpoint_path(where, steps);
  };
  const auto sentence = [](const std::string& path, bool both) {
    return usage_error([&] { resumed_file(path, "muon", both); });
  };
  CHECK(resumed_file("", "muon", true).empty());
  const std::string none = folder.file("none");
  CHECK(sentence(none, false) ==
        "--resume \"" + none +
            "\" can't be read: there is no such file or folder; name a checkpoint, or a folder that --save has written "
            "to.");
  CHECK(sentence(folder.path(), false) ==
        "--resume \"" + folder.path() + "\" has no checkpoint in it; --save FOLDER writes some.");
  put(folder.path(), 7);
  const std::string latest = put(folder.path(), 12);
  for (const bool both : {false, true}) CHECK(resumed_file(folder.path(), "muon", both) == latest);
  CHECK(resumed_file(latest, "muon", false) == latest);
  CHECK(sentence(latest, true) ==
        "--resume \"" + latest +
            "\" is one checkpoint; say which optimizer is to go on from it: --optimizer muon or --optimizer adamw.");
  REQUIRE(mkdir(folder.file("muon").c_str(), 0777) == 0);
  CHECK(sentence(folder.path(), false) ==
        "--resume \"" + folder.path() + "\" has no checkpoint in it; --save FOLDER writes some.");
  const std::string own = put(folder.file("muon"), 3);
  CHECK(resumed_file(folder.path(), "muon", false) == own);
  CHECK(resumed_file(folder.path(), "adamw", false) == latest);
  for (const char* mine : {"muon", "adamw"}) {
    const TemporaryFolder of_one;
    const std::string other = std::string(mine) == "muon" ? "adamw" : "muon";
    REQUIRE(mkdir(of_one.file(other).c_str(), 0777) == 0);
    const auto refusal = [&] { return usage_error([&] { resumed_file(of_one.path(), mine, true); }); };
    CHECK(refusal() == "--resume \"" + of_one.path() + "\" has no checkpoint in it; --save FOLDER writes some.");
    put(of_one.file(other), 3);
    CHECK(refusal() == "--resume \"" + of_one.path() + "\" has checkpoints of " + other + ", and none of " + mine +
                           "; --optimizer " + other + " goes on from them.");
  }
}
