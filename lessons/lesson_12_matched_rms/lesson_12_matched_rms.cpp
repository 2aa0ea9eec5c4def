// # Lesson 12 · Matched RMS
//
// Muon takes an orthogonal matrix from the weights. How large is that step? This lesson measures it beside AdamW's, and
// shows what the factor 0.2 · √max(rows, cols) is for. Then it looks at what others put in its place: five
// implementations that are in use are five recipes here, each run on ranks and held, bit for bit, to a serial program
// with its order of operations. On the way come matrices that several projections share, and a monitor.
//
// You need to know Newton–Schulz, lesson 06, Muon's last line, lesson 08, and the full step, lesson 09.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lessons/lesson_12_matched_rms/tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/optim/adamw.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/rms_monitor.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/steps.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Of an A × B matrix with orthonormal rows or columns, the squares of all elements add up to min(A, B). So their root
// mean square is √(min(A, B) / (A · B)) = 1 / √max(A, B): the larger the matrix, the less each weight moves. AdamW
// moves each weight by about as much whatever the shape. Multiplied by √max(A, B), Muon's does so too, and 0.2 brings
// it to AdamW's size. Then one learning rate and one weight decay serve both (Liu et al., "Muon is Scalable for LLM
// Training", 2025, section 2.2, who saw 0.2 to 0.4 in AdamW).
//
// The first table shows it for random gradients. Read it down: a scale matches AdamW where its column does not depend
// on the shape. (It stays below 0.2, because five steps of Newton–Schulz leave singular values around 1, and most of
// them below.)
//
// Gradients are random numbers without a mean here (`noise`, in lessons/lesson_12_matched_rms). An update is what one
// step takes from a matrix for a learning rate of 1, without decay: AdamW's, and Muon's orthogonal matrix, which the
// table scales.
UpdateRms update_rms(Shape shape, int steps, std::uint64_t seed) {
  AdamWSettings adamw_settings;
  adamw_settings.lr = 1;
  adamw_settings.weight_decay = 0;
  AdamWState state = initial_adamw_state(Flat(static_cast<std::size_t>(shape.size())));

  const MuonSettings muon = for_tables({});
  Matrix buffer(shape.rows, shape.cols), update(shape.rows, shape.cols);
  for (int step = 0; step < steps; ++step) {
    const Matrix gradient = noise(shape, seed, step);
    std::fill(state.weights.begin(), state.weights.end(), 0.0f);  // so that they are the last update, with its sign
    adamw(state, gradient.flat(), step + 1, adamw_settings);
    momentum(gradient.data(), buffer.data(), gradient.size(), muon, update.data());
  }
  return {shape, rms_of(Matrix(shape.rows, shape.cols, state.weights)), rms_of(orthogonalize(update, muon, "table"))};
}
std::vector<UpdateRms> update_rms_of_shapes(std::uint64_t seed) {
  std::vector<UpdateRms> all;
  for (const Shape shape : {Shape{64, 64}, {64, 16}, {64, 256}, {256, 64}}) all.push_back(update_rms(shape, 50, seed));
  return all;
}

// What AdamW's update comes to on such gradients, however large they are: its first moment is a mean of gradients with
// weights (1 − β₁) β₁ᵏ, whose squares add up to (1 − β₁) / (1 + β₁), and its second moment divides by the root mean
// square of one gradient.
double adamw_rms_on_noise(double beta1) { return std::sqrt((1 - beta1) / (1 + beta1)); }

// ### What weights come to
//
// With `--tables`, *decay* follows the weights themselves through 400 such steps: a matrix of 32 × 32 that Muon trains,
// and 256 gains that AdamW trains with the same learning rate, each with weight decay and without.
constexpr Shape kTrained{32, 32}, kManyGains{1, 256};

// Takes `step` as often as the last of kRmsSteps says, and the root mean square of `weights` after each of them.
std::vector<double> follow(const Matrix& weights, const std::function<void(int step)>& step) {
  std::vector<double> rms;
  const int* next = std::begin(kRmsSteps);
  for (int taken = 0;; ++taken) {
    if (taken == *next) {
      rms.push_back(rms_of(weights));
      if (++next == std::end(kRmsSteps)) return rms;
    }
    step(taken);
  }
}

WeightRms of_matrix(const MuonSettings& muon, std::uint64_t seed) {
  Matrix w = noise(kTrained, seed + 1, 0), m(kTrained.rows, kTrained.cols);
  return {"matrix, by Muon", muon.weight_decay > 0,
          follow(w, [&](int step) { recipe_step(w, m, noise(kTrained, seed, step), for_tables(muon), "matrix"); })};
}

WeightRms of_gains(const AdamWSettings& settings, std::uint64_t seed) {
  const Index count = kManyGains.size();
  Matrix gains(kManyGains.rows, kManyGains.cols);
  std::fill(gains.flat().begin(), gains.flat().end(), 1.0f);
  Flat first(count), second(first.size());
  return {"gains, by AdamW", settings.weight_decay > 0, follow(gains, [&](int step) {
            const Matrix gradient = noise(kManyGains, seed, step);
            adamw(gains.data(), gradient.data(), first.data(), second.data(), count, step + 1, settings);
          })};
}

std::vector<WeightRms> weight_rms(const MuonSettings& muon, std::uint64_t seed) {
  MuonSettings plain_muon = muon;
  plain_muon.weight_decay = 0;
  AdamWSettings adamw;
  adamw.lr = muon.lr;
  adamw.weight_decay = muon.weight_decay;
  AdamWSettings plain_adamw = adamw;
  plain_adamw.weight_decay = 0;
  return {of_matrix(muon, seed), of_matrix(plain_muon, seed), of_gains(adamw, seed), of_gains(plain_adamw, seed)};
}

// ### Matrices that are several
//
// Some matrices are several matrices. The projections q, k and v of an attention are kept as one, with their rows below
// each other, and so are the gate and the way up of an MLP. Orthogonalized as one, each is changed by the others: a
// small gradient drowns beside a large one. So they are split into pieces, and each piece is orthogonalized, and
// scaled, as a matrix of its own. TP cuts the whole by rows, and does not care for pieces or heads:
//
//     q head 0   ████████████████   TP rank 0
//     q head 1   ████████████████   TP rank 0
//     q head 2   ████████████████   half of its rows on TP rank 0, half on TP rank 1
//     k head 0   ████████████████   TP rank 1
//     v head 0   ████████████████   TP rank 1
//
// Three heads of q share one of k and one of v here (grouped-query attention), so q is larger than k and v.
const AttentionRows kAttention{3, 1, 4};

// A layer of width 16: two fused matrices, two others, and the gains of an RMSNorm, which are a vector. Muon takes
// group 0 and AdamW group 1.
const std::vector<Parameter> kLayer = {{"qkv", {20, 16}, SplitDim::rows},
                                       {"o", {16, 12}, SplitDim::columns},
                                       {"gate_up", {64, 16}, SplitDim::rows},
                                       {"down", {16, 32}, SplitDim::columns},
                                       {"norm", {1, 16}, SplitDim::none, 1, 1}};
const std::vector<Parameter> kMatrices(kLayer.begin(), kLayer.end() - 1);  // those of Muon

// What you asked for, and what follows from it before any rank is started.
struct Request {
  std::string recipe = "all";       // or one of them
  std::string scale, coefficients;  // in place of the recipe's; empty: the recipe's
  std::string split_qkv = "three";  // how the fused matrix of an attention is split
  int steps = 10;                   // optimizer steps of each recipe
  bool tables = false;              // tables of all recipes first
};
Request request;
std::vector<std::string> running;  // the recipes, in the order in which they run
std::unique_ptr<Training> data;    // random weights and gradients for the layer

// What one rank holds.
struct Local {
  int recipe = -1;                       // which of the recipes runs, counted from 0
  int step = 0;                          // optimizer steps done with it
  Layout layout;                         // who owns what
  std::unique_ptr<Optimizer> optimizer;  // whole buckets of weights, and my DP shards of momentum and moments
  std::vector<Matrix> monitored;         // [recipe] 1 × 8: RMS of each matrix's weights and last update
};

// ## Recipes
//
// An implementation is a list of choices ([Recipe]). Is momentum a sum of gradients or a mean? Does it look ahead
// (Nesterov)? What keeps the norm away from zero, and which coefficients come then? What is the scale, and in how many
// multiplications, each of which rounds? The options put something else in place of one choice: `--scale`,
// `--coefficients`, `--split-qkv`.
MuonSettings settings_of(const std::string& name, const RankInfo& rank) {
  MuonSettings settings = with_recipe(name, muon_settings(rank.precision, rank.threads, rank.products));
  if (!request.scale.empty()) settings.arithmetic.scale = parse_scale(request.scale);
  if (!request.coefficients.empty()) take_coefficients(settings.newton_schulz, request.coefficients);
  const std::vector<muonwalk::Piece> pieces = qkv_pieces(kAttention, parse_qkv_split(request.split_qkv));
  if (!pieces.empty()) settings.fused["qkv"] = pieces;
  settings.fused["gate_up"] = gate_and_up(kLayer[2].shape.rows);
  return settings;
}

// Muon for the matrices and AdamW for the gains, with the same learning rate. Weight decay is for all of them: gains
// that nothing holds back grow like any other weight, as *decay* shows, and whatever passes through the norm
// grows with them. Liu et al. (appendix D) call their decay crucial for stable training. Megatron-LM leaves vectors out
// unless it is asked.
std::unique_ptr<Optimizer> optimizer_of(const MuonSettings& muon, float decay_of_gains) {
  AdamWSettings adamw;
  adamw.lr = muon.lr;
  adamw.weight_decay = decay_of_gains;
  const std::vector<ParameterGroup> groups = {
      {"matrices", {2, {}, {}}, [muon] { return std::make_unique<Muon>(muon); }},
      {"gains", {1, {}, {}}, [adamw] { return std::make_unique<Zero1AdamW>(adamw); }}};
  return std::make_unique<GroupedOptimizer>(groups, kLayer);
}

// The blueprint of lesson 03: one bucket for the matrices and one for the gains.
Layout layout_of(const RankInfo& rank) { return plan_layout(kLayer, rank.grid); }

// ## The reference
//
// For each recipe one process with whole matrices and plain loops ([recipe_step]), which reads the same list of
// choices. That the choices are those of the classes was measured: each class was run, and what it left is kept in
// tests/golden/recipes. `--tables` shows their defaults, their coefficients, and what surprises in both.
std::vector<std::unique_ptr<ReferenceRun>> references;  // [recipe]
std::vector<Matrix> expected_rms;                       // [recipe] what a monitor should say of the last step

// What a rank should hold after a step, its TP slices of the whole matrices, and what it does hold.
std::vector<NamedMatrix> expected_slices(const RankInfo& rank, int recipe_number, int step) {
  return references[recipe_number]->slices_after(step, rank.grid, rank.place);
}
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), rank.place.tp);
}

// What a monitor says of matrices, as one row of numbers: of each, the RMS of its weights and of its update. And what
// it should say, from the reference's weights before and after its last step: the update is what is missing after
// decay.
Matrix row_of(const std::vector<ParameterRms>& all) {
  Matrix row(1, 2 * Index(all.size()));
  for (std::size_t p = 0; p < all.size(); ++p) {
    row.flat()[2 * p] = float(all[p].weights);
    row.flat()[2 * p + 1] = float(all[p].update);
  }
  return row;
}
Matrix expected_row(const std::vector<NamedMatrix>& before, const std::vector<NamedMatrix>& after, double keep) {
  std::vector<ParameterRms> all;
  for (std::size_t p = 0; p < kMatrices.size(); ++p) {
    const Matrix &old = before[p].matrix, &now = after[p].matrix;
    double squares = 0;
    for (Index i = 0; i < now.size(); ++i) {
      const double update = keep * double(old.data()[i]) - double(now.data()[i]);
      squares += update * update;
    }
    all.push_back({rms_of(now), std::sqrt(squares / double(now.size()))});
  }
  return row_of(all);
}
Matrix rms_of_last_step(ReferenceRun& run, const RankInfo& rank, const MuonSettings& settings) {
  const int dp = rank.grid.dp(), last = request.steps;
  const std::vector<NamedMatrix> before = last > 1 ? run.after(last - 1, dp) : data->first_weights();
  return expected_row(before, run.after(last, dp), 1 - settings.lr * settings.weight_decay);
}

// Before any rank is started: refuse what can't work, and let the references run, so that every rank knows what a
// monitor should say.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(fmt::format("--pp {} has no second stage here: this is one layer; try lesson 09", rank.grid.pp()));
  if (request.steps < 1 || request.steps > 100)
    throw UsageError(fmt::format("--steps {} is too few or too many; it takes 1 to 100", request.steps));
  layout_of(rank);
  running.clear();
  if (request.recipe != "all" && recipe_named(request.recipe).settings.second_moment.used)
    throw UsageError(
        fmt::format("--recipe {} keeps a mean of squares for whole matrices, and this lesson splits two of "
                    "its matrices; try lesson 09 --recipe {}",
                    request.recipe, request.recipe));
  for (const Recipe& each : main_recipes()) running.push_back(each.name);
  if (request.recipe != "all") running = {request.recipe};  // settings_of refuses one that is not known
  data = std::make_unique<RandomTraining>(kLayer, request.steps, rank.seed);
  for (const std::string& name : running) {
    const MuonSettings settings = settings_of(name, rank);
    references.push_back(std::make_unique<ReferenceRun>(*data, optimizer_of(settings, settings.weight_decay)));
    expected_rms.push_back(rms_of_last_step(*references.back(), rank, settings));
  }
}

// ## The steps
//
// Whose rows does a TP rank have? You should see one head that is cut in two.
void look_at_heads(Rank& rank, Local&) {
  const Range rows = tp_range(kLayer[0], rank.grid.tp(), rank.place.tp);
  if (rank.place.dp == 0) rank.say(fmt::format("rows {} of qkv: {}", range_text(rows), heads_text(kAttention, rows)));
}

// Begin with the next recipe, and with the weights from before the first step.
//
// Four planted bugs, each of which somebody had. `local_rows` asks whether the rows of its *slice* can be split into
// q, k and v, finds that they can't, and orthogonalizes all in one call. `missing_factor` leaves 0.2 out.
// `other_rounding` rounds the scaled update in another place: right up to the last bits. `gains_not_decayed`
// leaves vectors out of the weight decay.
void start(Rank& rank, Local& local) {
  ++local.recipe;
  local.step = 0;
  local.layout = layout_of(rank);
  MuonSettings settings = settings_of(running[local.recipe], rank);
  if (rank.bug("local_rows") && local.layout.meta("qkv").shape.rows % kAttention.rows() != 0)
    settings.fused.erase("qkv");
  if (rank.bug("missing_factor") && settings.arithmetic.scale == Scale::matched_rms)
    settings.arithmetic.scale = Scale::largest;
  if (rank.bug("other_rounding"))
    settings.arithmetic.scaling = settings.arithmetic.scaling == Scaling::once ? Scaling::twice : Scaling::once;
  const float decay_of_gains = rank.bug("gains_not_decayed") ? 0 : settings.weight_decay;

  local.optimizer = optimizer_of(settings, decay_of_gains);
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, *data, rank.place.tp));
}

// ### Where a fused matrix is split
//
// In the step of lesson 09, Newton–Schulz comes after both gathers. By then the matrix is whole, and its pieces are the
// same rows on every rank, wherever TP and DP have cut ([full_step]). Only the scale has to know which piece an element
// belongs to ([by_pieces]).
//
// ### A monitor
//
// The root mean squares (RMS) of weights and updates show early when training goes wrong. No rank knows them, because
// each has a part of each matrix. But each can add up the squares of what it owns, and such sums can be added: one
// all-reduce per step, of two numbers per matrix ([RmsMonitor]), in place of another gather of all matrices.
//
// The planted bug `partial_rms` adds the squares up over dp alone: what is on other TP ranks is missing.
void optimizer_step(Rank& rank, Local& local) {
  const Buckets gradients = pack_slices(
      local.layout, data->own_gradients(local.step, rank.grid.dp(), rank.place.dp, held_slices(rank, local)));
  rank.memory().restart_peak();  // what is counted from here on is the step itself
  RmsMonitor monitor(kMatrices);
  StepContext context{local.layout, rank.place, rank.dp(), rank.tp()};
  context.monitor = &monitor;
  local.optimizer->step(context, gradients);

  const Matrix row = row_of(monitor.reduce(rank.bug("partial_rms") ? rank.dp() : rank.group("world")));
  if (++local.step == request.steps) local.monitored.push_back(row);
}

// Ranks add their squares in a different order from one process, so here near is enough: what is within `tolerance` of
// what is wanted counts as equal, and takes its place.
std::vector<Matrix> near_as_equal(const std::vector<Matrix>& held, const std::vector<Matrix>& wanted,
                                  double tolerance) {
  std::vector<Matrix> compared = held;
  for (std::size_t row = 0; row < std::min(held.size(), wanted.size()); ++row) {
    if (held[row].rows() != wanted[row].rows() || held[row].cols() != wanted[row].cols()) continue;
    for (Index i = 0; i < held[row].size(); ++i) {
      const double is = double(held[row].data()[i]), want = double(wanted[row].data()[i]);
      if (std::fabs(is - want) <= tolerance * std::fabs(want)) compared[row].data()[i] = wanted[row].data()[i];
    }
  }
  return compared;
}
std::vector<NamedMatrix> by_recipe(const std::vector<Matrix>& rows) {
  std::vector<NamedMatrix> named;
  for (std::size_t r = 0; r < rows.size(); ++r) named.push_back({running.at(r), rows[r]});
  return named;
}
std::vector<NamedMatrix> held_rms(const RankInfo&, const Local& local) {
  return by_recipe(near_as_equal(local.monitored, expected_rms, 1e-4));
}
std::vector<NamedMatrix> wanted_rms(const RankInfo&) { return by_recipe(expected_rms); }

// What a rank has learnt is printed of rank 0, and any other knows it too. Look along a line: only with a scale that
// matches do all matrices move alike. Look down a column: one learning rate is a different step in each recipe.
std::vector<NamedMatrix> told_rms(const RankInfo&, const Local& local) { return by_recipe(local.monitored); }

// One recipe, all steps, each with its check.
void run_recipe(Lesson<Local>& lesson, int number) {
  lesson.quiet_step(fmt::format("begin with {}", running[number]), start);
  for (int step = 1; step <= request.steps; ++step) {
    lesson.quiet_step(fmt::format("{}: optimizer step {}", running[number], step), optimizer_step);
    lesson.quiet_check(fmt::format("{}: weights after step {}", running[number], step), held_slices,
                       [number, step](const RankInfo& rank) { return expected_slices(rank, number, step); });
  }
  lesson.sum_up_checks(fmt::format("{}, {} steps", running[number], request.steps));
}

// ## The cost
//
// The plans of the steps, as in lesson 09, and the monitor's all-reduce. All recipes send the same in float32; in bf16
// `emerging` sends more, because it divides by the norm in float32 and rounds then, so it gathers float32.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  for (const std::string& name : running) {
    const MuonSettings settings = settings_of(name, rank);
    Plan plan = optimizer_of(settings, settings.weight_decay)->plan(layout_of(rank), rank.place);
    const Index numbers = 2 * Index(kMatrices.size());  // of the monitor
    plan.call("world", CollectiveKind::all_reduce, ElementType::float32, numbers, numbers);
    prediction.ledger.add(ledger_of(plan), request.steps);
    prediction.peak_elements = peak_elements(plan) + numbers * Index(running.size() - 1);  // of the recipes before
  }
  return prediction;
}

// ## Which line does it?
//
// One process makes the tables. *lines* gives the first recipe one line of another at a time. How far does that move
// its weights, in percent of the way that they have gone in ten steps? There are two more with `--tables`. *split*
// takes a fused matrix in one call, and sets that beside three. Its last line was published of a real model. Ours are
// not the same, and can't be: how far the update is off depends on the gradients, as the lines above it show.
//
// *norms* makes the input of Newton–Schulz smaller and smaller. What comes out should not change, but an ε that is
// added takes over. Published of Emerging-Optimizers (#229 and #230, which made ε smaller): at an input norm of 1e-10
// the output's norm was 1.67 where 45 was expected. Exercise 3 finds it again.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_12_matched_rms";
  info.title = "Matched RMS";
  info.question = "how large is a step of Muon, and which line of which implementation decides that?";
  info.bugs = {{"local_rows", "q, k and v are told apart by the rows of the TP slice: one call in place of three"},
               {"missing_factor", "the update is scaled by √max(rows, cols) without 0.2"},
               {"other_rounding", "learning rate and scale are multiplied in another order"},
               {"gains_not_decayed", "the gains of the RMSNorm are left out of the weight decay"},
               {"partial_rms", "the squares are added up over dp, and not over tp"}};
  info.also_try = {"--recipe torch", "--split-qkv heads --tp 4", "--tables"};
  info.groups = {{"world", {}}};
  info.options = {
      {"--recipe", "one of those that --tables lists, or all (default): the first five", &request.recipe},
      {"--tables",
       "also what decay, split and norms do, and the defaults of every recipe,\nall coefficients, and their surprises",
       &request.tables},
      {"--scale", "matched, largest, tall, ratio or none, in place of the recipe's", &request.scale},
      {"--coefficients", "simple, quintic, polar_express, and others of --tables, in place of\nthe recipe's",
       &request.coefficients},
      {"--split-qkv", "none, three (default) or heads: the pieces of qkv", &request.split_qkv},
      {"--steps", "optimizer steps of each recipe (default 10)", &request.steps}};

  // One process: how large steps are, and which line, split or norm changes them.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(prepare);
  const std::uint64_t seed = lesson.rank_info().seed;
  if (request.tables) lesson.say(recipe_tables(seed));
  lesson.say(
      "rms     root mean square of an update: AdamW's, and Muon's with each scale, of a matrix A × B:\n"
      "        none 1, matched 0.2√max(A,B), largest √max(A,B), tall √max(1,A/B), ratio √(A/B)\n"
      "lines   of five Muons that are in use; w, g, m: weights, gradient, momentum, at rates lr, wd, μ;\n"
      "        X: what Newton–Schulz is given; in the square term, A is X Xᵀ\n");
  lesson.say(update_rms_table(update_rms_of_shapes(seed), adamw_rms_on_noise(double(AdamWSettings().beta1))));
  lesson.say(line_table(running[0], seed));
  if (request.tables) {
    lesson.say(weight_rms_table(weight_rms(settings_of(running[0], lesson.rank_info()), seed)));
    lesson.say(split_table({8, 2, 16}, 128, seed));
    lesson.say(norm_table(seed));
  }

  // Ranks: every recipe against its own reference.
  lesson.step("TP cuts qkv, and not by heads", look_at_heads);
  for (int number = 0; number < int(running.size()); ++number) run_recipe(lesson, number);
  if (request.tables) lesson.say(monitor_table(lesson.collect(told_rms), kMatrices));
  lesson.check("monitored rms, nearly", held_rms, wanted_rms);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. A model was trained with AdamW at a learning rate of 0.001. Now its matrices go to Muon with the scale `tall`.
  //    Which learning rate gives a matrix of 256 × 64 about the same step as before, and which one of 64 × 256? Hint:
  //    the first table has both for a learning rate of 1. Answer: AdamW's RMS divided by that of the column `tall`,
  //    times 0.001: about 0.0021 for the tall one and 0.0043 for the wide one. No one number serves all shapes. With
  //    `matched`, one does: a little more than 0.001.
  // 2. `--tables`, *decay*: why do weights that are not decayed grow with the square root of the steps, and why do
  // those
  //    that are decayed stop growing? Hint: what is the sum of steps that know nothing of each other? Answer: the
  //    squares of such steps add up, so after four times the steps the RMS is twice as large. With decay each step also
  //    takes a part of the weights, lr · weight_decay, and that part grows with them until it takes as much as the step
  //    adds.
  // 3. Look at the last column of *norms* (`--tables`), in its first line and in its last one. Published were 1.67 of
  // an expected
  //    45. Where do such numbers come from, and how large was that matrix? Hint: for small singular values a step of
  //    Newton–Schulz is a multiplication by its first coefficient. Answer: dividing by 1e-10 + 1e-7 leaves a norm of
  //    about 0.001. Five steps make 3.4445⁵ = 485 of each small singular value, and six make 1670: the script in that
  //    thread takes steps=6. The larger the matrix, the smaller is each singular value and the nearer the norm to 1.67.
  //    The norm of an orthogonal matrix is the root of its shorter side, and 45² is about 2048, as in the script.
  return lesson.answer(
      "an orthogonal matrix has a root mean square of 1 / √max(rows, cols), so the scale decides: 0.2 · √max(rows, "
      "cols) makes a step as large as AdamW's for every shape. Implementations differ in ten lines; scale, "
      "coefficients and Nesterov move the weights far, others only round differently, so each needs a reference of "
      "its own.");
}
