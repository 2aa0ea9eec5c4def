// All figures of the cost model, to nine digits, on a made-up cluster of three levels on which no two numbers are
// equal: terms that a table of four digits rounds away, and stages that are not the slowest.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "sim/cost_model/cluster_file.hpp"
#include "sim/cost_model/found_layouts_output.hpp"
#include "sim/cost_model/layout_search.hpp"
#include "sim/cost_model/machine_costs.hpp"
#include "sim/cost_model/page_texts.hpp"
#include "sim/cost_model/plan_time.hpp"
#include "sim/cost_model/predicted_trace.hpp"
#include "sim/cost_model/published_runs.hpp"
#include "sim/cost_model/refitting.hpp"
#include "sim/cost_model/stage_times.hpp"
#include "sim/cost_model/step_comparison.hpp"
#include "sim/cost_model/sweet_spot_map.hpp"
#include "sim/cost_model/sweet_spot_output.hpp"
#include "sim/cost_model/training_memory.hpp"
#include "sim/pictures/page_texts.hpp"
#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "tests/cost_model/made_up_maps.hpp"
#include "tests/golden/golden_text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What rounding leaves of nothing is nothing.
std::string n(double number) { return fmt::format("{:.9g}", std::abs(number) < 1e-15 ? 0.0 : number); }

// Nodes of 4, pods of 24, and all: of the pods an all-reduce was measured, of what joins them an all-gather.
Cluster three_levels() {
  Cluster cluster;
  cluster.name = "three levels";
  cluster.accelerator = {"unit", 611e12, 37 * kGibibyte, 2.3e12, {}, "made up"};
  cluster.accelerator.product_efficiency = efficiency_curve({{2e9, 0.31}, {70e9, 0.57}, {900e9, 0.83}}, "made up");
  cluster.levels = {{"node", 4, 307e9, 2.3e-6, {}, {}, "made up"},
                    {"pod", 24, 71e9, 7.1e-6, {}, {}, "made up"},
                    {"hall", 0, 11e9, 31e-6, {}, {}, "made up"}};
  cluster.levels[1].all_reduce = bandwidth_curve("an all-reduce", "pod", {{2, 433e9}, {6, 157e9}}, "made up");
  cluster.levels[2].all_gather = bandwidth_curve("an all-gather", "hall", {{2, 97e9}, {5, 61e9}}, "made up");
  return cluster;
}

std::string numbers(const std::vector<int>& all) { return fmt::format("{}", fmt::join(all, " ")); }

// A term with its inputs: names, values, and where what was measured ended.
std::string text_of(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& term : terms) {
    text += fmt::format("  {} {}:", term.name, n(term.amount));
    for (const TermInput& input : term.inputs)
      text += fmt::format(" {} {}{}{},", input.name, n(input.value), input.unit,
                          input.extrapolated ? " outside, nearest " + n(input.nearest_at) : "");
    text += "\n";
  }
  return text;
}

TrainingLayout layout_of(int nodes, int dp, int tp, int pp, int zero, int micro_batch, int accumulation,
                         Recomputation recomputation = Recomputation::none, int ep = 1, int chunks = 1) {
  TrainingLayout layout;
  layout.nodes = nodes;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.zero = zero;
  layout.micro_batch = micro_batch;
  layout.accumulation = accumulation;
  layout.recomputation = recomputation;
  layout.ep = ep;
  layout.chunks = chunks;
  return layout;
}

struct Case {
  const char* model;
  const char* software;
  TrainingLayout layout;
};

// One rank; TP inside of a node and across two, six and more of them; pipelines on the fast and on the slow path; 64
// nodes; experts inside of a node and beyond; memory that is full; every recomputation.
std::vector<Case> cases() {
  return {{"gpt2", "nanotron", layout_of(1, 1, 1, 1, 0, 3, 5)},
          {"1B", "nanotron", layout_of(1, 3, 1, 1, 1, 2, 7)},
          {"3B", "nanotron", layout_of(2, 4, 2, 1, 1, 2, 3)},
          {"3B", "nanotron", layout_of(2, 2, 1, 4, 0, 4, 6, Recomputation::full)},
          {"8B", "nanotron", layout_of(2, 1, 8, 1, 0, 1, 9)},
          {"8B", "nanotron", layout_of(6, 12, 2, 1, 1, 4, 2, Recomputation::selective)},
          {"8B", "nanotron", layout_of(12, 2, 4, 6, 1, 1, 11)},
          {"8B", "nanotron", layout_of(48, 6, 8, 4, 1, 2, 5, Recomputation::full, 1, 2)},
          {"80B", "nanotron", layout_of(64, 32, 8, 1, 1, 1, 3)},
          {"megatron-175b", "nanotron", layout_of(96, 16, 24, 1, 0, 1, 3)},
          {"80B", "megatron", layout_of(36, 6, 8, 3, 1, 2, 5, Recomputation::selective)},
          {"megatron-22b", "megatron", layout_of(12, 3, 4, 4, 0, 2, 6, Recomputation::none, 1, 3)},
          {"qwen3-30b", "nanotron", layout_of(12, 24, 2, 1, 1, 2, 3, Recomputation::none, 2)},
          {"qwen3-30b", "megatron", layout_of(24, 48, 1, 2, 1, 1, 4, Recomputation::full, 16)},
          {"kimi-k2", "nanotron", layout_of(384, 96, 4, 4, 1, 1, 7, Recomputation::selective, 24)}};
}

std::string stage_line(const StageTimes& of) {
  const Stage& stage = of.stage;
  return fmt::format("  {} blocks, {} layers{}{}{}{}, {}:", stage.blocks, stage.layers,
                     stage.embedding ? ", embedding" : "", stage.head ? ", head" : "", stage.cast ? ", cast" : "",
                     stage.loss ? ", loss" : "", n(of.parameters)) +
         fmt::format(" {} {} {} {} {} {} |", n(of.products), n(of.attention), n(of.elementwise), n(of.tp_transfer),
                     n(of.tp_latency), n(of.expert_transfer)) +
         fmt::format(" {} {} {} {} {} |", n(of.accumulation), n(of.head), n(of.loss), n(of.next_stage), n(of.host)) +
         fmt::format(" {} {} {} {} | {} {} {}\n", n(of.all_reduce), n(of.all_gather), n(of.optimizer), n(of.tied_table),
                     n(of.slot()), n(of.exposed_all_reduce()), n(of.tail()));
}

std::string rates_line(const StepRates& of) {
  return fmt::format("  rates {} {}{} {} {} {} | {} {} {} {} {}", n(of.product_flops), n(of.efficiency),
                     of.efficiency_outside ? " outside " + n(of.efficiency_nearest) : "", n(of.attention_flops),
                     n(of.score_traffic), n(of.memory), n(of.stage_link), n(of.tp_link), n(of.dp_link), n(of.tie_link),
                     n(of.expert_link)) +
         fmt::format(" | {} {} {} {} {} {} {}\n", n(of.tp_nodes), n(of.dp_nodes), n(of.hop_seconds),
                     n(of.floor_seconds), n(of.group_wait_seconds), of.slow_path ? "slow" : "fast", of.tp_collectives);
}

std::string cost_line(const MuonCost& cost) {
  return fmt::format("  flops {}, mean {}, sent {}, kept {}, transient {}\n", n(cost.flops), n(cost.mean_flops),
                     n(cost.bytes_sent), n(cost.kept_bytes), n(cost.transient_bytes));
}

// A document with its numbers to nine digits.
nlohmann::ordered_json to_nine_digits(nlohmann::ordered_json json) {
  if (json.is_number_float()) return n(json.get<double>());
  if (json.is_structured())
    for (auto& each : json) each = to_nine_digits(each);
  return json;
}
std::string document(const std::string& text) {
  return to_nine_digits(nlohmann::ordered_json::parse(text)).dump(1) + "\n";
}

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

}  // namespace

TEST_CASE("collectives over three levels: every algorithm, group and curve, as it is kept") {
  Cluster plain = three_levels();
  for (NetworkLevel& level : plain.levels) level.all_reduce = level.all_gather = MeasuredCurve();
  std::string text;
  for (const auto& [ranks, stride] : {std::pair{1, 1},
                                      {2, 1},
                                      {4, 1},
                                      {8, 1},
                                      {24, 1},
                                      {48, 1},
                                      {192, 1},
                                      {2, 2},
                                      {12, 2},
                                      {6, 4},
                                      {24, 4},
                                      {4, 24},
                                      {16, 24},
                                      {12, 8},
                                      {5, 1},
                                      {3, 1},
                                      {18, 8}}) {
    text += fmt::format("{} ranks, {} apart", ranks, stride);
    try {
      const GroupSpread spread = group_spread(plain, ranks, stride);
      text += fmt::format(": widths {}, sharing {}, outermost {}, within {} {} {}\n", numbers(spread.widths),
                          numbers(spread.sharing), spread.outermost(), spread.within(0), spread.within(1),
                          spread.within(2));
    } catch (const UsageError& error) {
      text += fmt::format(": {}\n", error.what());
      continue;
    }
    for (const CollectiveKind kind :
         {CollectiveKind::barrier, CollectiveKind::recv, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
      text += fmt::format("  {}", collective_name(kind));
      for (const CollectiveAlgorithm algorithm :
           {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree, CollectiveAlgorithm::halving,
            CollectiveAlgorithm::pairwise, CollectiveAlgorithm::two_level, CollectiveAlgorithm::direct})
        for (const Cluster& cluster : {plain, three_levels()}) {
          try {
            const CollectiveSeconds time =
                collective_seconds(kind, algorithm, 7.7e6, cluster, group_spread(cluster, ranks, stride));
            text += fmt::format(", {} {} + {}{}", algorithm_name(algorithm), n(time.latency), n(time.transfer),
                                time.extrapolated ? fmt::format(" at {} for {}", time.nearest_at, time.read_at) : "");
          } catch (const std::invalid_argument& error) {
            text += fmt::format(", {}", error.what());
          }
        }
      text += "\n";
    }
  }
  muonwalk::testing::expect_golden("cost_collectives.txt", text);
}

TEST_CASE("training steps on three levels: rates, every stage's times and memory, and all terms, as they are kept") {
  const Cluster cluster = three_levels();
  std::string text;
  for (const Case& each : cases()) {
    const ModelShape& model = model_shape(each.model);
    const TrainingSoftware& software = software_of(each.software);
    text += fmt::format("{} with {}, {}, {} nodes, recompute {}, {} chunks\n", each.model, each.software,
                        muonwalk::sim::text(each.layout), each.layout.nodes,
                        recomputation_name(each.layout.recomputation), each.layout.chunks);
    text += rates_line(step_rates(model, cluster, each.layout, software));
    for (const StageTimes& stage : stage_times(model, cluster, each.layout, software)) text += stage_line(stage);
    text += text_of(training_seconds(model, cluster, each.layout, software));
    for (int stage = 0; stage < each.layout.pp; ++stage)
      text += fmt::format("  stage {}\n", stage) + text_of(stage_bytes(model, each.layout, software, stage));
    text += fmt::format("  firm {}, peak {}, of the fullest stage:\n", n(firm_bytes(model, each.layout, software)),
                        n(peak_bytes(model, each.layout, software)));
    text += text_of(training_bytes(model, each.layout, software));
    text += fmt::format("  {}\n", why_it_cannot_run(model, each.layout, software));
  }
  muonwalk::testing::expect_golden("cost_steps.txt", text);
}

TEST_CASE("what Muon costs on three levels: every strategy, with and without overlap, and experts, as it is kept") {
  const Cluster cluster = three_levels();
  std::string text;
  struct Grid3 {
    const char* model;
    int dp, tp, pp, ep;
  };
  for (const Grid3& grid :
       {Grid3{"gpt2", 12, 2, 1, 1}, {"1B", 3, 4, 1, 1}, {"gpt2", 48, 1, 5, 1}, {"qwen3-30b", 24, 2, 24, 4}})
    for (const Strategy& strategy : strategies())
      for (const bool overlaps : {false, true}) {
        MuonWay way;
        way.strategy = strategy;
        way.overlaps = overlaps;
        way.ns_steps = overlaps ? 3 : 5;
        way.precision = overlaps ? Precision::fp32 : Precision::bf16;
        text += fmt::format("{} dp {} tp {} pp {} ep {}, ({}){}\n", grid.model, grid.dp, grid.tp, grid.pp, grid.ep,
                            strategy.letter, overlaps ? ", three steps in fp32, overlapped" : "");
        const ModelShape& model = model_shape(grid.model);
        const MuonCost cost = muon_cost(model, grid.dp, grid.tp, grid.pp, grid.ep, way, cluster);
        text += cost_line(cost) + text_of(cost.terms);
      }
  for (const Case& each : cases()) {
    const StepQuestion question{model_shape(each.model), cluster, software_of(each.software), each.layout};
    const StepPrediction prediction = predict_muon(question, MuonWay());
    text += fmt::format("{} with {}: {} s, {} B, {} tokens per second, {}\n", each.model, each.software,
                        n(prediction.step_seconds()), n(total(prediction.bytes)), n(prediction.tokens_per_second),
                        prediction.fits ? "fits" : "does not fit");
    text += text_of(prediction.bytes);
  }
  muonwalk::testing::expect_golden("cost_muon.txt", text);
}

TEST_CASE("comparisons on three levels: the cells of two maps, and the line between, as they are kept") {
  Cluster cluster = three_levels();
  cluster.levels[1].accelerators = 32;  // groups of powers of two lie evenly
  std::string text;
  for (const std::string& model : model_shape_names())
    for (const std::string& name : cluster_names())
      text += fmt::format("{} on {}: tp {}\n", model, name, default_map_tp(model_shape(model), cluster_of(name)));
  for (const auto& [model, software, columns, tp, most] : {std::tuple{"gpt2", "megatron", MapColumns::links, 2, 101},
                                                           {"1B", "nanotron", MapColumns::grid, 0, 51},
                                                           {"qwen3-30b", "nanotron", MapColumns::grid, 0, 200},
                                                           {"3B", "nanotron", MapColumns::links, 0, 26}}) {
    SweetSpotQuestion question{model_shape(model), cluster, &software_of(software), columns, tp, most};
    const SweetSpotMap map = sweet_spot_map(question);
    text += fmt::format("{}, {}, tp {}, own link {}, rows {}\n", map.subject(), map_columns_name(map.columns), map.tp,
                        n(map.own_link_bytes_per_second), numbers(map.gpus));
    for (const std::string& note : map.notes) text += "  " + note + "\n";
    for (const auto& row : map.cells)
      for (const SweetSpotCell& cell : row) {
        text += fmt::format("  {} = {} × {} over {}: {}/{}", cell.gpus, cell.dp, cell.tp, n(cell.link_bytes_per_second),
                            obstacle_word(cell.obstacle), obstacle_word(cell.step_obstacle));
        if (const auto& of = cell.communication)
          text += fmt::format(" | {} {} {} {}{}", n(of->muon_seconds), n(of->adamw_seconds), n(of->muon_bytes),
                              n(of->adamw_bytes), of->extrapolated ? " *" : "");
        if (const auto& of = cell.step) {
          text += fmt::format(" | {} {} {} {}{}", n(of->muon_seconds), n(of->adamw_seconds),
                              muonwalk::sim::text(of->layout), recomputation_name(of->layout.recomputation),
                              of->extrapolated ? " *" : "");
          for (const auto& [letter, seconds] : of->strategies) text += fmt::format(" {} {}", letter, n(seconds));
        }
        text += "\n";
      }
    for (const InversionSegment& each : inversion_line(map))
      text += fmt::format("  from {} {} to {} {}\n", n(each.from.column), n(each.from.row), n(each.to.column),
                          n(each.to.row));
  }
  muonwalk::testing::Draws draw(17);
  for (int i = 0; i < 6; ++i) {
    std::vector<std::vector<std::optional<double>>> ratios(static_cast<std::size_t>(draw(1, 4)));
    for (auto& row : ratios)
      for (int c = 0; c < 2 + i / 2; ++c)
        row.push_back(draw(0, 6) == 0 ? std::nullopt : std::optional<double>(draw(3, 30) / 13.0));
    text += fmt::format("{} × {} ratios\n", ratios.size(), ratios[0].size());
    for (const InversionSegment& each : inversion_line(ratios))
      text += fmt::format("  from {} {} to {} {}\n", n(each.from.column), n(each.from.row), n(each.to.column),
                          n(each.to.row));
  }
  muonwalk::testing::expect_golden("cost_maps.txt", text);
}

TEST_CASE("searches on three levels: which layouts are tried, which are found, and why others are slower, as kept") {
  const Cluster cluster = three_levels();
  std::string text;
  for (const std::string& model : model_shape_names())
    text +=
        fmt::format("{}: {} {} {} sequences, {} {} {} expert ranks\n", model, default_sequences(model_shape(model), 1),
                    default_sequences(model_shape(model), 24), default_sequences(model_shape(model), 100000),
                    expert_ranks(model_shape(model), cluster, 24, 2), expert_ranks(model_shape(model), cluster, 7, 1),
                    expert_ranks(model_shape(model), cluster, 64, 3));
  for (const auto& [model, software, gpus, sequences, muon] : {std::tuple{"1B", "nanotron", 24, 0, true},
                                                               {"1B", "megatron", 4, 36, false},
                                                               {"qwen3-30b", "nanotron", 48, 96, true},
                                                               {"gpt2", "megatron", 2, 6, true}}) {
    const LayoutSearch search{model_shape(model), cluster, software_of(software), gpus, sequences, muon};
    text += fmt::format("{} with {} on {}, {} sequences\n", model, software, gpus, sequences);
    for (const TrainingLayout& layout : possible_layouts(search))
      text += fmt::format("  {} of {} nodes, {}\n", muonwalk::sim::text(layout), layout.nodes,
                          recomputation_name(layout.recomputation));
    const FoundLayouts found = find_layouts(search, 7);
    text += fmt::format("  {} tried, {} fit\n", found.tried, found.fit);
    for (const FoundLayout& each : found.best)
      text += fmt::format("  {}, {}, ({}): {} s; {}\n", muonwalk::sim::text(each.layout),
                          recomputation_name(each.layout.recomputation), each.strategy ? each.strategy->letter : '-',
                          n(each.prediction.step_seconds()), why_slower(found.best.front(), each));
  }
  muonwalk::testing::expect_golden("cost_searches.txt", text);
}

TEST_CASE("steps of Muonwalk's own ranks on the laptop on record, and constants fitted anew, as they are kept") {
  std::string text;
  const MachineCosts laptop = laptop_costs();
  const auto reading = [&text](const CurveReading& each) {
    text += fmt::format(" {}{}", n(each.value), each.outside ? " outside " + n(each.nearest_at) : "");
  };
  for (const TransportKind transport : {TransportKind::gloo, TransportKind::memory}) {
    for (const int ranks : {1, 2, 3, 4, 7, 16, 23}) {
      text += fmt::format("{} ranks:", ranks);
      for (const double bytes : {1.0, 4.0, 700.0, 4096.0, 1e6, 5e6})
        reading(laptop.transport(transport).message_seconds(ranks, bytes));
      const LinkCost link = laptop.transport(transport).link(ranks);
      text += fmt::format(", link {} {}\n", n(link.latency_seconds), n(link.seconds_per_byte));
    }
    const std::vector<Parameter> parameters = {{"a", {48, 96}, SplitDim::rows},
                                               {"b", {160, 40}, SplitDim::columns},
                                               {"c", {64, 64}, SplitDim::none},
                                               {"d", {24, 200}, SplitDim::rows}};
    for (const auto& [dp, tp] : {std::pair{1, 1}, {2, 1}, {3, 2}, {2, 4}})
      for (const Products products : {Products::eigen, Products::chain}) {
        const Precision precision = tp == 1 ? Precision::fp32 : Precision::bf16;
        MuonSettings settings;
        settings.precision = precision;
        const Layout layout = plan_layout(parameters, Grid().dp(dp).tp(tp), LayoutOptions());
        const auto kinds =
            plan_kinds({layout}, [&](const Layout& of, const Place& place) { return muon_plan(of, place, settings); });
        text += fmt::format("dp {} tp {} of {} kinds\n", dp, tp, kinds.size());
        text += text_of(plan_time(kinds, laptop, {transport, products, precision}));
      }
  }
  const PublishedRuns runs = carried_runs();
  std::vector<const PublishedRun*> some;
  for (std::size_t i = 0; i < runs.runs.size() && some.size() < 12; i += 31)
    if (runs.runs[i].clean()) some.push_back(&runs.runs[i]);
  const TrainingSoftware fitted = refitted(some, software_of("nanotron"));
  text += fmt::format("fitted to {} runs: {} {} {} {} {} {}\n", some.size(), n(fitted.product_efficiency),
                      n(fitted.host_seconds_per_layer), n(fitted.node_hop_seconds), n(fitted.pipeline_rank_seconds),
                      n(fitted.node_link_share), n(fitted.group_seconds_per_doubling));
  muonwalk::testing::expect_golden("cost_machines.txt", text);
}

TEST_CASE("the trace of a predicted step on three levels: every span of every stage, as it is kept") {
  const Cluster cluster = three_levels();
  std::string text;
  for (const std::size_t which : {std::size_t{2}, std::size_t{6}, std::size_t{12}}) {
    const Case each = cases()[which];
    const StepQuestion question{model_shape(each.model), cluster, software_of(each.software), each.layout};
    MuonWay way;
    way.strategy = strategies()[which % 4];
    const RunTrace run = predicted_trace(question, predict_muon(question, way));
    text += fmt::format("{}, {}, {}, {}, {}\n", run.name, run.title, run.grid.text(), run.precision, run.backend);
    for (const RankTrace& rank : run.ranks) {
      text += fmt::format("  {}", rank.label);
      for (const auto& group : rank.groups) text += fmt::format(", {}: {}", group.name, numbers(group.ranks));
      text += "\n";
      for (const Span& span : rank.spans) {
        const bool call = span.kind == SpanKind::call;
        text += fmt::format("    {} to {}: {}", span.begin_ns, span.end_ns,
                            call ? collective_name(span.collective) : rank.names[static_cast<std::size_t>(span.name)]);
        if (call) text += fmt::format(" {} B, {} in, group {}", span.bytes, span.elements_in, span.group);
        text += "\n";
      }
    }
  }
  muonwalk::testing::expect_golden("cost_traces.txt", text);
}

TEST_CASE("maps, searches and explanations on three levels: text, JSON, CSV and picture, as they are kept") {
  Cluster cluster = three_levels();
  cluster.levels[1].accelerators = 32;
  std::string text;
  for (const auto& [columns, software, most] : {std::tuple{MapColumns::links, "nanotron", 101},
                                                {MapColumns::grid, "", 26},
                                                {MapColumns::grid, "megatron", 8}}) {
    const bool steps = *software != '\0';
    const SweetSpotMap map =
        sweet_spot_map({model_shape("3B"), cluster, steps ? &software_of(software) : nullptr, columns, 0, most});
    if (most > 8)
      text += joined(sweet_spot_text(map)) + sweet_spot_csv(map) + sweet_spot_svg(map);
    else
      text += document(sweet_spot_json(map));
  }
  const LayoutSearch search{model_shape("3B"), cluster, software_of("nanotron"), 8, 0, true};
  const FoundLayouts found = find_layouts(search, 2);
  text += joined(layouts_text(search, found)) + layouts_csv(found) + document(layouts_json(search, found));
  const Case each = cases()[12];
  const StepQuestion question{model_shape(each.model), cluster, software_of(each.software), each.layout};
  for (const StepPrediction& prediction : {predict_muon(question, MuonWay()), predict_adamw(question)})
    text += joined(explanation_text(question, prediction)) + explanation_csv(prediction) +
            document(explanation_json(question, prediction));
  muonwalk::testing::expect_golden("cost_outputs.txt", text);
}

TEST_CASE("the page of two maps: what it says, its tables and what its script draws, as they are kept") {
  Cluster cluster = three_levels();
  cluster.levels[1].accelerators = 32;
  std::vector<SweetSpotMap> maps = sweet_spot_maps({model_shape("3B"), cluster, nullptr, MapColumns::links, 0, 70});
  REQUIRE(maps.size() == 2);
  std::string page;
  for (const bool steps : {true, false}) {
    if (steps)
      for (SweetSpotMap& map : maps) {
        make_up_steps(map, 3);
        double seconds = 0.2371;
        for (auto& row : map.cells)
          for (SweetSpotCell& cell : row)
            if (cell.step) cell.step->muon_seconds = seconds += 0.0017;
      }
    else
      maps = {sweet_spot_map({model_shape("gpt2"), cluster, nullptr, MapColumns::grid, 0, 8})};
    std::string text = sweet_spot_page(maps);
    for (const char* carried : {page_texts::echarts_js, page_texts::echarts_notice, page_texts::map_js,
                                page_texts::map_css, page_texts::page_css, page_texts::tooltip_js}) {
      const std::size_t at = text.find(carried);
      REQUIRE(at != std::string::npos);
      text.erase(at, std::string_view(carried).size());
    }
    for (std::size_t at = 0; (at = text.find("},{", at)) != std::string::npos; at += 4) text.insert(at + 2, "\n");
    page += std::regex_replace(text, std::regex("([0-9]\\.[0-9]{6})[0-9]+"), "$1");
  }
  muonwalk::testing::expect_golden("cost_page.txt", page);
}
