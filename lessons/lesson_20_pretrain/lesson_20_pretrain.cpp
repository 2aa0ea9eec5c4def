// # Lesson 20 · Pretraining
//
// Everything together: a small GPT learns from real text, on a grid of ranks in three directions, once with AdamW alone
// and once with Muon for its hidden matrices. Does Muon learn faster? And what happens to a run that is interrupted,
// and goes on in another layout?
//
// You need to know both optimizers and which parameters each of them steps (lesson 11), why their learning rates can be
// compared (lesson 12), and how the model is cut (lesson 19).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/loss_curves.hpp"
#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "lessons/lesson_20_pretrain/resharding.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/progress_line.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/numerics/newton_schulz.hpp"

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
// One process that is never interrupted ([SerialGptTrainer]). It takes each step once, when the ranks have taken
// theirs, and validates every few steps. That is done once, as all weights are compared: the ranks would get the same.
class SerialRun {
 public:
  SerialRun(const Pretraining& run, const ComparedTraining& way)
      : run_(run), way_(way), trainer_(way.training), curve_{way.name, {}, {}}, progress_(way.name, run.steps) {}

  // What a step told, counted from 1.
  const StepReport& report(int step) {
    train_up_to(step);
    return reports_.at(step - 1);
  }
  const std::vector<NamedMatrix>& weights_after(int step) {
    train_up_to(step);
    if (int(reports_.size()) != step || before_later_)
      throw std::logic_error(fmt::format("the weights after step {} are gone", step));
    return trainer_.weights();
  }
  // After one step more than the run has, with the batch and the rate of its last one, as if `skipped` other steps had
  // been counted before it.
  const std::vector<NamedMatrix>& weights_later(int skipped) {
    train_up_to(run_.steps);
    if (!before_later_) {
      before_later_ = trainer_.tensors();
      trainer_.skip_steps(skipped);
      take_step(run_.steps);
    }
    return trainer_.weights();
  }
  const LossCurve& curve() const { return curve_; }  // the losses so far
  const GptConfig& config() const { return way_.training.config; }
  PartTensors model() const { return before_later_ ? *before_later_ : trainer_.tensors(); }  // of the run itself

 private:
  StepReport take_step(int step) {
    const GptTraining& training = way_.training;
    return trainer_.step(run_.batch(training, step, {0, training.micro_batches}),  // all of it
                         learning_rate_factor(run_.rates, step));
  }
  void train_up_to(int step) {
    if (curve_.validations.empty()) validate();  // before the first step
    while (int(reports_.size()) < step) {
      const int next = int(reports_.size()) + 1;
      reports_.push_back(take_step(next));
      curve_.training.push_back(reports_.back().loss);
      if (run_.validates(next)) validate();
      progress_.at(next);
    }
  }
  void validate() {
    const PartTensors model = trainer_.tensors();
    curve_.validations.push_back({int(reports_.size()), validation_loss(config(), model, run_.corpus),
                                  validation_loss(config(), model, run_.other)});
    if (run_.inside) measure_inside(config(), model, run_.corpus, curve_.validations.back());
  }

  const Pretraining& run_;
  const ComparedTraining& way_;
  SerialGptTrainer trainer_;
  std::vector<StepReport> reports_;
  std::optional<PartTensors> before_later_;  // the model, when the step that comes later was taken
  LossCurve curve_;
  ProgressLine progress_;  // on a terminal
};

PretrainingRequest request;                          // what was asked for
std::optional<Pretraining> run;                      // the text, the model, and both ways to train it
std::vector<std::unique_ptr<SerialRun>> references;  // one for each way
Flat told_in(const RankInfo& rank, const StepReport& report) {
  if (rank.place.pp < rank.grid.pp() - 1) return {float(report.norm)};  // the loss is known on the last stage alone
  return {float(report.norm), report.loss};
}
std::vector<NamedMatrix> expected_weights(const RankInfo& rank, int way, int step) {
  return stage_slices(run->ways[way].training, rank.grid, rank.place, references[way]->weights_after(step));
}
std::vector<NamedMatrix> told(const RankInfo&, const Local& local) { return named(local.told); }
std::vector<NamedMatrix> held_weights(const RankInfo&, const Local& local) { return local.trainer->weights(); }

// ## The steps
//
// Begin a way: with the first weights, which are the same in both; or, with `--resume`, with those of a checkpoint.
// Each rank then gets from rank 0 what its own stage, TP slice and shards need. The optimizer goes on as if it had
// never stopped.
void clear_kept(SavedState& state) {  // for a planted bug, see below
  for (SavedBuckets& kept : state.kept)
    for (std::vector<Flat>& buffer : kept.buckets)
      for (Flat& bucket : buffer) std::fill(bucket.begin(), bucket.end(), 0.0f);
}
void resume(Rank& rank, Local& local, const GptTraining& training) {
  SavedState state = deal_out(rank.group("world"), training, rank.grid, rank.place, local.checkpoint);
  if (rank.bug("dropped_moments")) clear_kept(state);
  local.step = state.steps;  // so I know which windows come next
  local.trainer->optimizer().resume(local.trainer->layout(), rank.place, std::move(state));
  local.checkpoint.reset();
}
void begin(Rank& rank, Local& local) {
  const int number = local.way + 1;  // after the way that I was in
  local = Local();                   // nothing is left of it
  local.way = number;
  const ComparedTraining& way = run->ways[number];
  const GptTraining& training = training_behind(*run, way, way.done);
  local.trainer = std::make_unique<GptTrainer>(training, rank.grid, rank.place);  // with the first weights
  if (way.resume_from.empty()) return;                                            // which are the right ones
  if (rank.rank() == 0) local.checkpoint = read_checkpoint(way.resume_from);
  resume(rank, local, training);
}

// ### Experts
//
// With `--experts 4` each layer has four feed-forward halves in place of one, and a *router*, a matrix with a row for
// each expert, that sends every token to the two with the largest scores (a *mixture of experts*). An expert computes
// as before, for fewer tokens. All experts together are large, so they are dealt out: with `--ep 2` (*expert
// parallelism*) two neighbouring DP ranks, an EP group, hold half of them each. Now a token may have its expert on
// another rank. So an all-to-all takes the tokens to their experts, and another one takes back what these say;
// backward, the gradients go the same ways.
//
//     dp rank        0     1     2     3
//     experts       0–1   2–3   0–1   2–3      --dp 4 --ep 2
//     EP group      [ tokens ]  [ tokens ]     0 and 1, 2 and 3
//     same experts   0 and 2, 1 and 3          their gradients are summed, their state is sharded (ZeRO-1)
//
// How many tokens an expert gets is the router's choice, and nobody knows it before. So that a message has one size, an
// expert has a *capacity* for each micro-batch, 1.25 times its equal share: a token that finds it full goes without,
// and room that is left over is sent as zeros. (Large runs add a loss by which experts get equally many tokens; here
// there is none.)
//
// Why are the bits the same with any `--ep`? An expert multiplies the tokens of each micro-batch by themselves,
// wherever they come from, so that its gradient has the same leaves as before: one for each micro-batch. The leaves
// that come from one EP group are neighbours, so they make a subtree of their own, and the rest is summed over the
// ranks that hold the same experts.
//
// The checkpoints of this lesson hold no experts, so a run with experts is not interrupted.
//
// A planted bug, `--bug mixed_up_groups`, takes the one group for the other. Both have two ranks here, so all messages
// fit, and tokens of experts 2 and 3 are answered by experts 0 and 1.
std::string ep_group() { return fmt::format("ep {}", request.ep); }
std::string dp_over_ep_group() { return fmt::format("dp / ep {}", request.ep); }
void join_expert_groups(Rank& rank, TrainingGroups& groups) {
  groups.ep = &rank.group(rank.bug("mixed_up_groups") ? dp_over_ep_group() : ep_group());
  groups.dp_over_ep = &rank.group(dp_over_ep_group());
}
void add_expert_groups(Lesson<Local>& lesson) {  // to those that the run has
  if (request.ep == 1) return;
  for (const std::string& name : {ep_group(), dp_over_ep_group()}) lesson.set_up().groups.push_back({name, {}});
}

// ### A step
//
// A step of training: forward and backward for my micro-batches, the sum of gradients, clipping, and the step of the
// optimizer ([GptTrainer]). The lesson before this one takes them one by one.
//
// A whole matrix could be orthogonalized by all ranks of its TP group, as in lesson 09; then four of them would do the
// work of Newton–Schulz four times. Here one rank does it for the others ([muon_owned_over_tp]).
//
// New is the *schedule* of the learning rate. It goes up over the first steps, because moments and momentum have seen
// little by then and may point anywhere. Then it goes down along half a cosine, because large steps never settle. Every
// rank works out the same factor from the number of the step.
//
// Each step also makes all matrices a little smaller, which is called *weight decay*. The gains of the norms are
// spared, as they begin at 1 and would be drawn to 0; with `--decay all` they are not.
void take_step(Rank& rank, Local& local, int number) {
  const GptTraining& training = training_behind(*run, run->ways[local.way], local.step);
  const Range own = own_micro_batches(training.micro_batches, rank.grid.dp(), rank.place.dp);
  TrainingGroups groups{rank.dp(), rank.tp(), rank.pp(), rank.group("world")};
  if (training.ep > 1) join_expert_groups(rank, groups);
  const auto observe = [&rank](PipelineMove move, bool ends) {  // for the times on standard error
    const bool forward = move.kind == PipelineMove::Kind::forward;
    rank.phase(ends ? "wait, sum, clip, optimizer step" : forward ? "forward" : "backward");
  };
  const float rate = learning_rate_factor(run->rates, number);  // of the highest
  const auto batch = run->batch(training, number, own);         // my part of it
  local.told = told_in(rank, local.trainer->step(groups, batch, rate, rank.threads, observe));
  ++local.step;  // the next one sees other windows
}
void training_step(Rank& rank, Local& local) {
  rank.decide_whether_to_stop();  // after this step, because somebody has pressed Ctrl-C
  take_step(rank, local, local.step + 1);
}

// ## Interruptions
//
// A *checkpoint* is all that a run needs to go on: weights, momentum and moments as whole tensors, and how many steps
// were taken. From that follow the next windows of the text and the next learning rate. It knows nothing of a grid.
// Rank 0 gathers it. To go on, it works out what each rank has to have, in whatever layout there is now, and sends it.
//
// Two kinds of mistakes are made here. One loses something: the run goes on, its loss makes a bump or not even that,
// and nobody knows what the weights would have been. The other ties what is saved to the layout: files with the shards
// of each rank, which fit the same number of ranks and no other. Whole tensors by name avoid the second. For the first
// there is only one test, and it is this lesson's: compare with a run that was never interrupted.
//
// In the middle of either way the run is interrupted, and goes on in other buckets: then every rank owns other elements
// than before, and needs moments that were on another rank. (With `--save` and `--resume` the grid may be another one.)
//
// Four planted bugs. `zero_second_moments` saves zeros for them, as the proof of concept's checkpoints do.
// `dropped_moments` goes on without what does not fit the new layout, and says nothing. With `some_ranks_keys` one rank
// saves less than the others. Where rank 0 looks into its own state alone, that goes unnoticed; `gather_checkpoint`
// lets all ranks compare first, and refuses. This run then begins again. The fourth is further down.
void clear_state(Checkpoint& checkpoint, const std::string& kind) {
  for (SavedParameter& parameter : checkpoint.parameters)
    if (const auto found = parameter.state.find(kind); found != parameter.state.end())
      found->second = Matrix(found->second.rows(), found->second.cols());
}
bool save(Rank& rank, Local& local) {
  SavedState saved = local.trainer->optimizer().save();
  if (rank.bug("some_ranks_keys") && rank.rank() == rank.grid.size() - 1) saved.kept.pop_back();
  rank.phase("checkpoint");  // for its time
  const GptTraining& training = training_behind(*run, run->ways[local.way], local.step - 1);
  try {
    local.checkpoint = gather_training(rank.group("world"), training, rank.grid, rank.place, saved);
  } catch (const RunError& error) {
    if (!rank.bug("some_ranks_keys")) throw;  // of the bug, all ranks say the same; all else ends the run
    if (rank.rank() == 0) print_error_line(error.what());
    return false;  // nobody has a checkpoint then
  }
  if (local.checkpoint && rank.bug("zero_second_moments")) clear_state(*local.checkpoint, "second moments");
  return true;
}

// To go on, the trainer is made anew, as in a program that has just been started. Its weights are then the first ones;
// what the checkpoint has takes their place.
void go_on_elsewhere(Rank& rank, Local& local, bool saved) {
  const GptTraining& training = run->ways[local.way].rearranged;
  local.trainer = std::make_unique<GptTrainer>(training, rank.grid, rank.place);
  if (saved) resume(rank, local, training);
}
void interrupt(Rank& rank, Local& local) { go_on_elsewhere(rank, local, save(rank, local)); }

// The count of steps belongs to the state: AdamW corrects its moments by it. A counter in bf16 has 8 bits, and stops at
// 256, because 257 is rounded back to it. This run is too short to see that. So, when it is over, one more checkpoint
// is taken, its count is put ahead, as after a longer run, and one more step is taken from there, by the reference too.
//
// The planted bug `bf16_steps` counts in bf16.
constexpr int kPutAhead = 300;
int counted_in_bf16(int steps) {
  float count = 0;
  for (int i = 0; i < steps; ++i) {
    count += 1;
    round_to_bf16(&count, 1);
  }
  return int(count);
}
void step_much_later(Rank& rank, Local& local) {
  const bool saved = save(rank, local);
  const int later = local.step + kPutAhead;  // what the count would be
  if (local.checkpoint) local.checkpoint->steps = rank.bug("bf16_steps") ? counted_in_bf16(later) : later;
  go_on_elsewhere(rank, local, saved);
  take_step(rank, local, run->steps);  // once more with the windows and the rate of the last step
}

// With `--save`, some checkpoints become files. Rank 0 writes each beside its place and renames it when it is whole, so
// that a run that is killed leaves the last good one. Ctrl-C asks for one more: the run ends after the step that it is
// in, and can go on from there. With it goes all that decides bits, as notes: which text, which
// model, which rates. A run that differs in one of them is refused when it wants to go on from there.
void save_to_file(Rank& rank, Local& local) {
  if (!save(rank, local) || !local.checkpoint) return;  // rank 0 has it, and nobody else
  const ComparedTraining& way = run->ways[local.way];
  local.checkpoint->notes = run->notes(way);  // what decides bits
  const std::string path = checkpoint_path(run->folder_of(way), local.checkpoint->steps);
  write_or_fail([&] { write_checkpoint(path, std::move(*local.checkpoint)); });  // a full disk ends the run
  local.checkpoint.reset();
}

// ## The cost
//
// Sums over plans. A step over and over has the same plan each time, so a run of any length costs what its steps cost,
// to the byte: activations over pp, the sums within layers over tp, gradients and weights over dp. What goes over the
// group of all ranks are the norms, and the checkpoints (`gather_checkpoint_plan`, in resharding.hpp beside this file):
// to rank 0, and back.
Ledger checkpoints_ledger(const ComparedTraining& way, const RankInfo& rank) {
  Ledger all;
  const auto gather = [&](const GptTraining& training) {
    all.add(ledger_of(gather_training_plan(training, rank.grid, rank.place)), 1);
  };
  const auto deal = [&](const GptTraining& training) {
    all.add(ledger_of(deal_out_plan(training, rank.grid, rank.place)), 1);
  };
  if (!way.resume_from.empty()) deal(training_behind(*run, way, way.done));
  for (int step = way.done + 1; step <= run->steps; ++step) {
    const GptTraining& training = training_behind(*run, way, step - 1);
    if (run->saves(step)) gather(training);
    if (step == run->pause && run->interrupted()) gather(training), deal(way.rearranged);
  }
  if (run->interrupted()) gather(way.rearranged), deal(way.rearranged);  // for the step much later
  return all;
}
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  for (const ComparedTraining& way : run->ways) {
    const int before = std::max(0, run->pause - way.done);  // steps before the pause
    const int later = run->interrupted() ? 1 : 0;           // the one much later
    const int after = run->steps - way.done - before + later;
    const auto of = [&](const GptTraining& training) { return training_plan(training, rank.grid, rank.place); };
    prediction.ledger.add(ledger_of(of(way.training)), before);   // in the buckets from before
    prediction.ledger.add(ledger_of(of(way.rearranged)), after);  // and in the others
    prediction.ledger.add(checkpoints_ledger(way, rank), 1);
  }
  return prediction;
}

// Before any rank is started: refuse what can't work, and make what all of them share.
void prepare(const RankInfo& rank) {
  run.emplace(requested_pretraining(request, rank));  // refuses with a sentence
  references.clear();                                 // of the grid before this one, with --grids
  for (const ComparedTraining& way : run->ways) references.push_back(std::make_unique<SerialRun>(*run, way));
  if (run->save.empty()) return;
  for (const ComparedTraining& way : run->ways) {
    make_folder("--save", run->folder_of(way));
    require_writable(checkpoint_path(run->folder_of(way), run->steps));
  }
}

// A planted bug that would change nothing is refused.
void require_bug_shows(Lesson<Local>& lesson) {
  const std::string& bug = lesson.options().bug;
  lesson.require([&](const RankInfo&) {
    if (bug == "mixed_up_groups" && request.ep == 1)
      throw UsageError("--bug mixed_up_groups needs experts on several ranks; add --experts 4 --dp 4 --tp 1 --ep 2.");
    if (!bug.empty() && bug != "mixed_up_groups" && request.experts > 0)
      throw UsageError(
          fmt::format("--bug {} spoils a checkpoint, and a run with experts takes none; leave out --experts.", bug));
  });
}

// One way, from its beginning to its end: begin, then step after step, and between two of them the interruption. The
// ranks do this, and the parent takes the same steps by itself while they work. What is compared after
// each step is the loss and the norm of all gradients, and, wherever the reference validates, all weights.
void train(Lesson<Local>& lesson, int way) {
  const std::string& name = run->ways[way].name;
  const auto from = std::chrono::steady_clock::now();  // for tokens per second
  lesson.quiet_step(fmt::format("{}: begin", name), begin);
  for (int step = run->ways[way].done + 1; step <= run->steps && !lesson.stops(); ++step) {
    lesson.quiet_step(fmt::format("{}: step {}", name, step), training_step);
    lesson.quiet_check(fmt::format("{}: norm, loss, step {}", name, step), told,
                       [=](const RankInfo& rank) { return told_in(rank, references[way]->report(step)); });
    if (run->validates(step))  // every few steps
      lesson.quiet_check(fmt::format("{}: weights, step {}", name, step), held_weights,
                         [=](const RankInfo& rank) { return expected_weights(rank, way, step); });
    if (run->saves(step) || lesson.stops())
      lesson.quiet_step(fmt::format("{}: save, step {}", name, step), save_to_file);
    if (step == run->pause && run->interrupted() && !lesson.stops())
      lesson.quiet_step(fmt::format("{}: interrupted", name), interrupt);
  }
  if (lesson.stops()) return;
  lesson.sum_up_checks(fmt::format("{}, steps {}–{}", name, run->ways[way].done + 1, run->steps));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  if (lesson.options().verbose > 0)  // times go to standard error
    lesson.in_parent([&] { print_error_line(pace_text(*run, run->ways[way], took.count())); });

  // Then the step that pretends to come much later.
  if (!run->interrupted()) return;
  lesson.quiet_step(fmt::format("{}: a step much later", name), step_much_later);
  lesson.check(
      fmt::format("{}, then step {}", name, run->steps + 1 + kPutAhead), held_weights, [=](const RankInfo& rank) {
        return stage_slices(run->ways[way].training, rank.grid, rank.place, references[way]->weights_later(kPutAhead));
      });
}
const ComparedTraining& train_all(Lesson<Local>& lesson) {  // AdamW alone first; returns the last that was trained
  int way = 0;
  for (train(lesson, way); way + 1 < int(run->ways.size()) && !lesson.stops(); train(lesson, way)) ++way;
  return run->ways[way];
}

// ## Results
//
// The table has the losses of the reference, whose bits the ranks have: of the batches, as a mean of some steps, of the
// held-out text, and of a text of another kind, code. Then: after how many steps does either run come to a loss, and
// how many steps of AdamW is one of Muon worth? That is the *lead*.
//
// The field counts leads in per cent, too: the thread of the proof of concept (Megatron-LM, pull request 1428) plots
// *leading steps*, (AdamW − Muon) / Muon. That is our lead less 1, the column *more*.
//
// Each has the learning rates that came to the lowest held-out loss of those tried for it: nine for AdamW, and nine
// pairs for Muon, which has two; each with three seeds (`--sweep`; what that printed lies beside this file, in
// sweep.txt). Look at its last two columns before you believe a digit: one seed differs from another by as much as one
// rate from the next, or by more, and by much less than Muon from AdamW. `--seeds 3` prints this spread for the whole
// run, and for the lead. And the rates were chosen by the text that the table shows.
//
// ### Smoothed curves
//
// Batches differ, so people smooth training losses before they compare them, and mostly exponentially: the new loss
// counts α, all that was before 1 − α. That thread does so with α = 0.005. Such a mean is late: where a curve falls
// evenly, it shows the loss of (1 − α) / α steps ago, 199 of them there and 19 for α = 0.05. Both curves move by as
// much, so a difference of steps stays. A ratio does not: (A + 19) / (M + 19) is nearer to 1 than A / M, most of all
// early in a run, and in a short one. And whoever compares a smoothed curve with one that is not, or two values of α,
// compares windows. `--leads` shows how far a curve moves, and what becomes of leading steps. Not to
// smooth is another trap: one lucky batch of AdamW's ends the search.
//
// ### What grows inside
//
// `--inside` prints two numbers that are watched in large runs with Muon, for both optimizers and on the held-out text:
// the largest score that a query gives a key (which the training of Kimi K2 keeps bounded: "Kimi K2: Open Agentic
// Intelligence", 2025), and the root mean square of what the last layer gives (which grew without weight decay in Liu
// et al., 2025). In so small and short a run AdamW is the one that drives both up.
//
// Last, what the two have made of the same first weights: the singular values of one matrix, and what each model writes
// if always the likeliest byte is taken (*greedy*).
std::string spectrum_text(const Matrix& matrix, int shown) {  // from the first to the last, as shares of the largest
  const std::vector<double> values = singular_values(matrix);
  std::string text;
  for (int i = 0; i < shown; ++i)
    text += fmt::format("{}{:.3f}", i == 0 ? "" : "  ", values[(values.size() - 1) * i / (shown - 1)] / values[0]);
  return text;
}
std::string greedy_text(const GptConfig& config, const PartTensors& model, const std::string& beginning, int bytes) {
  std::vector<std::int32_t> tokens;
  for (const char letter : beginning) tokens.push_back(static_cast<unsigned char>(letter));
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    const auto seen = std::min(std::ptrdiff_t(tokens.size()), std::ptrdiff_t(config.tokens));  // no more fits
    const Matrix logits = next_logits(config, model, {tokens.end() - seen, tokens.end()});
    const auto best = std::int32_t(std::max_element(logits.data(), logits.data() + logits.cols()) - logits.data());
    tokens.push_back(best);
    text += best >= ' ' && best <= '~' ? char(best) : '.';
  }
  return text;
}

std::vector<LossCurve> curves_of_all() {
  std::vector<LossCurve> all;
  for (const auto& reference : references) all.push_back(reference->curve());
  return all;
}
void print_results(Lesson<Local>& lesson) {
  const std::string beginning = "Each rank ";
  lesson.in_parent([&] {  // ranks have no reference
    const std::vector<LossCurve> curves = curves_of_all();
    lesson.say("\n" + loss_table(curves) + "\n");
    if (curves.size() == 2) {
      lesson.say("lead: the steps of AdamW over those of Muon, to a loss; more: lead − 1");
      lesson.say(lead_table(curves[0], curves[1]) + "\n");
    }
    lesson.say("singular values σ over the largest, σ₁; and how each goes on after \"Each rank \"");
    for (const auto& each : references)
      lesson.say(fmt::format("{:13} σ / σ₁ of layer 0's queries: {}", each->curve().name,
                             spectrum_text(each->model().layers.at(0).query, 8)));
    for (const auto& each : references)
      lesson.say(fmt::format("{:13} {}{}…", each->curve().name, beginning,
                             greedy_text(each->config(), each->model(), beginning, 70)));
    if (request.leads && curves.size() == 2) lesson.say("\n" + leading_steps_table(curves[0], curves[1]) + "\n");
    if (request.inside) lesson.say("\n" + inside_table(curves) + "\n");
  });
}

// With `--grids` all of this is done on one grid after the other, and prints a line for each: its losses, in which no
// digit may change from line to line, and whether all bits are those of the reference. Nothing is printed of the rest
// but the checks.
int train_on_grids(const LessonInfo& info, const Options& options) {
  bool all_equal = true;
  for (const Grid& grid : grids_of(request.grids)) {
    Options there = options;  // the same, but for two
    there.grid = grid;
    there.verbose = 0;  // checks alone are printed
    Lesson<Local> lesson(info, there);
    lesson.require(prepare);  // before any rank is started
    add_expert_groups(lesson);
    train_all(lesson);
    lesson.cost(predict);
    lesson.in_parent([&] { all_equal = lesson.all_equal() && all_equal; });
    lesson.in_parent([&] { print_line(grid_line(grid, curves_of_all(), lesson.all_equal())); });
    lesson.answer("");  // its ranks end here
  }
  return all_equal ? 0 : 1;  // the exit code
}

// With `--seeds` the references alone are trained, with one seed after the other: other first weights, other windows.
int train_with_seeds(RankInfo rank) {
  std::vector<std::vector<LossCurve>> all;  // [seed][way]
  for (int i = 0; i < request.seeds; ++i, ++rank.seed) {
    prepare(rank);
    for (const auto& reference : references) reference->report(run->steps);
    all.push_back(curves_of_all());
  }
  print_line(seeds_table(all));
  return 0;
}

// In place of the lesson: look for learning rates, train with several seeds, or go through a list of grids.
void do_instead(Lesson<Local>& lesson, const LessonInfo& info) {
  if (request.seeds > 0) lesson.instead("--seeds", [&] { return train_with_seeds(lesson.rank_info()); });
  if (request.sweep) lesson.instead("--sweep", [&] { return print_sweep(request, lesson.rank_info()); });
  if (!request.grids.empty()) lesson.instead("--grids", [&] { return train_on_grids(info, lesson.options()); });
  if (request.seeds > 0 || !request.grids.empty()) lesson.require(prepare);  // a notebook goes on, on its own grid
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_20_pretrain";
  info.title = "Pretraining";
  info.question = "does Muon learn faster than AdamW, and what does a run lose when it is interrupted?";
  info.groups = {{"world", {}}};    // all ranks: for norms and checkpoints
  info.products = Products::chain;  // the same digits on all processors
  // Four ways to lose something at an interruption, and one to lose the way to an expert.
  info.bugs = {
      {"zero_second_moments", "a checkpoint has zeros for the second moments"},
      {"dropped_moments", "in another layout, momentum and moments begin at zero again"},
      {"bf16_steps", "the count of steps is kept in bf16, and stops at 256"},
      {"some_ranks_keys", "one rank saves less of its state than the others"},
      {"mixed_up_groups", "tokens go to ranks that hold the same experts  (with --experts 4 --dp 4 --tp 1 --ep 2)"}};
  info.also_try = {"--text FILE --steps 500",         "--grids 1x1x1,8x1x1", "--leads --inside", "--seeds 3", "--sweep",
                   "--experts 4 --dp 4 --tp 1 --ep 2"};
  info.options = request.options();  // besides those of every lesson
  Lesson<Local> lesson(info, Grid().dp(2).tp(2).pp(2), argc, argv);
  require_bug_shows(lesson);
  lesson.require(prepare);
  add_expert_groups(lesson);
  do_instead(lesson, info);
  if (!request.save.empty()) lesson.stop_when_asked();

  // What is trained, on what, and for how long; then both ways, and what came of them.
  lesson.say(pretraining_text(*run, lesson.rank_info()));
  const std::string last = train_all(lesson).word;
  if (lesson.stops())
    return lesson.interrupted(
        fmt::format("saved; --optimizer {} --resume {}/{} goes on with it", last, request.save, last));
  print_results(lesson);
  lesson.cost(predict);
  lesson.timings();  // on standard error

  // ## Exercises
  //
  // 1. Somebody says: Muon needs half the steps. From the table of leads, what would you ask? Hint: compare its rows,
  //    its two halves, and the columns of the other text. Answer: to which loss, on which text, and counted how. Leads
  //    differ from row to row and from training to held-out text; there are losses that AdamW never comes to in this
  //    run; on the other text Muon is behind at first. And with another seed all of them are others (`--seeds 3`). One
  //    number for all of this would be right at one loss alone.
  // 2. Save with `--small --save FOLDER --save-every 2`, and compare the sizes of both kinds of files. Which is larger,
  //    and why? Hint: what does each optimizer keep for a weight? Answer: those of AdamW alone. AdamW keeps two moments
  //    for each weight, so with the weights that makes three numbers. Muon keeps one momentum for each weight of a
  //    hidden matrix, so two; embedding, output and vectors have three here as well.
  // 3. Go on from one of these with `--small --optimizer muon --resume FOLDER/muon/step-000002.safetensors`, once with
  //    `--dp 8 --tp 1 --pp 1`, once with `--schedule gpipe`, and once with `--lr 0.01`. Which is refused? Hint: which
  //    of them changes a bit? Answer: the last one. Grid and schedule decide who computes what, and when, so the run
  //    comes to the same weights. Another learning rate is another run; the checkpoint notes what decides bits, the
  //    text and the seed included, and refuses to go on with anything else.
  return lesson.answer(
      "on this text, with this model and so few steps, Muon is well ahead: its updates move all directions of a "
      "matrix, and the singular values show it. An interrupted run loses nothing, not one bit, in any layout, if all "
      "is saved that a step reads: weights, momentum, both moments, and the count of steps.");
}
