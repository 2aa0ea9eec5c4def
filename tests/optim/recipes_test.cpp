// Recipes, scales, coefficients and pieces: every one against plain loops on random layouts, and against PyTorch.
#include "src/optim/recipes.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "src/io/safetensors.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

double distance(const Matrix& x, const Matrix& y) {
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) squares += std::pow(static_cast<double>(x.data()[i]) - y.data()[i], 2);
  return std::sqrt(squares);
}

// Rows dealt out to two or three pieces, a few at a time.
std::vector<Piece> random_pieces(Choices& choose, Index rows) {
  const Index count = choose.between(2, 3), at_once = choose.between(1, 5);
  std::vector<Piece> pieces;
  for (Index begin = 0; begin < rows; begin += at_once) {
    const std::size_t piece = static_cast<std::size_t>(begin / at_once % count);
    if (piece == pieces.size()) pieces.push_back({"piece", {}});
    pieces[piece].rows.push_back({begin, std::min(rows, begin + at_once)});
  }
  return pieces;
}

// A random case with a recipe, and often with another scale, other coefficients and fused matrices.
Case random_recipe_case(std::uint64_t seed) {
  Case c = random_case(seed);
  Choices choose(seed + 7000);
  c.settings.newton_schulz.threads = 1;
  if (choose.yes(30)) c.settings.gather = Gather::cut_matrices;
  const Recipe& recipe = choose.one_of(recipes());
  c.settings = with_recipe(recipe.name, c.settings);
  if (recipe.has_cautious && choose.yes(50)) c.settings.arithmetic.decay = Decay::cautious;
  if (choose.yes(50)) take_coefficients(c.settings.newton_schulz, choose.one_of(coefficient_sets()).name);
  if (choose.yes(50))
    c.settings.arithmetic.scale =
        choose.one_of<Scale>({Scale::matched_rms, Scale::largest, Scale::tall, Scale::ratio, Scale::none});
  for (const Parameter& parameter : c.parameters)
    if (choose.yes(60) && !c.settings.second_moment.used)
      c.settings.fused[parameter.name] = random_pieces(choose, parameter.shape.rows);
  c.options.ownership = choose.one_of<Ownership>({Ownership::buckets, Ownership::buffer, Ownership::matrices});
  return c;
}

}  // namespace

TEST_CASE("recipe_step: with the defaults, the bits of muon_step") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Case c = random_case(seed);
    c.settings.newton_schulz.threads = 1;
    CAPTURE(c.text());
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
      Matrix w = c.weights()[p].matrix, other_w = w;
      Matrix m(w.rows(), w.cols()), other_m = m;
      for (int step = 0; step < 2; ++step) {
        muon_step(w, m, c.gradients(step, 0)[p], c.settings, "w");
        recipe_step(other_w, other_m, c.gradients(step, 0)[p], c.settings, "w");
        REQUIRE(same_bits(w, other_w));
        REQUIRE(same_bits(m, other_m));
      }
    }
  }
}

TEST_CASE("recipes: any layout, scale, coefficients and pieces: the reference's bits, and the plan call by call") {
  int pieces = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Case c = random_recipe_case(seed);
    CAPTURE(c.text());
    const auto make = [&c] { return std::make_unique<Muon>(c.settings); };
    const auto ranks = record_steps(c, make);
    const auto reference = reference_steps(c, *make());
    const Layout layout = c.layout();
    for (int r = 0; r < c.grid.size(); ++r) {
      const Place place = c.grid.place(r);
      const Plan plan = muon_plan(layout, place, c.settings);
      for (int step = 0; step < c.steps; ++step) {
        REQUIRE(first_difference(c, place, ranks[r][step].slices, reference[step]) == "");
        REQUIRE(first_difference(plan, ranks[r][step]) == "");
      }
    }
    pieces += static_cast<int>(c.settings.fused.size());
  }
  CHECK(pieces > 100);
}

// What a published class left after three steps, and how it was called.
struct Golden {
  std::string name, recipe, tag;
  Precision precision = Precision::fp32;
  RecipeArguments arguments;
  double limit = 0;
  const nlohmann::json numbers;
  std::vector<std::string> shapes;
};

class Goldens {
 public:
  Goldens() : inputs_(read("inputs")), after_(read("after3")), of_inputs_(inputs_), of_after_(after_) {
    for (const auto& [name, text] : after_.metadata) {
      const nlohmann::json numbers = nlohmann::json::parse(text);
      const std::size_t first = name.find('_'), last = name.rfind('_');
      Golden golden{
          name, name.substr(0, first), name.substr(first + 1, last - first - 1), Precision::fp32, {}, 0, numbers, {}};
      golden.precision = name.substr(last + 1) == "bf16" ? Precision::bf16 : Precision::fp32;
      golden.limit = numbers.at("limit");
      RecipeArguments& a = golden.arguments;
      if (golden.tag != "default") {
        a.lr = numbers.at("lr"), a.momentum = numbers.at("momentum"), a.weight_decay = numbers.at("weight_decay");
        if (recipe_named(golden.recipe).has_nesterov) a.nesterov = numbers.at("nesterov").get<bool>();
        if (numbers.count("beta2") > 0) a.beta2 = numbers.at("beta2").get<double>();
        if (numbers.count("steps") > 0) a.steps = numbers.at("steps").get<int>();
        a.cautious = numbers.count("cautious") > 0;
        a.scale = numbers.value("adjust_lr", "");
      }
      for (const char* shape : {"w_6x9", "w_64x64", "w_64x160", "w_160x64"})
        if (of_after_.find(name + "/" + shape) != nullptr) golden.shapes.push_back(shape);
      all.push_back(golden);
    }
  }

  // The distance of three steps from the class's, as a part of the way that the class has come.
  double relative(const Golden& golden, const std::string& shape, const MuonSettings& settings) const {
    const Matrix before = of_inputs_.find("before/" + shape)->matrix();
    Matrix w = before, m(w.rows(), w.cols());
    Flat v(static_cast<std::size_t>(settings.second_moment.count({w.rows(), w.cols()})));
    for (const char* step : {"grad1/", "grad2/", "grad3/"})
      recipe_step(w, m, of_inputs_.find(step + shape)->matrix(), settings, "w", nullptr, v.empty() ? nullptr : &v);
    const Matrix after = of_after_.find(golden.name + "/" + shape)->matrix();
    Matrix decayed = before;  // where the class would be without any update
    const double decay = golden.numbers.at("lr").get<double>() * golden.numbers.at("weight_decay").get<double>();
    const bool cautious = golden.recipe == "nanochat" || golden.arguments.cautious;
    for (float& value : decayed.flat()) value = static_cast<float>(value * (cautious ? 1 : std::pow(1 - decay, 3)));
    return distance(w, after) / distance(decayed, after);
  }

  std::vector<Golden> all;

 private:
  static SafetensorsFile read(const std::string& name) {
    return read_safetensors(std::string(MUONWALK_GOLDEN_DIR) + "/recipes/" + name + ".safetensors");
  }
  SafetensorsFile inputs_, after_;
  TensorIndex of_inputs_, of_after_;
};

MuonSettings settings_of(const Golden& golden, const Recipe& recipe, Products products) {
  MuonSettings settings = called(recipe, golden.arguments);
  settings.newton_schulz.precision = golden.precision;
  settings.newton_schulz.products = products;
  return settings;
}

// tests/golden/recipes/README.md says what the limit is.
TEST_CASE("recipes: each does what its class did, with either engine; and in bf16, what no other recipe does") {
  const Goldens goldens;
  int tensors = 0;
  for (const Golden& golden : goldens.all) {
    const double plain = golden.precision == Precision::bf16 ? 0.006 : 1e-5;
    for (const Products products : {Products::eigen, Products::chain}) {
      CAPTURE(golden.name);
      const MuonSettings settings = settings_of(golden, recipe_named(golden.recipe), products);
      int within = 0;
      for (const std::string& shape : golden.shapes) {
        CAPTURE(shape);
        const double relative = goldens.relative(golden, shape, settings);
        CHECK(relative <= golden.limit);
        within += relative <= plain;
        ++tensors;
      }
      CHECK(5 * within >= 2 * static_cast<int>(golden.shapes.size()));
    }
    // Called with the same numbers, every other class is too far away on some shape; in step 1 some are the same.
    if (golden.precision == Precision::fp32 || golden.tag != "default") continue;
    const MuonSettings own = settings_of(golden, recipe_named(golden.recipe), Products::chain);
    for (const Recipe& other : recipes()) {
      if (other.name == golden.recipe) continue;
      CAPTURE(golden.name + " by " + other.name);
      MuonSettings settings = other.settings;
      settings.newton_schulz.products = Products::chain;
      settings.newton_schulz.precision = golden.precision;
      settings.lr = own.lr, settings.momentum = own.momentum, settings.weight_decay = own.weight_decay;
      double farthest = 0;
      for (const std::string& shape : golden.shapes)
        farthest = std::max(farthest, goldens.relative(golden, shape, settings));
      const std::set<std::string> same = {"emerging-simple", "emerging-deepseekv4"};  // for five steps
      CHECK((farthest > golden.limit) == (same.count(other.name) + same.count(golden.recipe) < 2));
    }
  }
  CHECK(tensors == 402);
}

TEST_CASE("recipes: their defaults are those with which their classes were called") {
  std::set<std::string> seen;
  for (const Golden& golden : Goldens().all) {
    if (golden.tag != "default") continue;
    CAPTURE(golden.name);
    const MuonSettings& settings = recipe_named(golden.recipe).settings;
    CHECK(settings.lr == golden.numbers.at("lr").get<float>());
    CHECK(settings.momentum == golden.numbers.at("momentum").get<double>());
    CHECK(settings.weight_decay == golden.numbers.at("weight_decay").get<float>());
    CHECK(settings.nesterov == golden.numbers.at("nesterov").get<bool>());
    if (settings.second_moment.used) CHECK(settings.second_moment.beta2 == golden.numbers.at("beta2").get<float>());
    CHECK(settings.newton_schulz.steps == 5);
    seen.insert(golden.recipe);
  }
  CHECK(seen.size() == recipes().size());
}

TEST_CASE("called: refuses, in a sentence, what a class has no argument for") {
  const auto error = [](const std::string& recipe, const RecipeArguments& asked) {
    return usage_error([&] { called(recipe_named(recipe), asked); });
  };
  RecipeArguments nesterov, steps, beta2, cautious, scale;
  nesterov.nesterov = false, steps.steps = 7, beta2.beta2 = 0.5, cautious.cautious = true, scale.scale = "original";
  CHECK(error("kellerjordan", nesterov) ==
        "--no-nesterov has no place in --recipe kellerjordan, because SingleDeviceMuon has no such argument; it always "
        "looks ahead");
  CHECK(error("dion", steps) ==
        "--ns-steps has no place in --recipe dion, because Muon of dion has no such argument; it always takes five "
        "steps");
  CHECK(error("emerging-cubic5", steps) ==
        "--ns-steps 7 does not go with the coefficients cubic5, which are for 5 steps");
  CHECK(error("nanochat", steps) ==
        "--ns-steps 7 does not go with the coefficients polar_dion, which are for at most 5 steps");
  CHECK(error("torch", beta2).find("; normuon and nanochat have one") != std::string::npos);
  CHECK(error("torch", cautious).find("; dion and normuon have one") != std::string::npos);
  CHECK(error("nanochat", cautious).find("; it is always cautious") != std::string::npos);
  CHECK(error("moonshot", scale).find("; it has one way to scale an update") != std::string::npos);
  CHECK(error("dion", scale) ==
        "--adjust-lr original is not known to --recipe dion; it takes spectral_norm, rms_norm or none");
  CHECK(error("torch", scale) == "(no UsageError)");
  CHECK(usage_error([] { recipe_named("muon"); }).find("--recipe \"muon\" is not known; it takes moonshot, ") == 0);
}

TEST_CASE("with_recipe: what is asked for besides stays, and everything else is the recipe's") {
  MuonSettings knobs;
  knobs.lr = 0.5f;
  knobs.momentum = 0.25;
  knobs.weight_decay = 0.125f;
  knobs.rms = 0.75f;
  knobs.newton_schulz.precision = Precision::bf16;
  knobs.newton_schulz.products = Products::chain;
  knobs.newton_schulz.threads = 3;
  knobs.gather = Gather::cut_matrices;
  knobs.fused["qkv"] = gate_and_up(8);
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    const MuonSettings settings = with_recipe(recipe.name, knobs);
    CHECK(settings.lr == 0.5f);
    CHECK(settings.momentum == 0.25);
    CHECK(settings.weight_decay == 0.125f);
    CHECK(settings.rms == 0.75f);
    CHECK(settings.newton_schulz.precision == Precision::bf16);
    CHECK(settings.newton_schulz.products == Products::chain);
    CHECK(settings.newton_schulz.threads == 3);
    CHECK(settings.gather == Gather::cut_matrices);
    CHECK(settings.fused.count("qkv") == 1);
    for (const RecipeLine& line : recipe_lines()) CHECK(line.text(settings) == line.text(recipe.settings));
    CHECK(settings.newton_schulz.steps == recipe.settings.newton_schulz.steps);
    CHECK(settings.second_moment.used == recipe.settings.second_moment.used);
  }
}

TEST_CASE("recipe lines: each differs in some recipe, and together they lead from any recipe to any other") {
  for (const RecipeLine& line : recipe_lines()) {
    int differ = 0;
    for (const Recipe& recipe : recipes()) differ += line.text(recipe.settings) != line.text(MuonSettings());
    CHECK(differ > 0);
  }
  Matrix g = random_matrix({5, 1}, 9, 4);
  for (const Recipe& from : recipes())
    for (const Recipe& to : recipes())
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        CAPTURE(from.name + " to " + to.name);
        MuonSettings all = with_recipe(from.name, {}), wanted = with_recipe(to.name, {});
        for (const RecipeLine& line : recipe_lines()) line.take(all, to.settings);
        all.newton_schulz.precision = wanted.newton_schulz.precision = precision;
        Matrix w = random_matrix({5, 2}, 9, 4), m(9, 4), other_w = w, other_m = m;
        Flat v(static_cast<std::size_t>(wanted.second_moment.count({9, 4}))), other_v = v;
        for (int step = 0; step < 2; ++step) {
          recipe_step(w, m, g, all, "w", nullptr, v.empty() ? nullptr : &v);
          recipe_step(other_w, other_m, g, wanted, "w", nullptr, v.empty() ? nullptr : &other_v);
        }
        REQUIRE(same_bits(w, other_w));
      }
}

TEST_CASE("coefficients: every set brings singular values from 0.05 to 0.8 near 1; simple is the default's bits") {
  for (const CoefficientSet& set : coefficient_sets()) {
    CAPTURE(set.name);
    const auto becomes = [&](double s) {
      for (const Quintic& q : set.quintics) s = q.a * s + q.b * s * s * s + q.c * s * s * s * s * s;
      return s;
    };
    for (double start = 0.05; start <= 0.8; start += 0.01) CHECK(std::fabs(becomes(start) - 1) < 0.35);
    // Those of AOL are for inputs that AOL has scaled; a lone singular value, which is 1, they turn round.
    CHECK((becomes(0.98) < 0) == (set.name == "aol"));
    // What follows the last: the same again, the first, or nothing.
    const int count = static_cast<int>(set.quintics.size());
    const auto one_more = [&] { return set.of_steps(count + 1).back().a; };
    if (set.after == AfterLast::repeats) CHECK(one_more() == set.quintics.back().a);
    if (set.after == AfterLast::begins_again) CHECK(one_more() == set.quintics.front().a);
    if (set.after == AfterLast::nothing || set.after == AfterLast::no_fewer) CHECK_THROWS_AS(one_more(), UsageError);
    if (set.after == AfterLast::no_fewer) CHECK_THROWS_AS(set.of_steps(count - 1), UsageError);
    if (set.after != AfterLast::no_fewer) CHECK(set.of_steps(2).size() == 2);
  }
  MuonSettings settings;
  take_coefficients(settings.newton_schulz, "simple");
  const Matrix x = random_matrix({1, 1}, 7, 12);
  CHECK(same_bits(orthogonalize(x, settings, "w"), orthogonalize(x, MuonSettings(), "w")));
}

TEST_CASE("normalization: without an ε that matters, Newton–Schulz has one result for inputs of any size") {
  const Matrix x = random_matrix({2, 2}, 6, 10);
  const auto of_size = [&](float factor, const std::string& recipe) {
    Matrix small = x;
    for (float& value : small.flat()) value *= factor;
    return orthogonalize(small, with_recipe(recipe, {}), "w");
  };
  // A power of two, so that nothing but ε can make a difference: a norm of about 4e-9.
  CHECK(same_bits(of_size(0x1p-30f, "emerging"), of_size(1, "emerging")));
  for (const char* recipe : {"moonshot", "torch", "dion"}) {
    CAPTURE(recipe);
    CHECK(distance(of_size(0x1p-30f, recipe), of_size(1, recipe)) > 0.05);
  }
}

// What it sees of whole steps is tested with all strategies (strategy_plans_test.cpp).
TEST_CASE("RmsMonitor: what TP does not cut is there on both TP ranks, and counts once; what it cuts, in parts") {
  const Layout layout = plan_layout({{"cut", {4, 3}, SplitDim::rows}, {"whole", {2, 2}}}, Grid().tp(2));
  run_ranks(Grid().tp(2), [&](TestRank& rank) {
    RmsMonitor monitor({{"cut", {4, 3}, SplitDim::rows}, {"whole", {2, 2}}});
    const Flat threes(6, 3.0f);
    for (const DistMeta& meta : layout.buffers[0].parameters)
      monitor.add(meta, rank.place, threes.data(), meta.shape.size(), 4.0 * static_cast<double>(meta.shape.size()));
    for (const ParameterRms& rms : monitor.reduce(rank.tp))
      if (rms.weights != 3 || rms.update != 2) throw std::logic_error("another root mean square");
    for (const ParameterRms& rms : monitor.reduce(rank.tp))
      if (rms.weights != 0 || rms.update != 0) throw std::logic_error("counted again");
  });
}
