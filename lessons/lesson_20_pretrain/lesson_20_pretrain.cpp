// # Lesson 20 · Pretraining
//
// Everything together: a small GPT learns from real text, on a grid of ranks in three directions, once with AdamW alone
// and once with Muon for its hidden matrices. Does Muon learn faster? And what happens to a run that is interrupted, and
// goes on in another layout?
//
// You need to know both optimizers and which parameters each of them steps (\ref lesson_11_zero1_adamw), why their
// learning rates can be compared (\ref lesson_12_matched_rms), and how the model is cut (\ref lesson_19_pipeline_3d).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/cluster/lesson.hpp"
#include "sim/lesson_20/dealt_state.hpp"
#include "sim/lesson_20/interruption.hpp"
#include "sim/lesson_20/pretraining.hpp"
#include "sim/lesson_20/serial_run.hpp"
#include "sim/lesson_20/sweep.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "src/train/checkpoint_file.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A text is a row of bytes, and a byte is a token. The model reads a window of the text and says at each place how
// likely every next byte is; the loss is the mean of −log of what it gave to the right one. A model that knows nothing
// gives 1/256 to each, and has a loss of log 256 = 5.55.
//
//     text      T h e · l o s s · f a l l s …
//     window      h e · l o s s                   where it begins: a random number that belongs to
//     to say        e · l o s s ·                 (seed, step, number), whoever asks for it
//
// Which windows a step sees must not depend on the grid, and neither must anything else. So ranks don't share out one
// stream of random numbers: every micro-batch has a number in its step, and a rank computes those with its own numbers.
//
// The end of the text is *held out*: nothing is trained on it, and its loss says what the model has learned that holds
// for more than the windows that it saw. A second text of another kind is *out of distribution*.

// What one rank holds.
struct Local {
  int way = -1;                          // which of the two I am in: AdamW alone, then Muon
  int step = 0;                          // steps done in it
  std::unique_ptr<GptTrainer> trainer;   // my stage: weights, momentum and moments
  Flat told;                             // the last step's norm of gradients and, on the last stage, its loss
  std::optional<Checkpoint> checkpoint;  // on rank 0, when one was gathered
};

// ## The reference
//
// One process that is never interrupted (\ref SerialRun). It takes each step once, when the ranks have taken theirs,
// and validates every few steps. That is done once, as all weights are compared: the ranks would get the same.
PretrainingRequest request;      // what was asked for
std::optional<Pretraining> run;  // the text, the model, and both ways to train it
std::vector<std::unique_ptr<SerialRun>> references;
bool on_last_stage(const Seat& seat) { return seat.place.pp == seat.grid.pp() - 1; }
Flat told_in(const Seat& seat, const StepReport& report) {
  if (on_last_stage(seat)) return {float(report.norm), report.loss};
  return {float(report.norm)};
}
std::vector<NamedMatrix> expected_weights(const Seat& seat, int way, int step) {
  return stage_slices(run->ways[way].training, seat.grid, seat.place, references[way]->weights_after(step));
}
std::vector<NamedMatrix> told(const Seat&, const Local& local) { return named(local.told); }
std::vector<NamedMatrix> held_weights(const Seat&, const Local& local) { return local.trainer->weights(); }

// ## The steps
//
// Begin a way: with the first weights, which are the same in both; or, with `--resume`, with those of a checkpoint.
void begin(Rank& rank, Local& local) {
  const int number = local.way + 1;
  local = Local();
  local.way = number;
  const TrainingWay& way = run->ways[number];
  const GptTraining& training = training_behind(*run, way, way.done);
  local.trainer = std::make_unique<GptTrainer>(training, rank.grid, rank.place);
  if (way.resume_from.empty()) return;
  if (rank.rank() == 0) local.checkpoint = read_checkpoint(way.resume_from);
  SavedState state = deal_out(rank.group("world"), training, rank.grid, rank.place, local.checkpoint);
  local.step = state.steps;
  local.trainer->optimizer().resume(local.trainer->layout(), rank.place, std::move(state));
}

// A step of training, as in the lesson before this one. New is the learning rate: it goes *up* over the first steps,
// when moments and momentum have seen little, and then *down* along half a cosine, because large steps don't settle.
void take_step(Rank& rank, Local& local, int number) {
  const GptTraining& training = training_behind(*run, run->ways[local.way], local.step);
  const Range own = own_micro_batches(training.micro_batches, rank.grid.dp(), rank.place.dp);
  const TrainingGroups groups{rank.dp(), rank.tp(), rank.pp(), rank.group("world")};
  const auto observe = [&rank](PipelineMove move, bool ends) {
    const bool forward = move.kind == PipelineMove::Kind::forward;
    rank.phase(ends ? "wait, sum, clip, optimizer step" : forward ? "forward" : "backward");
  };
  const StepReport report = local.trainer->step(groups, run->batch(training, number, own),
                                                learning_rate_factor(run->rates, number), rank.threads, observe);
  local.told = told_in(rank, report);
  ++local.step;
}
void training_step(Rank& rank, Local& local) { take_step(rank, local, local.step + 1); }

// ## Interruptions
//
// A *checkpoint* is all that a run needs to go on: weights, momentum and moments as whole tensors, and how many steps
// were taken. From that follow the next windows of the text and the next learning rate. It knows nothing of a grid.
// Rank 0 gathers it. To go on, it works out what each rank has to have, in whatever layout there is now, and sends it.
//
// In the middle of either way the run is interrupted, and goes on in other buckets: then every rank owns other elements
// than before, and needs moments that were on another rank. (With `--save` and `--resume` the grid may be another one.)
//
// Four planted bugs. `zero_second_moments` saves zeros for them, as the proof of concept's checkpoints do.
// `dropped_moments` goes on without what does not fit the new layout, and says nothing. With `some_ranks_keys` one rank
// saves less than the others. Where rank 0 looks into its own state alone, that goes unnoticed; \ref gather_checkpoint
// lets all ranks compare first, and refuses. This run then begins again. The fourth is further down.
bool save(Rank& rank, Local& local) {
  SavedState saved = local.trainer->optimizer().save();
  if (rank.bug("some_ranks_keys") && rank.rank() == rank.grid.size() - 1) saved.kept.pop_back();
  rank.phase("checkpoint");
  const GptTraining& training = training_behind(*run, run->ways[local.way], local.step - 1);
  try {
    local.checkpoint = gather_training(rank.group("world"), training, rank.grid, rank.place, saved);
  } catch (const RunError& error) {  // the same on every rank
    if (rank.rank() == 0) print_error_line(error.what());
    return false;
  }
  if (local.checkpoint && rank.bug("zero_second_moments")) clear_state(*local.checkpoint, "second moments");
  return true;
}
// The trainer is made anew, as in a program that has just been started, and given what the checkpoint has.
void go_on_elsewhere(Rank& rank, Local& local, bool saved) {
  const GptTraining& training = run->ways[local.way].rearranged;
  local.trainer = std::make_unique<GptTrainer>(training, rank.grid, rank.place);
  if (!saved) return;
  SavedState state = deal_out(rank.group("world"), training, rank.grid, rank.place, local.checkpoint);
  if (rank.bug("dropped_moments")) clear_kept(state);
  local.trainer->optimizer().resume(local.trainer->layout(), rank.place, std::move(state));
  local.checkpoint.reset();
}
void interrupt(Rank& rank, Local& local) {
  const bool saved = save(rank, local);
  go_on_elsewhere(rank, local, saved);
}

// The count of steps belongs to the state: AdamW corrects its moments by it. A counter in bf16 has 8 bits, and stops at
// 256, because 257 is rounded back to it. This run is too short to see that. So, when it is over, one more checkpoint
// is taken, its count is put ahead, as after a longer run, and one more step is taken from there, by the reference too.
//
// The planted bug `bf16_steps` counts in bf16.
constexpr int kPutAhead = 300;
void step_much_later(Rank& rank, Local& local) {
  const bool saved = save(rank, local);
  if (local.checkpoint)
    local.checkpoint->steps =
        rank.bug("bf16_steps") ? counted_in_bf16(local.step + kPutAhead) : local.step + kPutAhead;
  go_on_elsewhere(rank, local, saved);
  take_step(rank, local, run->steps);
}

// With `--save`, a file every few steps: rank 0 writes it beside its place, and renames it when it is whole.
bool saves_behind(int step) {
  return !request.save.empty() && (step == run->steps || (request.save_every > 0 && step % request.save_every == 0));
}
void save_to_file(Rank& rank, Local& local) {
  if (!save(rank, local) || !local.checkpoint) return;
  const TrainingWay& way = run->ways[local.way];
  local.checkpoint->notes = run->notes(way);
  write_checkpoint(checkpoint_path(request.save + "/" + way.word, local.step), std::move(*local.checkpoint));
  local.checkpoint.reset();
}

// ## The cost
//
// Sums over plans: of the steps, in either layout, and of the checkpoints, which go over the group of all ranks.
Prediction predict(const Seat& seat) {
  Prediction prediction;
  for (const TrainingWay& way : run->ways) {
    const auto add = [&](const Plan& plan, int times) { prediction.ledger.add(ledger_of(plan), times); };
    const auto at = [&](int steps) -> const GptTraining& { return training_behind(*run, way, steps); };
    const int before = std::max(0, run->pause - way.done), after = run->steps - way.done - before;
    add(training_plan(way.training, seat.grid, seat.place), before);
    add(training_plan(way.rearranged, seat.grid, seat.place), after + 1);  // and one much later
    for (int step = way.done + 1; step <= run->steps; ++step)
      if (saves_behind(step)) add(gather_training_plan(at(step - 1), seat.grid, seat.place), 1);
    if (before > 0) add(gather_training_plan(way.training, seat.grid, seat.place), 1);
    add(gather_training_plan(way.rearranged, seat.grid, seat.place), 1);
    if (!way.resume_from.empty()) add(deal_out_plan(at(way.done), seat.grid, seat.place), 1);
    add(deal_out_plan(way.rearranged, seat.grid, seat.place), before > 0 ? 2 : 1);
  }
  return prediction;
}

// Before any rank is started: refuse what can't work, and make what all of them share.
void prepare(const Seat& seat) {
  run.emplace(requested_pretraining(request, seat));
  references.clear();
  for (const TrainingWay& way : run->ways) {
    references.push_back(std::make_unique<SerialRun>(*run, way));
    if (!request.save.empty()) make_folder("--save", request.save + "/" + way.word);
  }
}

// One way, from its beginning to its end. What is compared after each step is the loss and the norm of all gradients,
// and, wherever the reference validates, all weights.
void train(Lesson<Local>& lesson, int way) {
  const std::string name = run->ways[way].name;
  lesson.quiet_step(fmt::format("{}: begin", name), begin);
  for (int step = run->ways[way].done + 1; step <= run->steps; ++step) {
    lesson.quiet_step(fmt::format("{}: step {}", name, step), training_step);
    lesson.quiet_check(fmt::format("{}: loss and norm in step {}", name, step), told,
                       [=](const Seat& seat) { return told_in(seat, references[way]->report(step)); });
    if (run->validates(step))
      lesson.quiet_check(fmt::format("{}: all weights after step {}", name, step), held_weights,
                         [=](const Seat& seat) { return expected_weights(seat, way, step); });
    if (saves_behind(step)) lesson.quiet_step(fmt::format("{}: save after step {}", name, step), save_to_file);
    if (step == run->pause) lesson.quiet_step(fmt::format("{}: interrupted after step {}", name, step), interrupt);
  }
  lesson.sum_up_checks(fmt::format("{}: losses, norms, weights, steps {}–{}", name, run->ways[way].done + 1, run->steps));
}
void train_much_later(Lesson<Local>& lesson, int way) {
  const std::string name = run->ways[way].name;
  lesson.quiet_step(fmt::format("{}: a step much later", name), step_much_later);
  lesson.check(fmt::format("{}: weights, {} steps later", name, kPutAhead), held_weights, [=](const Seat& seat) {
    return stage_slices(run->ways[way].training, seat.grid, seat.place, references[way]->weights_later(kPutAhead));
  });
}

// ## Results
//
// The table has the losses of the reference, whose bits the ranks have: of the batches, as a mean of some steps, of the
// held-out text, and of a text of another kind, code. Then: after how many steps does either run come to a loss, and
// how many steps of AdamW is one of Muon worth? That is the *lead*.
//
// Last, what the two have made of the same first weights: the singular values of one matrix, and what each model writes
// if always the likeliest byte is taken (*greedy*).
constexpr char kBeginning[] = "Each rank ";
constexpr int kWritten = 80;
std::vector<LossCurve> curves() {
  std::vector<LossCurve> all;
  for (const auto& reference : references) all.push_back(reference->curve());
  return all;
}
void print_results(Lesson<Local>& lesson) {
  lesson.say("\n" + loss_table(curves()));
  if (references.size() == 2) lesson.say("\n" + lead_table(curves()[0], curves()[1]));
  lesson.picture("losses", curves_svg("Losses of AdamW and of Muon", curves()));
  if (!request.csv.empty()) write_text_file(request.csv, curves_csv(curves()));
  lesson.say("\nsingular values of layer 0's queries, as shares of the largest");
  for (const auto& reference : references)
    lesson.say(fmt::format("  {:13} {}", reference->curve().name, spectrum_text(reference->model().layers[0].query, 8)));
  lesson.say(fmt::format("what goes on after \"{}\"", kBeginning));
  for (const auto& reference : references) {
    const GptConfig& model = run->ways[0].training.config;
    const std::string text = greedy_text(model, reference->model(), kBeginning, kWritten);
    lesson.say(fmt::format("  {:13} {}|", reference->curve().name, text));
  }
  lesson.say("");
}

// All of it in one layout: both ways, each with its interruption, and with a step much later.
void train_all(Lesson<Local>& lesson) {
  for (int way = 0; way < int(run->ways.size()); ++way) {
    train(lesson, way);
    train_much_later(lesson, way);
  }
}

// `--grids`: one grid after the other, and a line for each.
int train_on_grids(const LessonInfo& info, const Options& options) {
  bool all_equal = true;
  for (const Grid& grid : grids_of(request.grids)) {
    Options there = options;
    there.grid = grid;
    there.verbose = 0;
    Lesson<Local> lesson(info, there);
    lesson.require(prepare);
    train_all(lesson);
    lesson.cost(predict);
    lesson.in_parent([&] { all_equal = lesson.all_equal() && all_equal; });
    lesson.in_parent([&] { print_line(grid_line(grid, curves(), lesson.all_equal())); });
    lesson.answer("");
  }
  return all_equal ? 0 : 1;
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_20_pretrain";
  info.title = "Pretraining";
  info.question = "does Muon learn real text in fewer steps than AdamW, and does an interrupted run learn the same?";
  info.groups = {{"world", {}}};
  info.products = Products::chain;  // the same digits on all processors
  info.bugs = {{"zero_second_moments", "a checkpoint has zeros for the second moments"},
               {"dropped_moments", "in another layout, momentum and moments begin at zero again"},
               {"bf16_steps", "the count of steps is kept in bf16, and stops at 256"},
               {"some_ranks_keys", "one rank saves less of its state than the others"}};
  info.also_try = {"--text FILE --steps 500", "--grids 1x1x1,2x2x2,4x2x1,1x4x2,8x1x1 --small",
                   "--save FOLDER, and --resume FOLDER --dp 8 --tp 1 --pp 1", "--sweep"};
  info.options = request.options();
  Lesson<Local> lesson(info, Grid().dp(2).tp(2).pp(2), argc, argv);
  lesson.require(prepare);
  if (request.sweep) lesson.instead([&] { return print_sweep(request, lesson.seat()); });
  if (!request.grids.empty()) lesson.instead([&] { return train_on_grids(info, lesson.options()); });
  lesson.trains(gpt_parameters(run->ways[0].training.config));
  lesson.say(pretraining_text(*run) + "\n" + interruption_text(*run, lesson.seat()));
  train_all(lesson);
  lesson.in_parent([&] { print_results(lesson); });
  lesson.cost(predict);
  lesson.timings();

  // ## Exercises
  //
  // 1. TODO? Hint: TODO TODO TODO TODO. Answer: TODO TODO TODO TODO TODO
  // 2. TODO? Hint: TODO TODO TODO TODO. Answer: TODO TODO TODO TODO TODO
  // 3. TODO? Hint: TODO TODO TODO TODO. Answer: TODO TODO TODO TODO TODO
  return lesson.answer("TODO");
}
