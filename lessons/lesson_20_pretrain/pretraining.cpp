#include "lessons/lesson_20_pretrain/pretraining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/resharding.hpp"
#include "lessons/lesson_20_pretrain/shipped_text.hpp"
#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// cos(π x) for x from 0 to 1/2, by its power series, from the smallest term up: after the one with y²⁴ it is exact to
// the last bits of a double. A library's cosine may differ from one processor to the next.
double cosine_of_small_part(double x) {
  constexpr double pi = 3.141592653589793;
  const double y_squared = (pi * x) * (pi * x);
  double sum = 1;
  for (int n = 24; n > 0; n -= 2) sum = 1 - y_squared * sum / static_cast<double>(n * (n - 1));
  return sum;
}

// The same for x up to 1; exactly 0 at 1/2 and exactly −1 at 1.
double cosine_of_part(double x) {
  if (x == 0.5) return 0;
  return x < 0.5 ? cosine_of_small_part(x) : -cosine_of_small_part(1 - x);
}

GptConfig model_of(bool small) {
  GptConfig model;
  model.width = small ? 16 : 64;
  model.hidden = small ? 32 : 128;
  model.tokens = small ? 16 : 64;
  return model;
}

Corpus corpus_of(const char* option, const std::string& path, const char* name, const std::string& shipped,
                 const Corpus::Options& options) {
  if (!path.empty()) return Corpus::of_file(path, options, option);
  return Corpus(name, {shipped.begin(), shipped.end()}, options);
}

void append_window(MicroBatch& batch, const std::vector<int>& window) {
  batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
  batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
}

// Those that a validation looks at.
std::vector<MicroBatch> validation_windows(const Corpus& text) {
  std::vector<MicroBatch> windows(static_cast<std::size_t>(std::min(kValidationWindows, text.held_out_windows())));
  for (std::size_t i = 0; i < windows.size(); ++i)
    append_window(windows[i], text.held_out_window(static_cast<int>(i) * text.held_out_windows() /
                                                   static_cast<int>(windows.size())));
  return windows;
}

ComparedTraining way_of(const PretrainingRequest& request, const RankInfo& rank, bool alone) {
  ComparedTraining way;
  way.name = alone ? "AdamW" : "Muon + AdamW";
  way.word = alone ? "adamw" : "muon";
  GptTraining& training = way.training;
  training.config = model_of(request.small);
  training.config.experts = request.experts;
  training.ep = request.ep;
  training.muon = muon_settings(rank.precision, rank.threads, rank.products);
  training.muon.momentum = 0.95;
  training.muon.lr = request.lr;
  training.adamw.lr = alone ? request.adamw_lr : request.outer_lr;
  training.adamw.beta2 = 0.95f;
  training.adamw_alone = alone;
  training.decay_vectors = request.decay == "all";
  training.micro_batches = request.micro_batches;
  training.schedule = parse_pipeline_schedule(request.schedule);
  training.seed = rank.seed;
  way.rearranged = training;
  way.rearranged.bucket_capacity = request.small ? 500 : 5000;
  return way;
}

void take_up(ComparedTraining& way, const Pretraining& run, const RankInfo& rank) {
  const Checkpoint checkpoint = read_checkpoint(way.resume_from);
  require_notes(checkpoint, run.notes(way));
  require_resumable(checkpoint, way.training, rank.grid);
  if (checkpoint.steps >= run.steps)
    refuse_checkpoint(way.resume_from,
                      fmt::format("it has taken {} of {} steps, so nothing is left to do", checkpoint.steps, run.steps),
                      "take an earlier one");
  way.done = checkpoint.steps;
}

// Refuses options of which one would be passed over without a word.
void require_together(const PretrainingRequest& request) {
  const auto refuse_with = [](const char* option, const char* what,
                              std::initializer_list<std::pair<const char*, bool>> others) {
    for (const auto& [other, given] : others)
      if (given)
        throw UsageError(fmt::format("{} {}, so it does not go with {}; leave one of them out.", option, what, other));
  };
  const std::pair<const char*, bool> save = {"--save", !request.save.empty()},
                                     resume = {"--resume", !request.resume.empty()};
  if (request.sweep)
    refuse_with("--sweep", "trains with one rate after the other on one process, and writes no file",
                {{"--grids", !request.grids.empty()}, save, resume});
  if (request.seeds != 0)
    refuse_with("--seeds", "trains with one seed after the other on one process, and writes no file",
                {{"--sweep", request.sweep}, {"--grids", !request.grids.empty()}, save, resume});
  if (!request.grids.empty())
    refuse_with("--grids", "trains on one grid after the other from the first weights, and writes no file",
                {save, resume});
  if (request.experts != 0)
    refuse_with("--experts", "trains without an interruption, because checkpoints hold no experts", {save, resume});
}

int steps_of(const PretrainingRequest& request) {
  const int usual = request.small ? 6 : 120;
  const int steps = request.steps == kUsualSteps ? usual : request.steps;
  if (steps < 2 || steps > 100000)
    throw UsageError(fmt::format("--steps {} is not possible; it can be 2 to 100000.", steps));
  return steps;
}

}  // namespace

void require_sensible(const WarmupCosine& schedule) {
  if (schedule.steps < 1)
    throw UsageError(fmt::format("--steps {} makes no sense for a run; it takes at least 1", schedule.steps));
  if (schedule.warmup < 0 || schedule.warmup >= schedule.steps ||
      !(schedule.final_fraction >= 0 && schedule.final_fraction <= 1))
    throw std::invalid_argument(fmt::format(
        "a learning rate was to rise in {} of {} steps, then fall to {:g} times its highest; it can rise in 0 to {} of "
        "them, and fall to a share from 0 to 1",
        schedule.warmup, schedule.steps, schedule.final_fraction, schedule.steps - 1));
}

float learning_rate_factor(const WarmupCosine& schedule, int step) {
  require_sensible(schedule);
  if (step < 1 || step > schedule.steps)
    throw std::out_of_range(fmt::format("the run has the steps 1 to {}, and was asked for the learning rate of step {}",
                                        schedule.steps, step));
  if (step <= schedule.warmup) return static_cast<float>(static_cast<double>(step) / schedule.warmup);
  const double x = static_cast<double>(step - schedule.warmup) / (schedule.steps - schedule.warmup);
  const double last = static_cast<double>(schedule.final_fraction);
  return static_cast<float>(last + (1 - last) * (0.5 * (1 + cosine_of_part(x))));
}

std::vector<LessonOption> PretrainingRequest::options() {
  return {{"--text", "the file to train on (by default, prose of these lessons)", &text, PathUse::reads},
          {"--other-text", "a file to validate on that nothing is trained on", &other_text, PathUse::reads},
          {"--optimizer", "muon, adamw, or both, one after the other", &optimizer},
          {"--steps", "of each optimizer", &steps},
          {"--small", "a smaller model, and a handful of steps", &small},
          {"--micro-batches", "in a batch, over all DP ranks", &micro_batches},
          {"--experts", "feed-forward halves in a layer, of which a router chooses two per token", &experts},
          {"--ep", "over how many data-parallel ranks the experts are dealt out", &ep},
          {"--schedule", "of the pipeline: gpipe or 1f1b", &schedule},
          {"--lr", "Muon's learning rate, at its highest", &lr},
          {"--outer-lr", "AdamW's beside Muon: of embedding, output and vectors", &outer_lr},
          {"--adamw-lr", "AdamW's, alone", &adamw_lr},
          {"--decay", "which parameters decay: matrices, or all", &decay},
          {"--sweep", "try learning rates, on one process, and print a table", &sweep},
          {"--seeds", "train with this many seeds, on one process, and print what differs", &seeds},
          {"--leads", "leading steps as others count them, and what smoothing does to them", &leads},
          {"--inside", "the largest attention scores and the outputs over the training", &inside},
          {"--grids", "train on each of these, as in 1x1x1,2x2x2 (dp x tp x pp)", &grids},
          {"--save", "a folder for checkpoints, which is made if need be", &save, PathUse::writes_into},
          {"--save-every", "steps from one checkpoint to the next; 0 for one at the end", &save_every},
          {"--resume", "a checkpoint, or a folder of them, of a run on any grid, to go on from", &resume}};
}

MicroBatch Pretraining::micro_batch(const GptTraining& training, int step, Index number) const {
  MicroBatch batch;
  for (Index s = 0; s < training.sequences; ++s)
    append_window(batch, corpus.window(training.seed, step, static_cast<int>(number * training.sequences + s)));
  return batch;
}

std::vector<MicroBatch> Pretraining::batch(const GptTraining& training, int step, Range numbers) const {
  std::vector<MicroBatch> all;
  for (Index number = numbers.begin; number < numbers.end; ++number) all.push_back(micro_batch(training, step, number));
  return all;
}

std::map<std::string, std::string> Pretraining::notes(const ComparedTraining& way) const {
  const GptTraining& training = way.training;
  const GptConfig& model = training.config;
  const MuonSettings& muon = training.muon;
  const AdamWSettings& adamw = training.adamw;
  return {{"seed", std::to_string(training.seed)},
          {"text", corpus.digest()},
          {"model", fmt::format("width {}, {} layers, {} heads of queries, {} of keys and values, hidden {}, {} tokens",
                                model.width, model.layers, model.heads, model.kv_heads, model.hidden, model.tokens)},
          {"optimizer", way.word},
          {"rates", fmt::format("Muon {}, AdamW {}, warm-up {} of {} steps", muon.lr, adamw.lr, rates.warmup, steps)},
          {"decay", training.decay_vectors ? "all" : "matrices"},
          {"batch", fmt::format("{} micro-batches of {} tokens", training.micro_batches, training.rows())},
          {"newton_schulz", fmt::format("{}, {}", precision_name(muon.newton_schulz.precision),
                                        products_name(muon.newton_schulz.products))}};
}

const GptTraining& training_behind(const Pretraining& run, const ComparedTraining& way, int steps) {
  return steps < run.pause ? way.training : way.rearranged;
}

float validation_loss(const GptConfig& config, const PartTensors& model, const Corpus& text) {
  const std::vector<MicroBatch> windows = validation_windows(text);
  float sum = 0;
  for (const MicroBatch& window : windows) sum += serial_loss(config, model, window);
  return sum / static_cast<float>(windows.size());
}

void measure_inside(const GptConfig& config, const PartTensors& model, const Corpus& text, Validation& validation) {
  const ModelPart part = whole_model(config);
  const Sharers alone;
  const RotaryAngles angles = rotary_angles(config);
  const HeadCut cut = head_cut(config, 1, 0);
  const float scale = 1.0f / std::sqrt(static_cast<float>(cut.width));
  double squares = 0;
  Index outputs = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (const MicroBatch& window : validation_windows(text)) {
    PartSaved saved;
    part_forward({config, part, alone, angles}, model, window, Matrix(), saved);
    for (const LayerSaved& layer : saved.layers) {
      const Matrix &query = layer.attention.query, &key = layer.attention.key;
      for (Index head = 0; head < cut.heads; ++head)
        for (Index row = 0; row < query.rows(); ++row)
          for (Index seen = 0; seen <= row; ++seen) {
            float score = 0;
            for (Index c = 0; c < cut.width; ++c)
              score += query(row, head * cut.width + c) * key(seen, cut.kv_of(cut.slot_of(head)) * cut.width + c);
            largest = std::max(largest, score * scale);
          }
    }
    squares += pairwise_sum_of_squares(saved.x.data(), saved.x.size());
    outputs += saved.x.size();
  }
  validation.largest_score = largest;
  validation.output_rms = static_cast<float>(std::sqrt(squares / static_cast<double>(outputs)));
}

std::string resumed_file(const std::string& path, const std::string& word, bool both) {
  namespace fs = std::filesystem;
  if (path.empty()) return "";
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw UsageError(fmt::format(
        "--resume {} can't be read: {}; name a checkpoint, or a folder that --save has written to.", in_quotes(path),
        status.type() == fs::file_type::not_found ? "there is no such file or folder" : error.message()));
  if (!fs::is_directory(status)) {
    if (both)
      throw UsageError(
          fmt::format("--resume {} is one checkpoint; say which optimizer is to go on from it: --optimizer muon or "
                      "--optimizer adamw.",
                      in_quotes(path)));
    return path;
  }
  const std::string folder = path + "/" + word;
  const std::optional<std::string> latest = latest_checkpoint(fs::is_directory(folder, error) ? folder : path);
  if (latest) return *latest;
  const std::string other = word == "muon" ? "adamw" : "muon", others = path + "/" + other;
  if (fs::is_directory(others, error) && latest_checkpoint(others))
    throw UsageError(fmt::format("--resume {} has checkpoints of {}, and none of {}; --optimizer {} goes on from them.",
                                 in_quotes(path), other, word, other));
  throw UsageError(fmt::format("--resume {} has no checkpoint in it; --save FOLDER writes some.", in_quotes(path)));
}

Pretraining requested_pretraining(const PretrainingRequest& request, const RankInfo& rank) {
  if (request.optimizer != "both" && request.optimizer != "muon" && request.optimizer != "adamw")
    throw UsageError(fmt::format("--optimizer takes muon, adamw or both, and not {}.", in_quotes(request.optimizer)));
  if (request.decay != "all" && request.decay != "matrices")
    throw UsageError(fmt::format("--decay takes matrices or all, and not {}.", in_quotes(request.decay)));
  if (!(request.outer_lr >= 0))  // of AdamW's settings, which know it by another name
    throw UsageError(
        fmt::format("--outer-lr {:g} makes no sense for AdamW; it takes a number of at least 0, for example 0.02",
                    request.outer_lr));
  if (request.seeds < 0 || request.seeds > 100)
    throw UsageError(fmt::format("--seeds {} makes no sense; it takes a number from 1 to 100.", request.seeds));
  require_together(request);
  const int steps = steps_of(request);
  for (const Grid& grid : grids_of(request.grids.empty() ? "1x1x1" : request.grids))
    if (!request.grids.empty()) require_trainable(way_of(request, rank, true).training, grid);
  if (request.save_every < 0 || (request.save_every > 0 && request.save.empty()))
    throw UsageError(fmt::format("--save-every {} needs --save FOLDER, and a number of steps.", request.save_every));
  const Index tokens = model_of(request.small).tokens;
  Pretraining run{
      corpus_of("--text", request.text, "prose of these lessons", shipped_text(), {tokens, 0.1}),
      corpus_of("--other-text", request.other_text, "code of these lessons", shipped_code(), {tokens, 0.75}),
      {},
      steps,
      std::max(1, steps / 24),
      request.experts == 0 ? steps / 2 : steps,
      {},
      request.save,
      request.save_every,
      request.inside};
  run.rates = {std::max(1, steps / 10), steps, 0.1f};
  require_sensible(run.rates);
  for (const bool alone : {true, false})
    if (request.optimizer != (alone ? "muon" : "adamw")) {
      ComparedTraining way = way_of(request, rank, alone);
      require_sensible(way.training.muon);
      require_sensible(way.training.adamw);
      require_trainable(way.training, rank.grid);
      way.resume_from = resumed_file(request.resume, way.word, request.optimizer == "both");
      if (!way.resume_from.empty()) take_up(way, run, rank);
      run.ways.push_back(std::move(way));
    }
  return run;
}

std::vector<Grid> grids_of(const std::string& text) {
  std::vector<Grid> grids;
  for (const std::string& item : split_at(text, ',')) {
    int dp = 0, tp = 0, pp = 0, end = 0;
    const bool read = std::sscanf(item.c_str(), "%4dx%4dx%4d%n", &dp, &tp, &pp, &end) == 3;
    if (!read || end != static_cast<int>(item.size()) || dp < 1 || tp < 1 || pp < 1 || dp * tp * pp > kMostRanks)
      throw UsageError(fmt::format(
          "--grids {} has {} in it, which is not a grid of 1 to {} ranks; try --grids 1x1x1,2x2x2 (dp x tp x pp)",
          in_quotes(text), in_quotes(item), kMostRanks));
    grids.push_back(Grid().dp(dp).tp(tp).pp(pp));
  }
  return grids;
}

std::string pace_text(const Pretraining& run, const ComparedTraining& way, double seconds) {
  const double tokens =
      static_cast<double>(run.steps - way.done) * way.training.micro_batches * static_cast<double>(way.training.rows());
  return fmt::format("{}: {} tokens per second with the reference beside it, {:.1f} s in all", way.name,
                     number_text(static_cast<long long>(tokens / std::max(seconds, 1e-9))), seconds);
}

std::string pretraining_text(const Pretraining& run, const RankInfo& rank) {
  const GptTraining& training = run.ways[0].training;
  const GptConfig& model = training.config;
  Index parameters = 0;
  for (const Parameter& each : gpt_parameters(model)) parameters += each.shape.size();
  const auto words = [](const std::string& text) { return lines_text(wrap_text(text, 8)) + "\n"; };
  std::string text =
      words(fmt::format("model   {} parameters: {} layers of width {}, {} hidden channels, {} heads that share {}",
                        number_text(parameters), model.layers, model.width, model.hidden, model.heads, model.kv_heads));
  text += words(fmt::format(
      "text    {}, {} bytes, of which {} are held out; the other text is {}, {} bytes", visible_name(run.corpus.name()),
      number_text(run.corpus.training_bytes() + run.corpus.held_out_bytes()), number_text(run.corpus.held_out_bytes()),
      visible_name(run.other.name()), number_text(run.other.training_bytes() + run.other.held_out_bytes())));
  text += words(fmt::format("steps   {} of {} micro-batches of {} tokens, {} tokens in all; clipped to a norm of {}",
                            run.steps, training.micro_batches, training.rows(),
                            number_text(static_cast<long long>(run.steps) * training.micro_batches * training.rows()),
                            training.max_norm));
  std::string rates;
  for (const ComparedTraining& way : run.ways)
    rates += way.training.adamw_alone
                 ? fmt::format("AdamW {}; ", way.training.adamw.lr)
                 : fmt::format("Muon {}, AdamW beside it {}; ", way.training.muon.lr, way.training.adamw.lr);
  text +=
      words(fmt::format("rates   {}up in {}, then down to {} of that{}", rates, count_text(run.rates.warmup, "step"),
                        run.rates.final_fraction, training.decay_vectors ? "; all parameters decay" : ""));
  const auto buckets = [&](const GptTraining& in_layout) {
    const Layout layout = stage_layout(in_layout, rank.grid, rank.place.pp);
    return count_text(std::int64_t(layout.all_buckets().size()), "bucket");
  };
  if (!run.interrupted())
    return text + fmt::format("experts {} in each layer, {} for a token; {} on each rank", model.experts, model.chosen,
                              model.experts / training.ep);
  return text + fmt::format("pause   after step {}, at a checkpoint, to another layout: {} on rank {}, then {}",
                            run.pause, buckets(training), rank.place.rank, buckets(run.ways[0].rearranged));
}

}  // namespace muonwalk::sim
