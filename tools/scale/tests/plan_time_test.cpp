// The time of Muonwalk's own step on one machine: against sums by hand, over random layouts; and that its bytes are
// those that ranks count. No clock decides anything here.

#include "tools/scale/plan_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/near.hpp"
#include "tools/scale/measure_machine.hpp"
#include "tools/scale/tests/made_up_machine.hpp"
#include "tools/scale/validate_here.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

double amount(const std::vector<Term>& terms, TermId id) {
  for (const Term& term : terms)
    if (term.id == id) return term.amount;
  FAIL("there is no such term");
  return 0;
}

std::vector<PlanKind> muon_plans(const Layout& layout) {
  return plan_kinds({layout},
                    [](const Layout& of, const Place& place) { return muon_plan(of, place, MuonSettings()); });
}

// Two ranks: a matrix of 8 × 8 for Newton–Schulz, a bucket of 100 elements, an all-gather of 1,000 floats.
Plan small_plan(int rank) {
  const Grid grid = Grid().dp(2);
  Plan plan{grid, grid.place(rank), {}};
  plan.take(500, "weights");
  plan.work(phases::momentum, {1, 100}, 300);
  plan.take(100, "update");
  plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 1000, 2000);
  plan.work(phases::orthogonalize, {8, 8}, newton_schulz_flops(8, 8));
  plan.take(50, "X, A, B");
  plan.give_back(50, "X, A, B");
  plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, 20, 10);
  return plan;
}

}  // namespace

TEST_CASE("the time of a small plan is the sum by hand") {
  const MachineCosts machine = made_up_machine();
  // An all-gather sends 4,000 bytes to one rank, a reduce-scatter 40, and sums up 10 elements that came in.
  const double flops = newton_schulz_flops(8, 8), at = newton_schulz_flops(8, 8, 1);
  const double rate = 1e9 * std::pow(2.0, std::log(at / 1e3) / std::log(1e9 / 1e3));
  const auto message = [](double bytes) { return 10e-6 * std::pow(101.0, std::log(bytes / 4) / std::log(1e6 / 4)); };
  const PlanSeconds one = plan_seconds(small_plan(0), machine, {});
  CHECK(one.products.amount == flops);
  CHECK(one.messages.amount == 2);
  CHECK(one.bytes.amount == 4040);
  CHECK(one.elementwise.amount == 16 * 100 + 8 * 10);
  CHECK(one.buffers.amount == 4 * 150);
  CHECK(one.products.seconds == near(flops / rate));
  CHECK(one.messages.seconds == near(2 * 10e-6));
  CHECK(one.bytes.seconds == near(message(4000) + message(40) - 20e-6));
  CHECK(one.elementwise.seconds == near(1680 / 8e9));
  CHECK(one.buffers.seconds == near(600 / 2e9));

  // Two ranks on two cores take as long as one of them.
  const std::vector<Term> terms = plan_time({{small_plan(0), {0, 1}}}, machine, {});
  CHECK(total(terms) == near(one.seconds()));
  CHECK(amount(terms, TermId::slowest_rank) == near(0));
  CHECK(amount(terms, TermId::machine_messages) == near(20e-6));
  CHECK_FALSE(any_extrapolated(terms));

  // Where one of them does nothing, the other one does not get faster.
  Plan idle = small_plan(1);
  idle.operations.clear();
  const std::vector<Term> uneven = plan_time({{small_plan(0), {0}}, {idle, {1}}}, machine, {});
  CHECK(total(uneven) == near(one.seconds()));
  CHECK(amount(uneven, TermId::slowest_rank) == near(one.seconds() / 2));

  // One rank alone has one core, and sends nothing.
  Plan alone{Grid(), Grid().place(0), {}};
  alone.work(phases::orthogonalize, {8, 8}, flops);
  const std::vector<Term> one_core = plan_time({{alone, {0}}}, machine, {});
  CHECK(amount(one_core, TermId::machine_products) == near(flops / rate));
  CHECK(amount(one_core, TermId::slowest_rank) == 0);
  CHECK_FALSE(any_extrapolated(one_core));

  // Three messages to three others.
  const Grid four = Grid().dp(4);
  Plan gather{four, four.place(1), {}};
  gather.call("dp", CollectiveKind::all_gather, ElementType::float32, 1, 4);
  CHECK(plan_seconds(gather, machine, {}).messages.seconds == near(3 * machine.gloo.message_seconds(4, 4).value));

  // Over memory, in another precision, with another engine.
  const PlanSeconds other =
      plan_seconds(small_plan(0), machine, {TransportKind::memory, Products::chain, Precision::bf16});
  CHECK(other.products.seconds == near(flops / rate / 4));
  CHECK(other.messages.seconds == near(one.messages.seconds / 2));
}

TEST_CASE("on random layouts all ranks share the cores, and no step is shorter than its slowest rank") {
  const MachineCosts machine = made_up_machine();
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomLayout random(seed);
    random.own(seed % 3 == 0 ? Ownership::buckets : seed % 3 == 1 ? Ownership::buffer : Ownership::matrices);
    const Layout layout = random.plan();
    const int ranks = layout.grid.size();
    double all = 0, slowest = 0, bytes = 0, flops_of_all = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Plan plan = muon_plan(layout, layout.grid.place(rank), MuonSettings());
      const PlanSeconds one = plan_seconds(plan, machine, {});
      all += one.seconds();
      slowest = std::max(slowest, one.seconds());
      bytes += one.bytes.amount;
      flops_of_all += one.products.amount;
      CHECK(one.bytes.amount == static_cast<double>(ledger_of(plan).total().bytes_sent));
      CHECK(one.messages.amount == static_cast<double>(ledger_of(plan).total().messages_sent));
      CHECK(one.products.amount == near(flops(plan, phases::orthogonalize)));
    }
    const std::vector<Term> terms = plan_time(muon_plans(layout), machine, {});
    CHECK(total(terms) == near(std::max(all / std::min(2, ranks), slowest)));
    for (const Term& term : terms) CHECK(term.amount >= 0);
    CHECK(terms[0].inputs[0].value == near(flops_of_all));
    CHECK(terms[2].inputs[0].value == near(bytes));
    // 2 and 8 ranks were measured; where nothing is sent, nobody cares.
    if (ranks > 8) CHECK(any_extrapolated(terms));
  }
}

TEST_CASE("what was not measured is marked or refused") {
  const MachineCosts machine = made_up_machine();
  const TransportCosts& gloo = machine.gloo;
  CHECK(gloo.message_seconds(2, 0).value == near(10e-6));
  CHECK(gloo.message_seconds(4, 4).value == near(std::sqrt(10.0 * 20) * 1e-6));
  CHECK_FALSE(gloo.message_seconds(4, 4).outside);
  CHECK(gloo.message_seconds(16, 4).outside);
  CHECK(gloo.message_seconds(16, 4).value == near(20e-6));
  CHECK(gloo.message_seconds(16, 4).nearest_at == 8);
  CHECK(gloo.message_seconds(1, 4).outside);
  // A message of twice the largest size costs twice as much.
  CHECK(gloo.message_seconds(2, 2e6).outside);
  CHECK(gloo.message_seconds(2, 2e6).value == near(2020e-6));
  CHECK_THROWS_AS(machine.transport(TransportKind::nccl), UsageError);
  MachineCosts without = machine;
  without.newton_schulz.pop_back();
  CHECK_THROWS_AS(without.rate(Products::chain, Precision::bf16), UsageError);
  CHECK_THROWS_AS(plan_time({}, machine, {}), std::invalid_argument);
  const Cluster cluster = cluster_of_machines(machine);
  CHECK(cluster.node() == 2);
  CHECK(cluster.levels[0].latency_seconds == near(10e-6));
  CHECK(cluster.levels[0].bytes_per_second == near(1e9, 1e-4));
  // A link is never infinitely fast.
  MachineCosts flat = machine;
  flat.gloo = {{{2, MeasuredCurve("seconds of a message", {{4, 1e-5}, {1000, 1e-5}}, "made up")}}};
  CHECK(cluster_of_machines(flat).levels[0].bytes_per_second == near(1e8));
  CHECK(cluster.accelerator.flops_per_second == 8e9);
  CHECK(cluster.accelerator.product_efficiency.at(1e9).value == 1);
  CHECK(cluster.levels[1].accelerators == 0);
}

TEST_CASE("the steps of lessons 09 and 13 send the bytes that are predicted of them") {
  HereSettings settings;
  settings.ranks = {2, 4};
  settings.steps = 1;
  settings.seconds = 0;
  settings.small = true;
  settings.world = WorldKind::threads;
  const std::vector<StepHere> steps = validate_here(made_up_machine(), settings);
  CHECK(steps.size() == 10);
  for (const StepHere& step : steps) {
    CAPTURE(step.what);
    CHECK(step.difference == "");
    CHECK(step.bytes_equal());
    CHECK(step.predicted_bytes == step.counted_bytes);
    CHECK(step.predicted_seconds > 0);
    CHECK(std::isfinite(step.predicted_seconds));
    CHECK(step.measured_seconds > 0);
  }
  // All of Muon's ranks together, in float32: dp 2 × tp 2 of lesson 13.
  CHECK(steps.back().grid == Grid().dp(2).tp(2));
  CHECK(steps.back().predicted_bytes > 0);
  const std::string table = here_table(steps);
  CHECK(table.find("lesson 13, Muon, gathers in float32") != std::string::npos);
  CHECK(table.find("✘") == std::string::npos);
  CHECK(table.find("✔ as many bytes as were predicted") != std::string::npos);
  CHECK(table.find("median error of the times: ") != std::string::npos);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kColumns);

  StepHere wrong = steps.back();
  wrong.counted_bytes += 1;
  wrong.difference = "rank 3: dp all_gather of float32: 1 byte more";
  CHECK_FALSE(wrong.bytes_equal());
  CHECK(here_table({wrong}).find("✘") != std::string::npos);
  CHECK(here_table({wrong}).find("as many bytes as were predicted") == std::string::npos);
  CHECK(here_table({wrong}).find("rank 3:") != std::string::npos);
  for (const int ranks : {0, 1, 3, 66}) {
    settings.ranks = {ranks};
    CHECK_THROWS_AS(validate_here(made_up_machine(), settings), UsageError);
  }
}

TEST_CASE("a machine that was measured, however hastily, goes through its file bit for bit and can be predicted with") {
  MeasureSettings hasty;
  hasty.ranks = {2, 3};
  hasty.messages = {4, 4096};
  hasty.sides = {4, 16};
  hasty.seconds = 0.001;
  std::vector<std::string> told;
  const MachineCosts machine = measure_machine(hasty, [&](const std::string& what) { told.push_back(what); });
  CHECK(told.size() == 5);  // work, and two numbers of ranks over two transports
  CHECK(machine.cores >= 1);
  for (const TransportKind transport : {TransportKind::gloo, TransportKind::memory}) {
    CHECK(machine.transport(transport).by_ranks.size() == 2);
    for (const MessageCosts& each : machine.transport(transport).by_ranks) CHECK(each.seconds.points().size() == 2);
  }
  for (const Products products : {Products::eigen, Products::chain})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      CHECK(machine.rate(products, precision).points().size() == 2);
  const TemporaryFolder folder;
  write_text(folder.file("here.json"), machine_costs_json(machine));
  CHECK(machine_costs_json(read_machine_costs(folder.file("here.json"))) == machine_costs_json(machine));
  CHECK(cluster_of(folder.file("here.json")).accelerator.flops_per_second > 0);
  CHECK(std::isfinite(total(plan_time({{small_plan(0), {0, 1}}}, machine, {}))));
}

TEST_CASE("the virtual machine that is on record: its messages cost more the longer they are") {
  const MachineCosts machine = read_machine_costs(MUONWALK_ROOT "/tools/scale/clusters/epyc-vm.json");
  CHECK(cluster_of("epyc-vm").accelerator.flops_per_second ==
        cluster_of_machines(machine).accelerator.flops_per_second);
  for (const TransportCosts& transport : {machine.gloo, machine.memory})
    for (int ranks = 2; ranks <= 16; ++ranks)
      for (double bytes = 1; bytes < 1e8; bytes *= 3)
        CHECK(transport.message_seconds(ranks, bytes).value <=
              transport.message_seconds(ranks, 3 * bytes).value * (1 + 1e-12));
}
