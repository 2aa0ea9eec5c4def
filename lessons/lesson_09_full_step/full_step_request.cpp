#include "lessons/lesson_09_full_step/full_step_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/layout/small_layer.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk::sim {

std::unique_ptr<Training> requested_training(const TrainingRequest& request, int tp, std::uint64_t seed) {
  const TrainingFileNames& files = request.files;
  if (request.steps < 1 || request.steps > 1000)
    throw UsageError(fmt::format("--steps {} makes no sense; it takes a whole number from 1 to 1000", request.steps));
  if (!request.model.empty() && (request.small || request.toy || !files.params.empty()))
    throw UsageError(fmt::format("--model {} has matrices of its own; leave out {}", as_typed(request.model),
                                 request.small ? "--small"
                                 : request.toy ? "--toy"
                                               : "--params"));
  if (request.toy && (request.small || !files.params.empty()))
    throw UsageError(
        fmt::format("--toy has matrices of its own; leave out {}", request.small ? "--small" : "--params"));
  if (!request.model.empty() && !request.plan)
    throw UsageError(fmt::format("--model {} is too large to run here; add --plan, to see what its ranks would do",
                                 as_typed(request.model)));
  if (!files.params.empty()) return std::make_unique<FileTraining>(files, tp);
  if (!files.grads.empty() || !files.out.empty() || !files.frozen.empty() || !files.split.empty() ||
      !files.momentum_in.empty() || !files.momentum_out.empty())
    throw UsageError(
        "--grads, --out, --frozen, --split and --momentum-… go with --params, which was not given; add "
        "--params FILE.safetensors");
  return std::make_unique<RandomTraining>(!request.model.empty() ? model_parameters(request.model)
                                          : request.small        ? small_parameters()
                                          : request.toy          ? small_layer()
                                                                 : proof_of_concept_parameters(),
                                          request.steps, seed);
}

std::vector<LessonOption> FullStepRequest::options() {
  return {
      {"--plan", "print what a rank of each kind does in a step, and start none", &training.plan},
      {"--model", "with --plan: the matrices of a published model,\nfor example llama-3-70b", &training.model},
      {"--steps", "optimizer steps on random numbers (default 10)", &training.steps},
      {"--small", "matrices of an eighth of the size, for a quick look", &training.small},
      {"--toy", "the four matrices of lessons 03 to 08, whose values --record keeps", &training.toy},
      {"--recipe",
       "a published class whose step is taken, with its own defaults, for example\ntorch or normuon; lesson 12 "
       "--tables lists them (default: the proof of concept's)",
       &recipe},
      {"--lr", "learning rate (default 0.1, or the recipe's)", &asked.lr},
      {"--momentum", "momentum (default 0.9, or the recipe's)", &asked.momentum},
      {"--weight-decay", "decoupled weight decay (default 0.1, or the recipe's)", &asked.weight_decay},
      {"--rms", "root mean square that updates are brought to (default 0.2)", &rms},
      {"--ns-steps", "Newton–Schulz steps (default 5)", &asked.steps},
      {"--nesterov", "Nesterov's momentum, where a recipe has plain momentum", &nesterov},
      {"--no-nesterov", "plain momentum", &no_nesterov},
      {"--beta2", "of normuon and nanochat: how long the second moment remembers", &asked.beta2},
      {"--cautious", "of dion and normuon: weights decay where the update has their sign", &asked.cautious},
      {"--adjust-lr", "how a recipe's class scales updates by their shape, in its own word", &asked.scale},
      {"--adamw-lr", "learning rate of AdamW, which steps what is not a hidden matrix\n(default 0.001)", &adamw.lr},
      {"--adamw-decay", "its weight decay, for matrices alone (default 0.1)", &adamw.weight_decay},
      {"--adamw-beta1", "its first beta (default 0.9)", &adamw.beta1},
      {"--adamw-beta2", "its second beta (default 0.999)", &adamw.beta2},
      {"--adamw-epsilon", "its epsilon (default 1e-08)", &adamw.epsilon},
      {"--adamw-for", "a matrix, or a pattern of names, that AdamW steps as well", &adamw_for},
      {"--bucket-capacity", "elements at which a bucket is closed (default 0: one bucket)", &bucket_capacity},
      {"--alignment", "elements to whose multiples parameters are padded (default 1)", &alignment},
      {"--ownership", "buckets (default), buffer or matrices: of what each rank owns a range", &ownership},
      {"--params", "your weights, a safetensors file", &training.files.params, PathUse::reads},
      {"--grads", "your gradients, one safetensors file per step", &training.files.grads, PathUse::reads},
      {"--out", "the safetensors file that the new weights are written to", &training.files.out, PathUse::writes},
      {"--frozen", "a tensor of yours, or a pattern of names, that is not trained", &training.files.frozen},
      {"--split",
       "PATTERN=HOW: tensors that matrices share, each orthogonalized by itself;\nHOW is "
       "qkv:HEADS:KV_HEADS, qkv-heads:HEADS:KV_HEADS, megatron-qkv:…,\nmegatron-qkv-heads:…, heads:HEADS "
       "or gate-up",
       &training.files.split},
      {"--momentum-in", "the momentum to begin with, a safetensors file", &training.files.momentum_in, PathUse::reads},
      {"--momentum-out", "the safetensors file for what the momentum becomes", &training.files.momentum_out,
       PathUse::writes}};
}

void FullStepRequest::settle(const RankInfo& rank) {
  if (nesterov && no_nesterov) throw UsageError("--nesterov and --no-nesterov contradict each other; leave one out");
  RecipeArguments arguments = asked;
  if (nesterov || no_nesterov) arguments.nesterov = nesterov;
  if (recipe.empty()) {
    if (asked.beta2 || asked.cautious || !asked.scale.empty())
      throw UsageError(fmt::format("{} goes with --recipe, which was not given; add for example --recipe normuon",
                                   asked.beta2      ? "--beta2"
                                   : asked.cautious ? "--cautious"
                                                    : "--adjust-lr"));
    muon = MuonSettings();
    muon.lr = static_cast<float>(asked.lr.value_or(muon.lr));
    muon.momentum = asked.momentum.value_or(muon.momentum);
    muon.weight_decay = static_cast<float>(asked.weight_decay.value_or(muon.weight_decay));
    muon.rms = static_cast<float>(rms.value_or(muon.rms));
    muon.newton_schulz.steps = asked.steps.value_or(muon.newton_schulz.steps);
    muon.nesterov = arguments.nesterov.value_or(muon.nesterov);
  } else {
    if (rms)
      throw UsageError(fmt::format("--rms has no place in --recipe {}, whose scale is fixed; leave it out", recipe));
    if (asked.steps && (*asked.steps < 0 || *asked.steps > 100))
      muon.newton_schulz.steps = *asked.steps;  // which require_sensible refuses, whatever the recipe
    else
      muon = called(recipe_named(recipe), arguments);
  }
  require_sensible(muon);
  require_sensible(adamw);
  const AdamWSettings usual;
  if (!own_files() && (adamw.lr != usual.lr || adamw.weight_decay != usual.weight_decay || adamw.beta1 != usual.beta1 ||
                       adamw.beta2 != usual.beta2 || adamw.epsilon != usual.epsilon || !adamw_for.empty()))
    throw UsageError(
        "options that begin with --adamw go with --params, which was not given: without files of yours, all "
        "parameters are hidden matrices; add --params FILE.safetensors");
  muon.newton_schulz.precision = rank.precision;
  muon.newton_schulz.products = rank.products;
}

std::unique_ptr<Training> FullStepRequest::data(const RankInfo& rank) const {
  std::unique_ptr<Training> data = requested_training(training, rank.grid.tp(), rank.seed);
  if (const auto* files = dynamic_cast<const FileTraining*>(data.get())) {
    std::vector<std::string> hidden;
    for (const Parameter& parameter : route(files->parameters(), groups()))
      if (parameter.group == kHiddenMatrices) hidden.push_back(parameter.name);
    files->require_kept(hidden, muon.second_moment);
  }
  return data;
}

std::vector<ParameterGroup> FullStepRequest::groups() const {
  std::vector<std::string> outer_layers = usual_outer_layers();
  outer_layers.insert(outer_layers.end(), adamw_for.begin(), adamw_for.end());
  return usual_groups(muon, adamw, outer_layers);
}

std::unique_ptr<GroupedOptimizer> FullStepRequest::optimizer(const std::vector<Parameter>& parameters) const {
  for (const std::string& name : adamw_for)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [claim = Claim{2, {name}, {}}](const Parameter& parameter) { return claim.holds(parameter); }))
      throw UsageError(
          fmt::format("--adamw-for {} names no matrix of {}", as_typed(name), in_quotes(training.files.params)));
  return std::make_unique<GroupedOptimizer>(groups(), route(parameters, groups()));
}

std::string FullStepRequest::recipe_text() const {
  if (recipe.empty()) return "";
  const Recipe& known = recipe_named(recipe);
  std::string text;
  for (const std::string& line : paragraph(
           fmt::format("recipe  {}: {} ({}); lr {:g}, momentum {:g}, weight decay {:g}, Nesterov {}, {} of {}", recipe,
                       known.whose, known.source, muon.lr, muon.momentum, muon.weight_decay,
                       muon.nesterov ? "on" : "off", count_text(muon.newton_schulz.steps, "step"), known.coefficients),
           0, 8))
    text += line + "\n";
  return text;
}

std::string FullStepRequest::groups_text(const std::vector<Parameter>& parameters) const {
  const std::vector<ParameterGroup> all = groups();
  std::vector<std::vector<std::string>> names(all.size());
  for (const Parameter& parameter : route(parameters, all)) names[parameter.group].push_back(parameter.name);
  std::string text;
  for (std::size_t g = 0; g < all.size(); ++g)
    if (!names[g].empty())
      for (const std::string& line : paragraph(
               fmt::format("{} steps the {}: {}", all[g].make()->name(), all[g].name, visible_names(names[g])), 0, 2))
        text += line + "\n";
  return text;
}

Layout FullStepRequest::layout(const std::vector<Parameter>& parameters, const Grid& grid, int stage) const {
  const Range of_stage = stage_parameters(static_cast<int>(parameters.size()), grid.pp(), stage);
  if (of_stage.empty())
    throw UsageError(fmt::format("--pp {} asks for more stages than there are parameters; try --pp {}", grid.pp(),
                                 parameters.size()));
  LayoutOptions options;
  options.bucket_capacity = bucket_capacity;
  options.parameter_alignment = alignment;
  options.ownership = parse_ownership(ownership);
  return plan_layout(route({parameters.begin() + of_stage.begin, parameters.begin() + of_stage.end}, groups()), grid,
                     options);
}

std::vector<Layout> FullStepRequest::layouts(const std::vector<Parameter>& parameters, const Grid& grid) const {
  std::vector<Layout> stages;
  for (int stage = 0; stage < grid.pp(); ++stage) stages.push_back(layout(parameters, grid, stage));
  return stages;
}

FullStepRequest FullStepRequest::with_other_buckets() const {
  constexpr int kCapacity = 50000, kSmallCapacity = kCapacity / 64;  // an eighth of the rows, an eighth of the columns
  FullStepRequest other = *this;
  other.bucket_capacity = bucket_capacity > 0 ? 0 : training.small ? kSmallCapacity : kCapacity;
  return other;
}

std::string FullStepRequest::buckets_text() const {
  if (bucket_capacity == 0) return "one bucket";
  return fmt::format("buckets of {} {}", number_text(bucket_capacity), bucket_capacity == 1 ? "element" : "elements");
}

}  // namespace muonwalk::sim
