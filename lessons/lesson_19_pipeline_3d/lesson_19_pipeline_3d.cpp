// # Lesson 19 · Pipeline, and all three directions
//
// Until now gradients were random numbers. Here they come from a model: tokens go in, a loss comes out, and what flows
// back are the gradients that Muon and AdamW step with. The model is cut in three directions at once. Data parallelism
// gives each copy of it other tokens, tensor parallelism cuts every layer, and *pipeline parallelism* gives each rank
// some of the layers. A rank then has little of anything, and the claim is a large one: all weights have the bits that
// one process would have.
//
// You need to know the grid (lesson 01), what TP cuts (lesson 05), who steps what (lesson 11), and what a posted
// message is (lesson 17).

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"
#include "src/train/gpt_training.hpp"
#include "src/train/pipeline/stage.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A *stage* is some layers that follow each other. A batch is cut into *micro-batches*, which go through the stages one
// after the other: forward, then backward. While stage 1 works on micro-batch 0, stage 0 works on micro-batch 1.
//
//     tokens → stage 0 (embedding, layers 0–1) → stage 1 (layers 2–3, norm, output) → loss
//            ←             gradients           ←                gradients           ←
//
// At the beginning the last stage has nothing to do yet, and at the end the first one waits: that is the *bubble*. All
// of it is lost time, and the more micro-batches there are, the smaller is its share. Two *schedules* share it out
// alike, and differ in what a stage has to remember:
//
// - *GPipe* goes forward with all micro-batches, and then backward with all of them.
// - *1F1B* goes backward as early as it can: one forward, one backward.
//
// What has gone forward and not yet backward has left *activations* behind, which the backward pass needs again.

// The model is a toy with one of everything: grouped-query heads, and an output layer that is the embedding once more
// (*tied*). Gradients are clipped to a norm that is shorter than theirs.
GptTraining training;               // the model, and how it is trained
std::string own_schedule = "1f1b";  // of the optimizer steps
int in_a_batch = 8;                 // micro-batches, over all DP ranks
constexpr int kSteps = 2;           // of the optimizer
GptTraining toy_training(const RankInfo& rank) {
  GptTraining toy;
  toy.config.vocabulary = 128;  // letters
  toy.config.width = 16;
  toy.config.layers = 4;
  toy.config.heads = 4;
  toy.config.kv_heads = 2;
  toy.config.hidden = 32;
  toy.config.tokens = 8;
  toy.config.tied = true;
  toy.max_norm = 0.25f;
  toy.seed = rank.seed;
  toy.muon = muon_settings(rank.precision, rank.threads, rank.products);
  return toy;
}

// A micro-batch is one short sequence of letters. Each has a number in its step, and a rank has those with its own.
constexpr std::string_view kText =
    "A stage works on one part of the batch while its neighbour works on another, and nobody sees the whole. "
    "What comes out at the end is the same as if one of them had done everything alone, only sooner. ";
MicroBatch micro_batch(int step, Index number) {
  MicroBatch batch;
  for (Index s = 0; s < training.sequences; ++s) {
    const Index window = (Index{step} * training.micro_batches + number) * training.sequences + s;
    for (Index t = 0; t < training.config.tokens; ++t) {
      const auto at = std::size_t(window * training.config.tokens + t);
      batch.inputs.push_back(kText[at % kText.size()]);
      batch.targets.push_back(kText[(at + 1) % kText.size()]);
    }
  }
  return batch;
}
MicroBatch own_tokens(const RankInfo& rank, int step, int number) {  // number `number` of this rank's own
  return micro_batch(step, own_micro_batches(training.micro_batches, rank.grid.dp(), rank.place.dp).begin + number);
}

// What one rank holds.
struct Local {
  ModelPart part;                               // my stage: its layers, and whether it is the first or the last
  PartTensors tensors;                          // my TP slices of its tensors, for forward and backward
  std::unique_ptr<TpSharers> sharers;           // the ranks that share them
  RotaryAngles angles;                          // of positions
  std::vector<PartSaved> activations;           // of each micro-batch that has gone forward and not yet backward
  RunningTreeSum sum;                           // of my micro-batches' gradients, as a balanced tree
  std::vector<Matrix> gradients;                // that sum, when all have come
  Flat losses;                                  // of my micro-batches, on the last stage
  std::string moves;                            // what I did, in order
  Index held = 0, most_held = 0;                // elements of activations, now and at most
  Layout layout;                                // who owns what of my stage
  std::unique_ptr<GroupedOptimizer> optimizer;  // Muon and AdamW, with all weights of my stage
  int step = 0;                                 // of the optimizer, done
  std::vector<NamedMatrix> both;                // gradients, in one schedule and in the other
  Flat most_in_both;                            // most_held, likewise
};

// ## The reference
//
// One process with all layers, all heads and all tokens. It takes micro-batch after micro-batch and adds up their
// gradients as a tree, because a micro-batch is a *leaf*: how many there are does not depend on the grid. Sums within a
// layer have leaves as well, a fixed number of pieces of the heads, of the hidden channels and of the vocabulary,
// whether one rank adds up all of them or several ranks a few each.
std::vector<std::vector<NamedMatrix>> weights_after;  // [step]: all tensors, whole
void train_on_one_process() {
  SerialGptTrainer trainer(training);
  weights_after = {trainer.weights()};
  for (int step = 0; step < kSteps; ++step) {
    std::vector<MicroBatch> batch;
    for (int number = 0; number < training.micro_batches; ++number) batch.push_back(micro_batch(step, number));
    trainer.step(batch, 1);  // at the whole learning rate
    weights_after.push_back(trainer.weights());
  }
}

// Before the first step, the gradients alone are compared: the sum of those of a rank's own micro-batches, of which the
// rank holds its TP slices of its stage. They are the same in both schedules.
constexpr PipelineSchedule kBoth[] = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b};
std::vector<NamedMatrix> expected_gradients(const RankInfo& rank) {
  const SerialGptTrainer untrained(training);
  const PartTensors model = untrained.tensors();
  RunningTreeSum sum;
  for (int i = 0; i < training.micro_batches / rank.grid.dp(); ++i)
    sum.add(i, serial_leaf(training.config, model, own_tokens(rank, 0, i), training.scale()).gradients);
  std::vector<Matrix> whole = sum.take();
  std::vector<NamedMatrix> named, both;
  for (std::size_t p = 0; p < whole.size(); ++p) named.push_back({untrained.weights()[p].name, std::move(whole[p])});
  for (const PipelineSchedule schedule : kBoth)
    append_of(pipeline_schedule_name(schedule), stage_slices(training, rank.grid, rank.place, named), both);
  return both;
}

// What a stage remembers, at most: so many micro-batches as the schedule says ([most_in_flight]), and so many elements
// of each as the model says ([activation_elements]). The check compares this with what was counted.
Flat expected_most(const RankInfo& rank) {
  const ModelPart part = stage_part(training.config, rank.grid.pp(), rank.place.pp);
  const Index of_each = activation_elements(training.config, part, rank.grid.tp(), training.rows());
  Flat most;
  for (const PipelineSchedule schedule : kBoth)
    most.push_back(float(
        of_each * most_in_flight(schedule, rank.grid.pp(), rank.place.pp, training.micro_batches / rank.grid.dp())));
  return most;
}

// ## Forward
//
// Activations come from the stage before. Then all TP ranks of my stage do their part of every layer together: where a
// half of a layer begins, all of them have the same input, and where it ends they add up what each of them has, by an
// all-reduce. In backward it is the other way round. These are Megatron-LM's two *conjugate operations*: one does
// nothing forward and an all-reduce backward ([Sharers::enter_backward]), the other an all-reduce forward and nothing
// backward ([Sharers::leave_forward]).
//
// What comes out is posted to the next stage, and I go on at once. On the last stage it is the loss.
PartWorker worker_of(const Local& local) { return {training.config, local.part, *local.sharers, local.angles}; }
void forward(Rank& rank, Local& local, int number, Outbox& to_next) {
  rank.phase("wait for activations");
  Matrix x;  // tokens × width
  if (!local.part.first) x = received(rank.pp(), training.rows(), training.config.width, rank.place.pp - 1);

  rank.phase(move_name({PipelineMove::Kind::forward, number}));
  PartSaved& saved = local.activations[std::size_t(number)];
  const Index before = rank.memory().live() - x.size();
  x = part_forward(worker_of(local), local.tensors, own_tokens(rank, local.step, number), std::move(x), saved);
  local.held += rank.memory().live() - x.size() - before;  // what is kept until backward
  local.most_held = std::max(local.most_held, local.held);
  local.moves += fmt::format("→{} ", number);
  if (!local.part.last) return to_next.send(std::move(x), rank.place.pp + 1);
  local.losses.push_back(tree_sum(saved.losses.data(), training.rows()));
}

// ## Backward
//
// The gradient in what I gave comes from the next stage, and the gradient in what I was given goes to the stage before.
// On the way, each tensor gets its own: the leaf of this micro-batch. Leaves are added by their numbers, as a tree.
//
// The tied embedding lies on the first stage, where tokens are looked up, and on the last, where it makes logits. Its
// gradient has two shares, and a leaf is the sum of both. So the last stage sends its share to the first, with every
// micro-batch. (Megatron-LM adds the two sums once, at the end of a step. That takes fewer messages, and gives an order
// of additions that depends on the grid.)
//
// Two planted bugs. `arrival_order` adds each micro-batch to what is there already, as `loss.backward()` in PyTorch
// does to `.grad`: right on any one grid, and other bits on the next. `later_weights` lets a stage step as soon as it
// has a gradient, as an asynchronous pipeline does: what comes next sees weights from after the step.
std::vector<Matrix> taken_apart(PartTensors tensors) {  // in the order of the stage's parameters
  std::vector<Matrix> all;
  for_each_tensor(tensors, [&](Matrix& tensor) { all.push_back(std::move(tensor)); });
  return all;
}
void add_each(std::vector<Matrix>& sums, std::vector<Matrix> more) {  // for a planted bug
  for (std::size_t i = 0; i < sums.size(); ++i) add_onto(sums[i], more[i]);
  if (sums.empty()) sums = std::move(more);
}
void step_at_once(PartTensors& tensors, const PartTensors& gradients) {  // for a planted bug
  std::vector<const Matrix*> found;
  for_each_tensor(gradients, [&](const Matrix& gradient) { found.push_back(&gradient); });
  std::size_t next = 0;
  for_each_tensor(tensors, [&](Matrix& tensor) {
    if (next == found.size()) return;  // a tied copy, whose gradient is on its way
    const Matrix& gradient = *found[next++];
    for (Index k = 0; k < tensor.size(); ++k) tensor.data()[k] -= 0.1f * gradient.data()[k];
  });
}
void backward(Rank& rank, Local& local, int number, Outbox& to_previous, std::optional<Outbox>& to_other_end) {
  PartTensors leaf = zeros_like(local.tensors);
  rank.phase("wait for gradients");
  Matrix d;  // tokens × width
  if (!local.part.last) d = received(rank.pp(), training.rows(), training.config.width, rank.place.pp + 1);
  if (to_other_end && local.part.first)
    leaf.embedding = received(rank.group("first and last stage"), leaf.embedding.rows(), leaf.embedding.cols(), 1);

  rank.phase(move_name({PipelineMove::Kind::backward, number}));
  const Index before = rank.memory().live() - d.size();
  d = part_backward(worker_of(local), local.tensors, own_tokens(rank, local.step, number), training.scale(),
                    std::move(d), local.activations[std::size_t(number)], leaf);
  local.held += rank.memory().live() - d.size() - before;  // activations are given up
  local.moves += fmt::format("←{} ", number);

  // What others wait for goes first.
  if (!local.part.first) to_previous.send(std::move(d), rank.place.pp - 1);
  if (to_other_end && local.part.last) to_other_end->send(std::exchange(leaf.output, Matrix()), 0);
  if (rank.bug("later_weights")) step_at_once(local.tensors, leaf);
  if (rank.bug("arrival_order"))
    add_each(local.gradients, taken_apart(std::move(leaf)));
  else
    local.sum.add(number, taken_apart(std::move(leaf)));
}

// A batch: all moves of a schedule, in its order. At the end the first stage has the whole gradient of the embedding,
// and sends it to the last one, which steps its copy with it.
//
// The planted bug `one_sided_tie` forgets that: the copy on the last stage gets no gradient.
void batch(Rank& rank, Local& local, PipelineSchedule schedule) {
  Outbox to_next(rank.pp()), to_previous(rank.pp());
  std::optional<Outbox> to_other_end;  // on the first and the last stage, where they are two
  if (local.part.first != local.part.last) to_other_end.emplace(rank.group("first and last stage"));
  const int each = training.micro_batches / rank.grid.dp();
  local.activations.resize(std::size_t(each));
  local.losses.clear(), local.moves.clear();
  local.held = local.most_held = 0;
  for (const PipelineMove move : pipeline_moves(schedule, rank.grid.pp(), rank.place.pp, each))
    if (move.kind == PipelineMove::Kind::forward)
      forward(rank, local, move.micro_batch, to_next);
    else
      backward(rank, local, move.micro_batch, to_previous, to_other_end);

  // What was posted has to be taken before its memory goes.
  rank.phase("last messages");
  for (Outbox* each_way : {&to_next, &to_previous}) each_way->wait();
  if (local.gradients.empty()) local.gradients = local.sum.take();
  if (!to_other_end) return;
  to_other_end->wait();
  Communicator& ends = rank.group("first and last stage");
  Matrix copy(local.tensors.output.rows(), local.tensors.output.cols());
  if (local.part.first && !rank.bug("one_sided_tie"))
    ends.send(local.gradients[0].data(), local.gradients[0].size(), 1);
  if (local.part.last && !rank.bug("one_sided_tie")) copy = received(ends, copy.rows(), copy.cols(), 0);
  if (local.part.last) local.gradients.push_back(std::move(copy));
}

// ## The steps
//
// Who holds what. The layers are dealt out to the stages, and TP cuts each tensor of them. Ranks that differ in dp
// alone hold the same.
//
// The planted bug `split_tie` takes the copy on the last stage for one more matrix, and gives it to Muon; the first
// stage gives its own to AdamW. Two optimizers then step one parameter. Megatron-LM had that where a last stage holds
// nothing but multi-token prediction, because nobody marked the copy there as an embedding (its issue 4641).
std::string stage_text(const RankInfo& rank) {
  const ModelPart part = stage_part(training.config, rank.grid.pp(), rank.place.pp);
  Index here = 0, all = 0;
  for (const Parameter& each : part_parameters(training.config, part, rank.grid.tp()))
    here += tp_shape(each, rank.grid.tp()).size();
  for (const Parameter& each : gpt_parameters(training.config)) all += each.shape.size();
  std::vector<std::string> what;
  if (part.first) what.push_back("embedding");
  what.push_back("layers " + range_text(part.layers));
  if (part.last) what.push_back(training.config.tied ? "norm, the embedding as output" : "norm, output");
  return fmt::format("{}: {} of {} parameters", fmt::join(what, ", "), number_text(here), number_text(all));
}
void take_my_stage(Rank& rank, Local& local) {
  local.part = stage_part(training.config, rank.grid.pp(), rank.place.pp);
  local.sharers = std::make_unique<TpSharers>(rank.tp(), rank.threads);
  local.angles = rotary_angles(training.config);
  std::vector<Parameter> parameters =
      route(part_parameters(training.config, local.part, rank.grid.tp()), training_groups(training));
  if (rank.bug("split_tie") && rank.place.pp > 0 && local.part.last) parameters.back().group = kHiddenMatrices;
  local.layout = plan_layout(parameters, rank.grid);
  local.optimizer = started_optimizer(training, parameters, local.layout, rank.place);
  local.tensors = stage_tensors(training, local.layout, rank.place, *local.optimizer);
  rank.say(stage_text(rank));
}

// Forward and backward, in either schedule, without a step of the optimizer. One rank of each stage prints its moves:
// → is a forward, ← a backward. Look at the numbers: the order differs, and so does what a stage has to remember.
void passes(Rank& rank, Local& local, PipelineSchedule schedule) {
  batch(rank, local, schedule);
  const std::vector<Parameter> parameters = part_parameters(training.config, local.part, rank.grid.tp());
  std::vector<NamedMatrix> named;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    named.push_back({parameters[i].name, std::move(local.gradients[i])});
  local.gradients.clear();
  append_of(pipeline_schedule_name(schedule), std::move(named), local.both);
  local.most_in_both.push_back(float(local.most_held));
  if (rank.place.dp == 0 && rank.place.tp == 0)
    rank.say(fmt::format("{}at most {} elements held", local.moves.size() < 100 ? local.moves : "",
                         number_text(local.most_held)));
}
void in_gpipe(Rank& rank, Local& local) { passes(rank, local, PipelineSchedule::gpipe); }
void in_1f1b(Rank& rank, Local& local) { passes(rank, local, PipelineSchedule::one_f_one_b); }

// A whole step of training. Gradients are added over DP ranks, and then *clipped*: if all of them together, as one
// vector, are longer than a limit, all are made shorter by one factor. Its norm is one number for the whole model, so
// every rank adds up the squares of what it owns, and all ranks exchange their sums. What several ranks hold counts
// once: TP does not cut the gains of norms, and a tied embedding lies on two stages.
//
// Muon takes its matrices as in (d) of lesson 16, but over tp as well: a TP group deals them out, slices travel to the
// rank that orthogonalizes their matrix, and come back orthogonal ([muon_owned_over_tp]).
//
// The planted bug `counted_twice` has every TP rank count all that it holds.
void training_step(Rank& rank, Local& local) {
  local.tensors = stage_tensors(training, local.layout, rank.place, *local.optimizer);
  batch(rank, local, training.schedule);

  rank.phase("gradients and their norm");
  if (local.part.last) {
    Flat loss = rank.dp().all_reduce(Flat{tree_sum(local.losses.data(), Index(local.losses.size()))});
    if (rank.place.dp == 0 && rank.place.tp == 0) rank.say(fmt::format("loss {:.4f}", loss[0] * training.scale()));
  }
  const StepContext context{local.layout, rank.place, rank.dp(), rank.tp()};
  Buckets shards = reduced_shards(context, pack_slices(local.layout, std::exchange(local.gradients, {})));
  Place counted = rank.place;
  if (rank.bug("counted_twice")) counted.tp = 0;  // as if I were the first of my TP group
  const ExactSum mine =
      squares_of_shards(local.layout, counted, shards, counted_elsewhere(training, rank.grid, rank.place.pp));
  const double norm = norm_of_all(rank.group("world"), mine);
  scale_shards(shards, clip_factor(norm, training.max_norm));

  // Each rank of a stage has its shards of the sum, so the optimizers reduce nothing.
  rank.phase("optimizer step");
  local.optimizer->step(context, shards);
  ++local.step;
  if (rank.rank() == 0) rank.say(fmt::format("norm of all gradients {:.4f}, clipped to {}", norm, training.max_norm));
}
std::vector<NamedMatrix> held_weights(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), rank.place.tp);
}
void take_steps(Lesson<Local>& lesson) {
  for (int step = 1; step <= kSteps; ++step) {
    lesson.step(fmt::format("optimizer step {}: Muon and AdamW", step), training_step);
    lesson.check(fmt::format("all weights after step {}", step), held_weights, [step](const RankInfo& rank) {
      return stage_slices(training, rank.grid, rank.place, weights_after[std::size_t(step)]);
    });
  }
}

// ## The cost
//
// Sums over plans: [stage_plan] lists each call of forward and backward, and [training_plan] those of a whole step.
// Over pp go activations and their gradients, over tp the sums of every half of a layer, over dp gradients and weights.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  const int each = training.micro_batches / rank.grid.dp();
  for (const PipelineSchedule schedule : kBoth)
    prediction.ledger.add(
        ledger_of(stage_plan(training.config, rank.grid, rank.place, schedule, each, training.rows())), 1);
  prediction.ledger.add(ledger_of(training_plan(training, rank.grid, rank.place)), kSteps);
  return prediction;
}

// Both schedules as they would be if a backward took twice as long as a forward and messages took no time.
NamedTimelines played_schedules(const Grid& grid) {
  NamedTimelines all;
  for (const PipelineSchedule schedule : kBoth)
    all.emplace_back(pipeline_schedule_name(schedule),
                     play_pipeline(schedule, grid.pp(), training.micro_batches / grid.dp(), 1, 2));
  return all;
}

// Before any rank is started: refuse what can't work, and make what all ranks share.
void prepare(const RankInfo& rank) {
  training = toy_training(rank);
  training.micro_batches = in_a_batch;
  training.schedule = parse_pipeline_schedule(own_schedule);
  require_trainable(training, rank.grid);
  train_on_one_process();
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_19_pipeline_3d";
  info.title = "Pipeline, and all three directions";
  info.question = "does a model that is cut in three directions train to the same bits as one that is whole?";
  info.groups = {{"world", {}}, {"first and last stage", {}}};
  info.bugs = {{"arrival_order", "micro-batches are added in the order in which they come, not as a tree"},
               {"later_weights", "a stage steps as soon as it has a gradient, in the middle of a batch"},
               {"one_sided_tie", "the gradient of the tied embedding reaches the first stage only"},
               {"split_tie", "AdamW steps the tied embedding on the first stage, and Muon its copy on the last"},
               {"counted_twice", "the norm of gradients counts what TP does not cut once per TP rank"}};
  info.also_try = {"--schedule gpipe", "--dp 1 --tp 1 --pp 4", "--dp 1 --tp 4"};
  info.options = {{"--schedule", "of the optimizer steps: gpipe or 1f1b", &own_schedule},
                  {"--micro-batches", "in a batch, over all DP ranks", &in_a_batch}};
  Lesson<Local> lesson(info, Grid().dp(2).tp(2).pp(2), argc, argv);
  lesson.require(prepare);

  // A line per stage: a number is the forward of that micro-batch, one behind an arrow its backward, a dot is a bubble.
  const NamedTimelines schedules = played_schedules(lesson.rank_info().grid);
  std::string drawn;
  for (const auto& [name, timeline] : schedules)
    drawn += fmt::format("{}: {}\n{}\n", name, bubble_text(timeline), timeline_text(timeline));
  lesson.say("0: the forward of micro-batch 0, ←0─ its backward, · a bubble, in which the stage waits\n");
  lesson.say(drawn);
  lesson.step("take my stage", take_my_stage);
  lesson.step("forward and backward, gpipe", in_gpipe);
  lesson.step("forward and backward, 1f1b", in_1f1b);
  lesson.check("my gradients, both schedules", &Local::both, expected_gradients);
  lesson.check("my activations at most", &Local::most_in_both, expected_most);
  take_steps(lesson);
  lesson.cost(predict);
  lesson.timings();

  // ## Exercises
  //
  // 1. How large is the bubble with `--dp 1 --tp 1 --pp 4` and 4, 8 and 16 micro-batches, and what does GPipe pay for a
  //    small one? Hint: look at the lines over the two drawings, and at the activations. Answer: (4 − 1) / m, so 75 %,
  //    37.5 % and 18.8 % of the time that a stage works. In GPipe every stage holds the activations of all m
  //    micro-batches, so to halve the bubble doubles them. In 1F1B the first stage holds 4 and the last one 1, whatever
  //    m is.
  // 2. Which of the planted bugs would a test find that only looks whether the loss falls? Hint: run them and compare
  //    the losses that they print with the right ones. Answer: none of them; the loss falls with all five.
  //    With `arrival_order` and `counted_twice` it is even the same in all the digits that are printed.
  // 3. Try `--dp 4 --tp 2 --pp 1`, `--dp 1 --tp 4 --pp 2` and `--dp 8 --tp 1 --pp 1`. Which printed numbers stay? Hint:
  //    compare the losses and the norms, digit by digit. Answer: all of them, because the bits of the weights do. What
  //    changes are the shapes that ranks hold, and what they send.
  return lesson.answer(
      "it does, to the last bit, as long as the order of every sum is the same on any grid. Gradients of micro-batches "
      "are added as one tree, those of heads or channels as another, and the norm's sum is exact. The schedule changes "
      "time and memory alone: GPipe and 1F1B have the same bubble, and 1F1B holds no more micro-batches "
      "than there are stages from its own on.");
}
