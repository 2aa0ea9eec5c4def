#include "sim/cost_model/training_memory.hpp"

#include <algorithm>
#include <string_view>

#include "sim/cost_model/counted_traffic.hpp"
#include "sim/cost_model/stage_filling.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kCounted[] = "counted in nanotron's source";
constexpr char kShape[] = "the model";
constexpr char kLayout[] = "the layout";
constexpr char kActivations[] = "activations";
constexpr char kGathered[] = "inputs gathered from TP ranks";
constexpr char kLogits[] = "logits";
constexpr char kWorking[] = "the layer that is worked on";

double real(Index number) { return static_cast<double>(number); }

double tokens_of(const ModelShape& model, const TrainingLayout& layout) {
  return real(model.tokens) * layout.micro_batch;
}

// One stage of a layout, and what is in flight there.
struct StageMemory {
  const ModelShape& model;
  const TrainingLayout& layout;
  const TrainingSoftware& software;
  Stage stage;
  int flight;  // micro-batches whose activations are held

  double parameters() const { return stage_parameters(model, layout, stage); }

  // How many share the optimizer's state of what this rank holds. DP ranks share all that they hold together, which
  // is the whole stage: of the same experts there are only dp / ep copies.
  double state_share() const {
    if (layout.zero == 0) return 1;
    if (layout.ep == 1) return layout.dp;
    TrainingLayout whole = layout;
    whole.ep = 1;
    return layout.dp * parameters() / stage_parameters(model, whole, stage);
  }

  // Of activations, per token and layer.
  double layer_bytes() const {
    const double width = real(model.width), hidden = real(model.hidden), tp = layout.tp;
    if (layout.recomputation == Recomputation::full) return kBf16Bytes * width / tp;
    double bytes = kWidthActivation * width + kHiddenActivation * hidden;
    constexpr double kScoreBytes = 5;  // softmax, its mask, what dropout leaves (Korthikanti et al., 2022)
    if (!software.fused_attention && layout.recomputation == Recomputation::none)
      bytes += kScoreBytes * real(model.heads * model.tokens);
    return bytes / tp;
  }

  double activations() const { return real(stage.layers) * flight * tokens_of(model, layout) * layer_bytes(); }

  // The share of the gathered inputs that is still there when the backward pass comes. Freed memory returns to the
  // allocator only when the transfer's stream has come by; a host that is slower than its GPU sees to that.
  double gathered_share() const {
    if (layout.tp == 1 || !software.keeps_gathered_inputs) return 0;
    if (layout.pp == 1 || layout.nodes == 1) return 1;
    const int node = layout.ranks() / layout.nodes;
    if (layout.tp > 2 * node) return 0;
    return std::max(0.0, 1 - 2.0 / flight);
  }

  double gathered() const {
    return real(stage.layers) * flight * tokens_of(model, layout) * kGatheredActivation * real(model.width) *
           gathered_share() * (1 - 1.0 / layout.tp);
  }

  double working() const {
    double bytes = kWorkingBytes * real(model.width);
    if (layout.recomputation == Recomputation::full) {
      TrainingLayout kept = layout;
      kept.recomputation = Recomputation::none;
      bytes += StageMemory{model, kept, software, stage, 1}.layer_bytes();
    }
    return tokens_of(model, layout) * bytes;
  }

  // Bytes per logit of one TP rank: bf16 for all in flight where they are made; fp32 copies where the loss is taken; a
  // second bf16 copy on each side where they go from one stage to another.
  double logit_bytes() const {
    constexpr double kFloatBytes = 4;
    double bytes = 0;
    if (stage.head) bytes += kBf16Bytes * flight;
    if (stage.loss) bytes += kLogitBytes - kBf16Bytes;
    if (stage.cast && !stage.loss) bytes += kFloatBytes;
    if (stage.head != stage.loss) bytes += kBf16Bytes;
    return bytes;
  }

  double logits() const { return tokens_of(model, layout) * real(model.vocabulary) / layout.tp * logit_bytes(); }

  double states() const {
    return parameters() * (kWeightBytes + kGradientBytes + software.fresh_gradient_bytes +
                           (kMasterBytes + kMomentBytes) / state_share());
  }

  // What can't be taken back.
  double firm() const { return states() + activations() + logits() + working(); }
};

Term per_parameter(const char* name, const StageMemory& memory, double bytes, double shares) {
  Term term{name,
            bytes * memory.parameters() / shares,
            shares == 1 ? "parameters · bytes" : "parameters · bytes / shares",
            {{"parameters", memory.parameters(), "", "of one rank"}, {"bytes", bytes, "B", kCounted}}};
  if (shares != 1) term.inputs.push_back({"shares", shares, "", "ZeRO-1: dp, but of experts dp / ep"});
  return term;
}

void add_states(const StageMemory& memory, std::vector<Term>& terms) {
  terms.push_back(per_parameter("weights, bf16", memory, kWeightBytes, 1));
  terms.push_back(per_parameter("gradients, fp32", memory, kGradientBytes, 1));
  if (memory.software.fresh_gradient_bytes > 0)
    terms.push_back(per_parameter("gradients as they come, bf16", memory, memory.software.fresh_gradient_bytes, 1));
  terms.push_back(per_parameter("weights, fp32", memory, kMasterBytes, memory.state_share()));
  terms.push_back(per_parameter(kTwoMoments, memory, kMomentBytes, memory.state_share()));
}

void add_activations(const StageMemory& memory, std::vector<Term>& terms) {
  const TermInput tokens{"tokens", tokens_of(memory.model, memory.layout), "", "a micro-batch"};
  const TermInput layers{"layers", real(memory.stage.layers), "", "of this stage"};
  const TermInput flight{"in flight", static_cast<double>(memory.flight), "", "1F1B: min(m, pp − stage)"};
  const TermInput tp{"tp", static_cast<double>(memory.layout.tp), "", kLayout};
  terms.push_back({kActivations,
                   memory.activations(),
                   "layers · in flight · tokens · bytes",
                   {layers, flight, tokens, {"bytes", memory.layer_bytes(), "B", kCounted}}});
  if (memory.gathered_share() > 0)
    terms.push_back({kGathered,
                     memory.gathered(),
                     "layers · in flight · share · tokens · 4 B · width · (1 − 1 / tp)",
                     {layers,
                      flight,
                      {"share", memory.gathered_share(), "", "1 − 2 / in flight in slow pipelines"},
                      tokens,
                      {"width", real(memory.model.width), "", kShape},
                      tp}});
  if (memory.logit_bytes() > 0)
    terms.push_back({kLogits,
                     memory.logits(),
                     "tokens · vocabulary / tp · bytes",
                     {tokens,
                      {"vocabulary", real(memory.model.vocabulary), "", kShape},
                      tp,
                      {"bytes", memory.logit_bytes(), "B", kCounted}}});
  terms.push_back({kWorking,
                   memory.working(),
                   "tokens · bytes · width, and one layer's activations where they are recomputed",
                   {tokens, {"bytes", kWorkingBytes, "B", kCounted}, {"width", real(memory.model.width), "", kShape}}});
}

std::vector<Term> terms_of(const StageMemory& memory) {
  std::vector<Term> terms;
  add_states(memory, terms);
  add_activations(memory, terms);
  return terms;
}

std::vector<StageMemory> stages_of(const ModelShape& model, const TrainingLayout& layout,
                                   const TrainingSoftware& software) {
  const std::vector<Stage> stages = fill_stages(model, layout.pp, software);
  std::vector<StageMemory> all;
  for (int i = 0; i < layout.pp; ++i)
    all.push_back(
        {model, layout, software, stages[static_cast<std::size_t>(i)], std::min(layout.accumulation, layout.pp - i)});
  return all;
}

}  // namespace

std::vector<Term> stage_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software,
                              int stage) {
  return terms_of(stages_of(model, layout, software).at(static_cast<std::size_t>(stage)));
}

std::vector<Term> training_bytes(const ModelShape& model, const TrainingLayout& layout,
                                 const TrainingSoftware& software) {
  const std::vector<StageMemory> stages = stages_of(model, layout, software);
  const auto by_firm = [](const StageMemory& a, const StageMemory& b) { return a.firm() < b.firm(); };
  std::vector<Term> terms = terms_of(*std::max_element(stages.begin(), stages.end(), by_firm));
  terms.erase(std::remove_if(terms.begin(), terms.end(),
                             [](const Term& term) { return std::string_view(term.name) == kGathered; }),
              terms.end());
  return terms;
}

double peak_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software) {
  double most = 0;
  for (const StageMemory& memory : stages_of(model, layout, software))
    most = std::max(most, memory.firm() + memory.gathered());
  return most;
}

double firm_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software) {
  double most = 0;
  for (const StageMemory& memory : stages_of(model, layout, software)) most = std::max(most, memory.firm());
  return most;
}

bool is_transient(const Term& term) {
  const std::string_view name = term.name;
  return name == kActivations || name == kGathered || name == kLogits || name == kWorking;
}

bool fits(double bytes, const Cluster& cluster, const TrainingSoftware& software) {
  return bytes <= software.usable_share * cluster.accelerator.memory_bytes;
}

}  // namespace muonwalk::sim
