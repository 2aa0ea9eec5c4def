// What is known of a step from the layout alone.
#include "src/optim/plan.hpp"

#include <doctest/doctest.h>

#include <random>
#include <sstream>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"

using namespace muonwalk;

namespace {

/// The matrices of the proof of concept's own test, without padding.
Layout main_layout(const Grid& grid) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return plan_layout({{"w0", {100, 100}, SplitDim::rows},
                      {"w1", {124, 324}, SplitDim::columns},
                      {"w2", {456, 124}, SplitDim::none},
                      {"w3", {676, 876}, SplitDim::columns},
                      {"w4", {128, 128}, SplitDim::rows}},
                     grid, options);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE(
    "flops: what is done element by element, with Nesterov's momentum and without, and per step of Newton–Schulz") {
  const Grid grid = Grid().dp(4).tp(2);
  const Layout layout = main_layout(grid);
  for (int rank = 0; rank < grid.size(); ++rank) {
    const Place place = grid.place(rank);
    const double own = static_cast<double>(layout.shard_elements(place.dp));
    MuonSettings settings;
    for (const bool nesterov : {true, false}) {
      settings.nesterov = nesterov;
      CHECK(flops(muon_plan(layout, place, settings), phases::momentum) == (nesterov ? 4 : 2) * own);
    }
    double owned = 0;  // padding is multiplied with nothing
    for (const DistMeta& meta : layout.buffers[0].parameters)
      owned += static_cast<double>(layout.owned_range(meta, place.dp).size());
    CHECK(flops(muon_plan(layout, place, settings), phases::apply) == 3 * owned);
    const double five = flops(muon_plan(layout, place, settings), phases::orthogonalize);
    settings.newton_schulz.steps = 10;
    CHECK(flops(muon_plan(layout, place, settings), phases::orthogonalize) == doctest::Approx(2 * five));
    CHECK(flops(AdamW(AdamWSettings()).plan(layout, place), phases::adamw) ==
          13 * static_cast<double>(layout.buffers[0].size));
  }
}

TEST_CASE("ledger_of: a call over any group is counted with the size of that group, and of no other") {
  const Grid grid = Grid().dp(2).tp(3).pp(5);
  for (const char* group : {"dp", "tp", "pp", "world"})
    for (const int rank : {0, 7, grid.size() - 1}) {
      CAPTURE(group);
      Plan plan{grid, grid.place(rank), {}};
      const Index others = grid.size(group) - 1;
      plan.call(group, CollectiveKind::all_gather, ElementType::float32, 4, 4 * (others + 1));
      Traffic traffic = ledger_of(plan).total(group);
      CHECK(traffic.messages_sent == others);
      CHECK(traffic.bytes_sent == 16 * others);
      CHECK(traffic.bytes_received == 16 * others);

      plan.operations.clear();
      plan.call(group, CollectiveKind::reduce_scatter, ElementType::float32, 4 * (others + 1), 4);
      traffic = ledger_of(plan).total(group);
      CHECK(traffic.messages_received == others);
      CHECK(traffic.bytes_sent == 16 * others);
      CHECK(traffic.bytes_received == 16 * others);

      // Nothing of an all-to-all is for the rank itself.
      plan.operations.clear();
      plan.call(group, CollectiveKind::all_to_all, ElementType::bfloat16, 4 * others, 5 * others);
      traffic = ledger_of(plan).total(group);
      CHECK(traffic == traffic_of(std::get<Call>(plan.operations[0]), plan));
      CHECK(traffic.messages_sent == others);
      CHECK(traffic.messages_received == others);
      CHECK(traffic.bytes_sent == 8 * others);
      CHECK(traffic.bytes_received == 10 * others);
    }
}

TEST_CASE("calls_of: every call in order, with the phase that began last, and bytes that add up to the ledger's") {
  Plan plan{Grid().dp(4), Grid().dp(4).place(1), {}};
  plan.call("dp", CollectiveKind::barrier, ElementType::bytes, 0, 0);
  plan.work(phases::dp_gather, {1, 6});
  plan.call("dp", CollectiveKind::all_gather, ElementType::bfloat16, 6, 24);
  plan.take(24, "bucket");
  plan.call("tp", CollectiveKind::all_gather, ElementType::float32, 6, 6);
  plan.work(phases::apply, {1, 6});
  plan.work(phases::gather_weights, {1, 6});
  plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 6, 24);
  const std::vector<PlannedCall> calls = calls_of(plan);
  REQUIRE(calls.size() == 4);
  const Phase expected[] = {"", phases::dp_gather, phases::dp_gather, phases::gather_weights};
  const std::int64_t bytes[] = {0, 6 * 2 * 3, 0, 6 * 4 * 3};
  Traffic all;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(calls[i].phase == expected[i]);
    CHECK(calls[i].traffic.bytes_sent == bytes[i]);
    all += calls[i].traffic;
  }
  CHECK(calls[2].call.group == "tp");
  CHECK(all == ledger_of(plan).total());
}

TEST_CASE("plan_kinds: ranks that do the same are one kind, whichever matrices of a shape they have") {
  const auto plan = [](const Layout& layout, const Place& place) { return muon_plan(layout, place, {}); };
  const auto main = plan_kinds({main_layout(Grid().dp(4).tp(2))}, plan);
  REQUIRE(main.size() == 3);
  CHECK(main[0].ranks == std::vector<int>{0, 1});
  CHECK(main[1].ranks == std::vector<int>{2, 3, 4, 5});
  CHECK(main[2].ranks == std::vector<int>{6, 7});

  // Two stages of equal matrices, and every rank owns one: all four do the same.
  LayoutOptions whole;
  whole.ownership = Ownership::matrices;
  const auto stage = [&](const char* a, const char* b) {
    return plan_layout({{a, {64, 2}}, {b, {64, 2}}}, Grid().dp(2).pp(2), whole);
  };
  CHECK(plan_kinds({stage("a", "b"), stage("c", "d")}, plan).size() == 1);
  CHECK(flops(plan_kinds({stage("a", "b"), stage("c", "d")}, plan), phases::orthogonalize) ==
        4 * newton_schulz_flops(64, 2, 5));
}

TEST_CASE("plan_kinds: a rank whose plan differs in anything but the matrix is of another kind") {
  const Grid grid = Grid().dp(3);
  const Layout layout = main_layout(grid);
  const Work work{phases::apply, 0, {2, 3}, 12};
  const Call call{"dp", CollectiveKind::all_gather, ElementType::float32, 4, 12};
  const Memory memory{8, "a bucket"};
  const std::vector<Operation> usual = {work, call, memory};
  const auto kinds_with = [&](const std::vector<Operation>& of_rank_1) {
    return plan_kinds({layout},
                      [&](const Layout&, const Place& place) {
                        return Plan{grid, place, place.rank == 1 ? of_rank_1 : usual};
                      })
        .size();
  };
  CHECK(kinds_with(usual) == 1);
  Work other = work;
  other.parameter = 1;
  CHECK(kinds_with({other, call, memory}) == 1);
  other = work, other.phase = phases::momentum;
  CHECK(kinds_with({other, call, memory}) == 2);
  other = work, other.shape = {3, 2};
  CHECK(kinds_with({other, call, memory}) == 2);
  other = work, other.flops = 13;
  CHECK(kinds_with({other, call, memory}) == 2);
  for (const Operation& instead :
       std::vector<Operation>{memory, work, Call{"tp", call.kind, call.type, 4, 12},
                              Call{"dp", CollectiveKind::reduce_scatter, call.type, 4, 12},
                              Call{"dp", call.kind, ElementType::bfloat16, 4, 12},
                              Call{"dp", call.kind, call.type, 5, 12}, Call{"dp", call.kind, call.type, 4, 13}})
    CHECK(kinds_with({work, instead, memory}) == 2);
  for (const Operation& instead : std::vector<Operation>{call, work, Memory{9, "a bucket"}, Memory{8, "another"}})
    CHECK(kinds_with({work, call, instead}) == 2);
  CHECK(kinds_with({call, work, memory}) == 2);
  CHECK(kinds_with({work, call}) == 2);
  CHECK(kinds_with({work, call, memory, memory}) == 2);
}

TEST_CASE("plan_text: of one bucket and one matrix, letter for letter") {
  LayoutOptions options;
  options.parameter_alignment = 1;
  const Layout layout = plan_layout({{"w", {4, 6}, SplitDim::columns}}, Grid().dp(2).tp(2), options);
  CHECK("\n" + plan_text(muon_plan(layout, layout.grid.place(0), {}), layout) == R"(
 1    hold weights                      12    12 held
 2    hold gradients                    12    24 held
 3    hold momentum                      6    30 held
 4  reduce-scatter of gradients         12
 5    hold update                        6    36 held
 6    reduce_scatter dp, float32    12 → 6   24 B out
 7  momentum                             6    24 FLOP
 8  DP gather                           12
 9    hold bucket                       12    48 held
10    all_gather dp, float32        6 → 12   24 B out
11    free update                       -6    42 held
12  TP gather                    w   4 × 3
13    hold slice                        12    54 held
14    hold slices                       24    78 held
15    all_gather tp, float32       12 → 24   48 B out
16    hold matrix                       24   102 held
17    free slices                      -24    78 held
18    free slice                       -12    66 held
19  Newton–Schulz                w   4 × 6 2,560 FLOP
20    hold X, A, B                      80   146 held
21    free X, A, B                     -80    66 held
22  TP shard                     w   4 × 3
23    hold slice                        12    78 held
24    free matrix                      -24    54 held
25  DP shard                     w   1 × 6
26    hold owned                         6    60 held
27  apply                        w   1 × 6    18 FLOP
28    free owned                        -6    54 held
29    free slice                       -12    42 held
30  all-gather of weights               12
31    all_gather dp, float32        6 → 12   24 B out
32    free bucket                      -12    30 held
)");
}

TEST_CASE(
    "plan_text: of any plan: each fold stands for what it says, saves the most that can be saved, and nothing is "
    "lost") {
  const Grid grid = Grid();
  const Layout layout = main_layout(grid);
  int folds = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    Plan plan{grid, grid.place(0), {}};
    std::vector<int> kinds;  // of the operations: all that is printed but for the matrix
    while (kinds.size() < 40) {
      std::vector<int> block(static_cast<std::size_t>(draw(1, 5)));
      for (int& kind : block) kind = draw(1, 3);
      for (int times = draw(1, 6); times > 0; --times)
        for (int kind : block) {
          kinds.push_back(kind);
          plan.operations.push_back(Work{phases::apply, draw(0, 4), {1, kind}, 1});
        }
    }
    const auto matrix = [&](std::size_t operation) {
      return "w" + std::to_string(std::get<Work>(plan.operations[operation]).parameter);
    };
    const std::vector<std::string> lines = lines_of(plan_text(plan, layout));
    std::size_t line = 0;
    for (std::size_t at = 0; at < kinds.size();) {
      std::size_t best = 1, saved = 0;
      for (std::size_t block = 1; at + 2 * block <= kinds.size(); ++block) {
        std::size_t end = at + block;
        while (end + block <= kinds.size() &&
               std::equal(kinds.begin() + long(end), kinds.begin() + long(end + block), kinds.begin() + long(at)))
          end += block;
        const std::size_t these = end - at - block;
        if (these > saved && these >= 6) best = block, saved = these;
      }
      for (std::size_t i = at; i < at + best; ++i, ++line) {
        REQUIRE(line < lines.size());
        std::istringstream words(lines[line]);
        std::size_t number = 0;
        std::string what, name, rows, times, cols;
        words >> number >> what >> name >> rows >> times >> cols;
        CHECK(number == i + 1);
        CHECK(name == matrix(i));
        CHECK(cols == std::to_string(kinds[i]));
      }
      at += best + saved;
      if (saved == 0) continue;
      ++folds;
      REQUIRE(line < lines.size());
      const std::size_t times = saved / best;
      CHECK(lines[line++].find(std::to_string(times) + (times == 1 ? " time" : " times") + " more, as the " +
                               count_text(static_cast<Index>(best), "operation") + " above, up to " + matrix(at - 1)) !=
            std::string::npos);
    }
    CHECK(line == lines.size());
  }
  CHECK(folds > 100);
}

TEST_CASE("plan_text: of a large model: at most 100 columns, and what repeats stands once") {
  for (const Grid& grid : {Grid(), Grid().dp(512).tp(8), Grid().dp(64).tp(8).pp(8)}) {
    std::vector<Layout> stages;
    const std::vector<Parameter> all = model_parameters("llama-3-70b");
    for (int stage = 0; stage < grid.pp(); ++stage) {
      const Range mine = stage_parameters(static_cast<int>(all.size()), grid.pp(), stage);
      stages.push_back(plan_layout({all.begin() + mine.begin, all.begin() + mine.end}, grid));
    }
    const auto kinds = plan_kinds(stages, [](const Layout& l, const Place& p) { return muon_plan(l, p, {}); });
    std::size_t ranks = 0;
    for (const PlanKind& kind : kinds) ranks += kind.ranks.size();
    CHECK(ranks == static_cast<std::size_t>(grid.size()));
    const auto lines = lines_of(plan_text(kinds, stages));
    CHECK(lines.size() < 150 * kinds.size());
    for (const std::string& line : lines) CHECK(text_width(line) <= 100);
  }
  const Layout alone = plan_layout(model_parameters("llama-3-70b"), Grid());
  const std::string text = plan_text(muon_plan(alone, Place(), {}), alone);
  CHECK(text.find("79 times more") != std::string::npos);
  CHECK(text.find("up to layer79.down") != std::string::npos);
}

TEST_CASE("plan_text: of kinds of ranks: who they are, what they send and hold, and their plan, with a line between") {
  const Grid grid = Grid().dp(4).tp(2);
  const Layout layout = plan_layout({{"w", {4, 4}}}, grid);
  Plan works{grid, grid.place(0), {}}, idles{grid, grid.place(2), {}};
  works.take(8, "weights");
  works.work(phases::apply, {1, 8}, 24);
  works.call("dp", CollectiveKind::all_gather, ElementType::float32, 8, 32);
  idles.take(16, "weights");
  CHECK("\n" + plan_text({{works, {0, 1, 6, 7}}, {idles, {2}}, {idles, {3, 5}}}, {layout}) == R"(
ranks 0–1, 6–7: 3 operations, 96 B to others in 3 messages, 24 FLOP, at most 8 elements held
1    hold weights                 8   8 held
2  apply                          8  24 FLOP
3    all_gather dp, float32  8 → 32 96 B out

rank 2: 1 operation, 0 B to others in 0 messages, 0 FLOP, at most 16 elements held
1    hold weights  16 16 held

ranks 3, 5: 1 operation, 0 B to others in 0 messages, 0 FLOP, at most 16 elements held
1    hold weights  16 16 held)");
}

TEST_CASE("plan: a call of a group that no grid has is refused by its name") {
  Plan plan{Grid().dp(2), Grid().dp(2).place(0), {}};
  plan.call("nobody", CollectiveKind::barrier, ElementType::bytes, 0, 0);
  CHECK_THROWS_WITH_AS(ledger_of(plan), "a plan calls the group \"nobody\", which no grid has", std::invalid_argument);
  CHECK_THROWS_WITH_AS(calls_of(plan), "a plan calls the group \"nobody\", which no grid has", std::invalid_argument);
}

TEST_CASE("traffic_of: of every kind of call, on a rank that is neither first nor last") {
  const Grid grid = Grid().dp(4).tp(2);
  const Plan plan{grid, grid.place(4), {}};  // dp 2, tp 0
  using Kind = CollectiveKind;
  const auto of = [&](Kind kind, Index in, Index out, int peer = -1) {
    return traffic_of(Call{"dp", kind, ElementType::bfloat16, in, out, peer}, plan);
  };
  CHECK(of(Kind::barrier, 0, 0) == Traffic{0, 0, 2, 2});
  CHECK(of(Kind::send, 5, 0, 1) == Traffic{10, 0, 1, 0});
  CHECK(of(Kind::recv, 0, 7, 3) == Traffic{0, 14, 0, 1});
  CHECK(of(Kind::wait, 0, 0, 3) == Traffic{});
  CHECK(of(Kind::broadcast, 5, 5, 2) == Traffic{3 * 10, 0, 3, 0});
  CHECK(of(Kind::broadcast, 5, 5, 0) == Traffic{0, 10, 0, 1});
  // Of 11 elements DP rank 2 sums up those from ⌊22 / 4⌋ = 5 to ⌊33 / 4⌋ = 8: 3 of them; 8 go out, and 3 · 3.
  CHECK(of(Kind::all_reduce, 11, 11) == Traffic{(8 + 9) * 2, (8 + 9) * 2, 6, 6});
  CHECK(of(Kind::all_gather, 3, 17) == Traffic{3 * 3 * 2, 14 * 2, 3, 3});
  CHECK(of(Kind::reduce_scatter, 17, 3) == Traffic{14 * 2, 3 * 3 * 2, 3, 3});
  CHECK(of(Kind::all_to_all, 9, 4) == Traffic{18, 8, 3, 3});
}

TEST_CASE("traffic_of: a group that few ranks are in: its size and the rank's number in it; refused to all others") {
  const Grid grid = Grid().dp(2).pp(3);
  const Call call{"first and last stage", CollectiveKind::broadcast, ElementType::float32, 6, 6, 1};
  for (int rank = 0; rank < grid.size(); ++rank) {
    const Plan plan{grid, grid.place(rank), {}};
    CAPTURE(rank);
    if (grid.place(rank).pp == 1)
      CHECK_THROWS_WITH_AS(traffic_of(call, plan), "a plan calls the group \"first and last stage\", which no grid has",
                           std::invalid_argument);
    else
      CHECK(traffic_of(call, plan) == (grid.place(rank).pp == 2 ? Traffic{24, 0, 1, 0} : Traffic{0, 24, 0, 1}));
  }
}

TEST_CASE("held_between_steps: a line for each name and type, in their order, added up, until the first phase") {
  Plan plan{Grid(), Place(), {}};
  plan.take(5, "weights");
  plan.take(7, "momentum");
  plan.take(11, "weights", ElementType::bfloat16);
  plan.take(13, "weights");
  plan.take(17, "momentum");
  plan.work(phases::momentum, {1, 1});
  plan.take(19, "weights");
  const std::vector<Memory> held = held_between_steps(plan);
  REQUIRE(held.size() == 3);
  CHECK(held[0] == Memory{18, "weights"});
  CHECK(held[1] == Memory{24, "momentum"});
  CHECK(held[2] == Memory{11, "weights", ElementType::bfloat16});
  CHECK(peak_elements(plan) == 72);
  CHECK(peak_bytes(plan) == (72 - 11) * 4 + 11 * 2);
}
