// # Lesson 12 · Matched RMS
//
// Muon takes an orthogonal matrix from the weights. How large is that step? This lesson measures it beside AdamW's, and
// shows what the factor 0.2 · √max(rows, cols) is for. Then it looks at what others put in its place: five
// implementations that are in use are five recipes here, each run on ranks and held, bit for bit, to a serial program
// with its order of operations. On the way come matrices that several projections share, and a monitor.
//
// You need to know Newton–Schulz, \ref lesson_06_newton_schulz, Muon's last line, \ref lesson_08_dp_shard, and the full
// step, \ref lesson_09_full_step.

#include <fmt/format.h>

#include "sim/cluster/lesson.hpp"
#include "sim/lesson_12/coefficient_tables.hpp"
#include "sim/lesson_12/monitored.hpp"
#include "sim/lesson_12/recipe_request.hpp"
#include "sim/lesson_12/recipe_tables.hpp"
#include "sim/lesson_12/split_table.hpp"
#include "sim/lesson_12/update_rms.hpp"
#include "sim/lesson_12/weight_rms.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/zero1_adamw.hpp"
#include "src/train/reference_run.hpp"

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
// The first table shows it for random gradients, and so does the picture. Read it down: a scale matches AdamW where its
// column does not depend on the shape. (It stays below 0.2, because five steps of Newton–Schulz leave singular values
// around 1, and most of them below.)

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
RecipeRequest request;
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
// An implementation is a list of choices (\ref Recipe). Is momentum a sum of gradients or a mean? Does it look ahead
// (Nesterov)? What keeps the norm away from zero, and which coefficients come then? What is the scale, and in how many
// multiplications, each of which rounds? The options put something else in place of one choice: `--scale`,
// `--coefficients`, `--split-qkv`.
MuonSettings settings_of(const std::string& name, const Seat& seat) {
  return request.settings(name, seat, kAttention, kLayer[2].shape.rows);
}

// Muon for the matrices and AdamW for the gains, with the same learning rate. Weight decay is for all of them: gains
// that nothing holds back grow like any other weight, as the second table shows, and whatever passes through the norm
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
Layout layout_of(const Seat& seat) { return plan_layout(kLayer, seat.grid); }

// ## The reference
//
// For each recipe one process with whole matrices and plain loops (\ref recipe_step), which reads the same list of
// choices. Golden files in the tests, made with PyTorch, say that the choices are those of the implementations.
std::vector<std::unique_ptr<ReferenceRun>> references;  // [recipe]
std::vector<Matrix> expected_rms;                       // [recipe] what a monitor should say of the last step

// What a rank should hold after a step, its TP slices of the whole matrices, and what it does hold.
std::vector<NamedMatrix> expected_slices(const Seat& seat, int recipe_number, int step) {
  return references[recipe_number]->slices_after(step, seat.grid, seat.place);
}
std::vector<NamedMatrix> held_slices(const Seat& seat, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), seat.place.tp);
}

// The root mean squares of the reference's last step, from its weights before and after it.
Matrix rms_of_last_step(ReferenceRun& run, const Seat& seat, const MuonSettings& settings) {
  const int dp = seat.grid.dp(), last = request.steps;
  const std::vector<NamedMatrix> before = last > 1 ? run.after(last - 1, dp) : data->first_weights();
  return expected_row(kMatrices, before, run.after(last, dp), 1 - settings.lr * settings.weight_decay);
}

// Before any rank is started: refuse what can't work, and let the references run, so that every rank knows what a
// monitor should say.
void prepare(const Seat& seat) {
  request.require_sensible(seat);
  layout_of(seat);
  running = request.running();
  data = std::make_unique<RandomTraining>(kLayer, request.steps, seat.seed);
  for (const std::string& name : running) {
    const MuonSettings settings = settings_of(name, seat);
    references.push_back(std::make_unique<ReferenceRun>(*data, optimizer_of(settings, settings.weight_decay)));
    expected_rms.push_back(rms_of_last_step(*references.back(), seat, settings));
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
  if (rank.bug("missing_factor") && settings.scale == Scale::matched_rms) settings.scale = Scale::largest;
  if (rank.bug("other_rounding")) settings.scaling = settings.scaling == Scaling::once ? Scaling::twice : Scaling::once;
  const float decay_of_gains = rank.bug("gains_not_decayed") ? 0 : settings.weight_decay;

  local.optimizer = optimizer_of(settings, decay_of_gains);
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, *data, rank.place.tp));
}

// ### Where a fused matrix is split
//
// In the step of lesson 09, Newton–Schulz comes after both gathers. By then the matrix is whole, and its pieces are the
// same rows on every rank, wherever TP and DP have cut (\ref full_step). Only the scale has to know which piece an
// element belongs to (\ref by_pieces).
//
// ### A monitor
//
// The root mean squares (RMS) of weights and updates show early when training goes wrong. No rank knows them, because
// each has a part of each matrix. But each can add up the squares of what it owns, and such sums can be added: one
// all-reduce per step, of two numbers per matrix (\ref RmsMonitor), in place of another gather of all matrices.
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

// Ranks add their squares in a different order from one process, so here near is enough: what is within a
// ten-thousandth counts as equal.
std::vector<NamedMatrix> held_rms(const Seat&, const Local& local) {
  return named_rows(running, near_as_equal(local.monitored, expected_rms, 1e-4));
}
std::vector<NamedMatrix> wanted_rms(const Seat&) { return named_rows(running, expected_rms); }

// What a rank has learnt is printed of rank 0, and any other knows it too. Look along a line: only with a scale that
// matches do all matrices move alike. Look down a column: one learning rate is a different step in each recipe.
std::vector<NamedMatrix> told_rms(const Seat&, const Local& local) { return named_rows(running, local.monitored); }

// One recipe, all steps, each with its check.
void run_recipe(Lesson<Local>& lesson, int number) {
  lesson.quiet_step(fmt::format("begin with {}", running[number]), start);
  for (int step = 1; step <= request.steps; ++step) {
    lesson.quiet_step(fmt::format("{}: optimizer step {}", running[number], step), optimizer_step);
    lesson.quiet_check(fmt::format("{}: weights after step {}", running[number], step), held_slices,
                       [number, step](const Seat& seat) { return expected_slices(seat, number, step); });
  }
  lesson.sum_up_checks(fmt::format("{}, {} steps", running[number], request.steps));
}

// ## The cost
//
// The plans of the steps, as in lesson 09, and the monitor's all-reduce. All recipes send the same in float32; in bf16
// `emerging` sends more, because it divides by the norm in float32 and rounds then, so it gathers float32.
Prediction predict(const Seat& seat) {
  Prediction prediction;
  for (const std::string& name : running) {
    const MuonSettings settings = settings_of(name, seat);
    Plan plan = optimizer_of(settings, settings.weight_decay)->plan(layout_of(seat), seat.place);
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
// its weights, in percent of the way that they have gone in ten steps? *split* takes a fused matrix in one call, and
// sets that beside three. Its last line was published of a real model. Ours are not the same, and can't be: how far the
// update is off depends on the gradients, as the lines above it show.
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
  info.also_try = {"--recipe torch", "--split-qkv heads --tp 4", "--more-tables"};
  info.groups = {{"world", {}}};
  info.options = request.options();

  // One process: how large steps are, and which line, split or norm changes them.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(prepare);
  lesson.trains(kLayer);
  const std::vector<UpdateRms> updates = update_rms_of_shapes(lesson.seat().seed);
  lesson.picture("rms", update_rms_picture(updates));
  lesson.say(update_rms_table(updates));
  lesson.say(weight_rms_table(weight_rms(settings_of(running[0], lesson.seat()), lesson.seat().seed)));
  lesson.say(line_table(running[0], lesson.seat().seed));
  lesson.say(split_table({8, 2, 16}, 128, lesson.seat().seed));
  lesson.say(norm_table(lesson.seat().seed));
  if (request.more_tables) lesson.say(recipe_distance_table(lesson.seat().seed));
  if (request.more_tables) lesson.say(coefficient_table(lesson.seat().seed));

  // Ranks: every recipe against its own reference.
  lesson.step("TP cuts qkv, and not by heads", look_at_heads);
  for (int number = 0; number < int(running.size()); ++number) run_recipe(lesson, number);
  lesson.say(monitor_table(lesson.collect(told_rms), kMatrices));
  lesson.check("the monitor, near the reference", held_rms, wanted_rms);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. A model was trained with AdamW at a learning rate of 0.001. Now its matrices go to Muon with the scale `tall`.
  //    Which learning rate gives a matrix of 256 × 64 about the same step as before, and which one of 64 × 256? Hint:
  //    the first table has both for a learning rate of 1. Answer: AdamW's RMS divided by that of the column `tall`,
  //    times 0.001: about 0.0021 for the tall one and 0.0043 for the wide one. No one number serves all shapes. With
  //    `matched`, one does: a little more than 0.001.
  // 2. Why do weights that are not decayed grow with the square root of the steps here, and why do those that are
  //    decayed stop growing? Hint: what is the sum of steps that know nothing of each other? Answer: the squares of
  //    such steps add up, so after four times the steps the RMS is twice as large. With decay each step also takes a
  //    part of the weights, lr · weight_decay, and that part grows with them until it takes as much as the step adds.
  // 3. Look at the last column of *norms*, in its first line and in its last one. Published were 1.67 of an expected
  //    45. Where do such numbers come from, and how large was that matrix? Hint: for small singular values a step of
  //    Newton–Schulz is a multiplication by its first coefficient. Answer: dividing by 1e-10 + 1e-7 leaves a norm of
  //    about 0.001. Five steps make 3.4445⁵ = 485 of each small singular value, and six make 1670, so it looks as if
  //    six steps were taken there. The larger the matrix, the smaller is each singular value and the nearer the norm to
  //    1.67. The norm of an orthogonal matrix is the root of its shorter side, and 45² is about 2048.
  return lesson.answer(
      "an orthogonal matrix has a root mean square of 1 / √max(rows, cols), so the scale decides: 0.2 · √max(rows, "
      "cols) makes a step as large as AdamW's for every shape. Implementations differ in ten lines; scale, "
      "coefficients and Nesterov move the weights far, others only round differently, so each needs a reference of "
      "its own.");
}
