#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lessons/lesson_20_pretrain/corpus.hpp"
#include "lessons/lesson_20_pretrain/loss_curves.hpp"
#include "sim/ranks/options.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk::sim {

/// How a learning rate goes over a run: it rises in equal parts during the warm-up (Goyal et al., "Accurate, Large
/// Minibatch SGD", 2017), and then falls along half a cosine, without restarts (Loshchilov and Hutter, "SGDR", 2017),
/// to a part of its highest value.
struct WarmupCosine {
  int warmup = 0;               ///< steps in which it rises; the last of them has the whole rate. 0: none
  int steps = 1;                ///< Steps of the run.
  float final_fraction = 0.1f;  ///< The share of the highest rate that the last step has.
};

/// Refuses a schedule that no run makes sense with: UsageError for less than one of --steps, std::invalid_argument for
/// a warm-up below 0 or so long that nothing would be left to fall in, or a final fraction outside of 0 to 1.
void require_sensible(const WarmupCosine& schedule);

/// What learning rates are multiplied by in step `step`, counted from 1 (Optimizer::scale_learning_rates):
/// step / warmup up to step `warmup`, then f + (1 − f) · (1 + cos(π x)) / 2, where x goes in equal parts up to 1 in the
/// last step, and f is the final fraction. In double, with a cosine of plain sums and products, and rounded to float32
/// once, so it has the same bits on every processor. Throws std::out_of_range for a step that the run does not have,
/// and as require_sensible does.
float learning_rate_factor(const WarmupCosine& schedule, int step);

/// As many steps as there are where nobody says how many: 120, or 6 with --small. Not a number that --steps takes.
constexpr int kUsualSteps = std::numeric_limits<int>::min();

/// What is to be trained, as the options of lesson 20 say it.
struct PretrainingRequest {
  std::string text;                ///< --text: a file to train on; empty: what the program comes with
  std::string other_text;          ///< --other-text: a file to validate on that nothing was trained on; likewise
  std::string optimizer = "both";  ///< --optimizer: muon, adamw, or one after the other
  std::string schedule = "1f1b";   ///< --schedule: of the pipeline
  int steps = kUsualSteps;         ///< --steps: of each optimizer
  bool small = false;              ///< --small: a smaller model, and a handful of steps
  int micro_batches = 8;           ///< --micro-batches: in a batch, over all DP ranks
  int experts = 0;                 ///< --experts: in a layer, of which a router chooses two per token; 0: none
  int ep = 1;                      ///< --ep: how many DP ranks share the experts
  float lr = 0.02f;                ///< --lr: of Muon, at its highest
  float outer_lr = 0.04f;          ///< --outer-lr: of AdamW beside Muon, for embedding, output and vectors
  float adamw_lr = 0.007f;         ///< --adamw-lr: of AdamW alone
  std::string decay = "matrices";  ///< --decay: matrices alone, or all: gains of norms as well
  bool sweep = false;              ///< --sweep: tries learning rates
  std::string grids;               ///< --grids: "1x1x1,2x2x2", dp × tp × pp, one after the other
  std::string save;                ///< --save: a folder for checkpoints
  int save_every = 0;              ///< --save-every: steps from one to the next; 0: at the end
  std::string resume;              ///< --resume: a checkpoint, or a folder with some, to go on from
  bool leads = false;              ///< --leads: leading steps as the thread of the proof of concept counts them
  bool inside = false;             ///< --inside: the largest scores and the outputs over the training
  int seeds = 0;                   ///< --seeds: trains with as many of them on one process; 0: the lesson itself

  /// The options that set all this.
  std::vector<LessonOption> options();
};

/// One of the two trainings that are compared: the same model, each with its own optimizer.
struct ComparedTraining {
  std::string name;         ///< "AdamW"
  std::string word;         ///< "adamw": for options and folders
  GptTraining training;     ///< the model, the same in both
  GptTraining rearranged;   ///< The training in other buckets, so that ranks own other elements.
  std::string resume_from;  ///< the file of the checkpoint to go on from; empty: from the first weights
  int done = 0;             ///< steps that it has behind it
};

/// What lesson 20 trains, and on what: the same on every rank and in the reference.
struct Pretraining {
  Corpus corpus;                       ///< The text to train on; its end is held out.
  Corpus other;                        ///< another text, of which the part that is "held out" is validated on
  WarmupCosine rates;                  ///< Learning rates are multiplied by this.
  int steps = 0;                       ///< Steps of each way.
  int every = 0;                       ///< steps from one validation to the next; the last step has one in any case
  int pause = 0;                       ///< the run is interrupted behind this step; behind the last one: never
  std::vector<ComparedTraining> ways;  ///< one or both, AdamW first
  std::string save;                    ///< a folder for checkpoints, with one in it for each way; empty: none
  int save_every = 0;                  ///< steps from one to the next; the last step has one in any case
  bool inside = false;                 ///< validations measure_inside as well

  /// Micro-batch `number` of a step, counted from 1: windows of the training text.
  MicroBatch micro_batch(const GptTraining& training, int step, Index number) const;
  /// The micro-batches of a range of a batch.
  std::vector<MicroBatch> batch(const GptTraining& training, int step, Range numbers) const;
  /// Whether there is a validation behind a step.
  bool validates(int step) const { return step == steps || step % every == 0; }
  /// Whether it is interrupted: a run with experts is not.
  bool interrupted() const { return pause < steps; }
  /// Whether a checkpoint becomes a file behind a step.
  bool saves(int step) const { return !save.empty() && (step == steps || (save_every > 0 && step % save_every == 0)); }
  /// Where --save puts a way's checkpoints.
  std::string folder_of(const ComparedTraining& way) const { return save + "/" + way.word; }
  /// What a checkpoint of this run says of it, and must say for a run that goes on from it: the text, the model, and
  /// all that decides bits. The grid, its buckets and the schedule of the pipeline are not among them.
  std::map<std::string, std::string> notes(const ComparedTraining& way) const;
};

/// The mean loss of up to kValidationWindows of the held-out windows of a text, evenly chosen. The model is whole.
float validation_loss(const GptConfig& config, const PartTensors& model, const Corpus& text);
/// What a model computes on the way of such a validation, into the two last members of `validation`: the largest score
/// that a query gives a key that it may see, q · k / √(width of a head), and the root mean square of the last layer's
/// output.
void measure_inside(const GptConfig& config, const PartTensors& model, const Corpus& text, Validation& validation);
/// The most windows of a validation: more of them would take longer than the training.
constexpr int kValidationWindows = 24;

/// The training of a way in the step behind so many: before the interruption, or after it in other buckets.
const GptTraining& training_behind(const Pretraining& run, const ComparedTraining& way, int steps);

/// The checkpoint that `--resume path` means for the optimizer of this word ("muon"): the file itself, or the latest
/// one of the folder, or of the optimizer's own folder in it; empty for an empty path. With `both` optimizers, a file
/// is not enough. Throws UsageError, one sentence, where there is none.
std::string resumed_file(const std::string& path, const std::string& word, bool both);

/// The request for ranks like this one. A checkpoint to go on from is read, and looked at. Throws UsageError, one
/// sentence that names the option, for what makes no sense, and for what Corpus, WarmupCosine, require_trainable,
/// read_checkpoint, require_notes and require_resumable refuse.
Pretraining requested_pretraining(const PretrainingRequest& request, const RankInfo& rank);

/// The grids of --grids, dp × tp × pp each. Throws UsageError, one sentence, for a text that is not a list of them.
std::vector<Grid> grids_of(const std::string& text);

/// How fast a way was trained, for standard error: tokens per second in a run that took so long.
std::string pace_text(const Pretraining& run, const ComparedTraining& way, double seconds);

/// What is trained and how, in a few lines for the reader; the last one says how many buckets the rank at a rank has
/// before the interruption and after it.
std::string pretraining_text(const Pretraining& run, const RankInfo& rank);

/// Trains on one process with each of nine learning rates, AdamW alone, and with each of nine pairs, Muon; each with
/// kSweptSeeds seeds, from that of the rank on. Says in a table on standard output what loss on the held-out text each
/// comes to: the mean, the smallest and the largest. Some minutes. Returns 0, the exit code.
constexpr int kSweptSeeds = 3;
int print_sweep(const PretrainingRequest& request, const RankInfo& rank);

}  // namespace muonwalk::sim
