// The cost model beside published runs: the scores by hand, the targets that it is held to, and that faults show in
// them.
#include "tools/scale/validation.hpp"

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <stdexcept>

#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tools/scale/tests/refitted.hpp"
#include "tools/scale/training_software.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const PublishedRuns& open_runs() {
  static const PublishedRuns runs = carried_runs();
  return runs;
}

// The targets that software misses on the open runs, by name.
std::vector<std::string> missed(const TrainingSoftware& software) {
  std::vector<std::string> names;
  for (const ValidationTarget& each : validation_targets(outcomes_of(open_runs(), software)))
    if (!each.met()) names.emplace_back(each.what);
  return names;
}

PublishedRun run_of(const char* model, int nodes, double speed, double memory) {
  PublishedRun run;
  run.model = model;
  run.layout.nodes = nodes;
  run.measured = speed > 0;
  run.tokens_per_second = speed;
  run.memory_gibibytes = memory;
  return run;
}

}  // namespace

TEST_CASE("rank_correlation: by hand, with ties at their mean rank") {
  CHECK(rank_correlation({1, 2, 3}, {10, 20, 30}) == near(1));
  CHECK(rank_correlation({1, 2, 3}, {30, 20, 10}) == near(-1));
  CHECK(rank_correlation({1, 2, 3, 4}, {1, 3, 2, 4}) == near(0.8));
  // Ranks 0, 1½, 1½, 3 and 0, 1, 2, 3: 4.5 / √(4.5 · 5).
  CHECK(rank_correlation({1, 2, 2, 5}, {1, 2, 3, 4}) == near(0.948683298));
  CHECK(rank_correlation({1, 1, 1}, {1, 2, 3}) == 0);
}

TEST_CASE("scores_of: two groups by hand") {
  const std::vector<PublishedRun> runs = {run_of("1B", 1, 100, 10), run_of("1B", 1, 200, 20), run_of("1B", 1, 400, 40),
                                          run_of("1B", 2, 100, 10), run_of("1B", 2, 300, 10), run_of("1B", 2, 0, 0),
                                          run_of("3B", 2, 0, 0)};
  const std::vector<RunPrediction> said = {{110, 10, true},  {300, 25, true}, {200, 40, true}, {100, 10, true},
                                           {150, 11, false}, {500, 10, true}, {1, 99, false}};
  std::vector<RunOutcome> outcomes;
  for (std::size_t i = 0; i < runs.size(); ++i) outcomes.push_back({&runs[i], said[i]});
  const Scores scores = scores_of(outcomes);
  CHECK(scores.clean == 5);
  CHECK(scores.error == near(0.5));  // 0.1, 0.5, 0.5, 0, 0.5
  CHECK(scores.within_quarter == near(0.4));
  CHECK(scores.rank == near(0.5));                      // of 1B on one node alone
  CHECK(scores.picked == near((200.0 / 400 + 1) / 2));  // the second of three, and the best of two
  CHECK(scores.memory_error == near(0));
  CHECK(scores.ran == 5);
  CHECK(scores.failed == 2);
  CHECK(scores.found == near(0.8));
  CHECK(scores.refused == near(0.5));
  CHECK(scores.balanced_accuracy() == near(0.65));
  CHECK(scores_of({}).clean == 0);
}

TEST_CASE("validation: the open runs meet every target") {
  CHECK(open_runs().runs.size() == 2061);
  for (const ValidationTarget& each : validation_targets(outcomes_of(open_runs(), software_of("nanotron")))) {
    CAPTURE(each.what);
    CAPTURE(each.reached);
    CHECK(each.met());
  }
  CHECK(fitted_constants().size() == 8);
}

TEST_CASE("validation: a term that is left out, or a constant that is wrong, misses targets") {
  const TrainingSoftware& right = software_of("nanotron");
  const std::vector<double TrainingSoftware::*> time = {
      &TrainingSoftware::product_efficiency, &TrainingSoftware::host_seconds_per_layer,
      &TrainingSoftware::node_hop_seconds, &TrainingSoftware::pipeline_rank_seconds, &TrainingSoftware::usable_share};
  for (std::size_t i = 0; i < time.size(); ++i) {
    CAPTURE(i);
    TrainingSoftware wrong = right;
    wrong.*time[i] /= 2;
    CHECK(!missed(wrong).empty());
  }
  TrainingSoftware equal = right;
  equal.stages_by_cost = false;
  CHECK(!missed(equal).empty());
  TrainingSoftware slow = right;
  slow.node_link_share /= 8;
  CHECK(!missed(slow).empty());
}

TEST_CASE("refitted: finds the constants that runs were made up with, and does without runs") {
  const TrainingSoftware& right = software_of("nanotron");
  std::vector<PublishedRun> made_up;
  for (std::size_t i = 0; i < open_runs().runs.size(); i += 7)
    if (open_runs().runs[i].clean()) made_up.push_back(open_runs().runs[i]);
  std::vector<const PublishedRun*> some;
  for (PublishedRun& run : made_up) {
    run.tokens_per_second = predicted_speed(run, right);
    some.push_back(&run);
  }
  TrainingSoftware off = right;
  off.product_efficiency *= 1.3;
  off.host_seconds_per_layer *= 0.8;
  off.pipeline_rank_seconds *= 1.3;
  const TrainingSoftware back = refitted(some, off);
  CHECK(back.product_efficiency == near(right.product_efficiency, 0.02));
  CHECK(back.host_seconds_per_layer == near(right.host_seconds_per_layer, 0.02));
  CHECK(back.pipeline_rank_seconds == near(right.pipeline_rank_seconds, 0.02));
  CHECK(back.usable_share == right.usable_share);
  CHECK(refitted({}, off).product_efficiency == off.product_efficiency);
}

TEST_CASE("validation_text: fits its columns, says what is met, and refuses a table without results") {
  const std::string said = validation_text(open_runs(), false);
  CHECK(said.find("MISSED") == std::string::npos);
  // Held out, two targets are missed: without the runs on 64 nodes nobody knows of slow_path_nodes.
  const std::string held_out = target_table(open_runs(), outcomes_of(open_runs(), software_of("nanotron")), true);
  std::vector<std::string> missed_rows;
  std::istringstream rows(held_out);
  for (std::string row; std::getline(rows, row);)
    if (row.find("MISSED") != std::string::npos) missed_rows.push_back(row.substr(0, row.find(',')));
  CHECK(
      (missed_rows == std::vector<std::string>{"rank correlation of layouts", "the layout picked over the best one"}));
  CHECK(validation_text(open_runs(), true).find("slow_path_nodes = 64") != std::string::npos);
  CHECK(said.find("rank correlation of layouts") != std::string::npos);
  for (const FittedConstant& each : fitted_constants()) CHECK(said.find(each.name) != std::string::npos);
  std::size_t begin = 0;
  while (begin < said.size()) {
    const std::size_t end = said.find('\n', begin);
    CHECK(text_width(said.substr(begin, end - begin)) <= kColumns);
    begin = end + 1;
  }
  PublishedRuns bare = open_runs();
  bare.has_results = false;
  CHECK(usage_error([&bare] { validation_text(bare, false); }).find("has no results to compare with") !=
        std::string::npos);
}

TEST_CASE("fitted_without: the constants that are kept are those that a fit without these runs finds") {
  std::map<std::string, std::vector<const PublishedRun*>> others;  // clean runs that are not of a part
  for (const PublishedRun& run : open_runs().runs) others[run.model], others[count_text(run.layout.nodes, "node")];
  REQUIRE(others.size() == 10);
  for (auto& [part, runs] : others) {
    for (const PublishedRun& run : open_runs().runs)
      if (run.clean() && run.model != part && count_text(run.layout.nodes, "node") != part) runs.push_back(&run);
    const TrainingSoftware fit = refitted(runs, software_of("nanotron")), kept = fitted_without(part);
    CAPTURE(part);
    std::string values;
    for (const auto constant : kRefitted) values += std::to_string(1e6 * fit.*constant) + " ";
    CAPTURE(values);
    for (const auto constant : kRefitted) CHECK(kept.*constant == near(fit.*constant, 1e-5));
    // slow_path_nodes was read off the runs on 64 nodes.
    CHECK(kept.slow_path_nodes == (part == "64 nodes" ? 0 : 64));
  }
  CHECK_THROWS_AS(fitted_without("5 nodes"), std::invalid_argument);
}

TEST_CASE("held_out_outcomes: each run is predicted with the constants of the others") {
  for (const HeldOut what : {HeldOut::size, HeldOut::nodes}) {
    const std::vector<RunOutcome> outcomes = held_out_outcomes(open_runs(), what);
    CHECK(outcomes.size() == outcomes_of(open_runs(), software_of("nanotron")).size());
    for (std::size_t i = 0; i < outcomes.size(); i += 97) {
      const PublishedRun& run = *outcomes[i].run;
      const std::string part = what == HeldOut::size ? run.model : count_text(run.layout.nodes, "node");
      CHECK(outcomes[i].prediction.tokens_per_second == predict_run(run, fitted_without(part)).tokens_per_second);
    }
  }
}
