#include "sim/cost_model/training_time.hpp"

#include <algorithm>

#include "sim/cost_model/counted_traffic.hpp"
#include "sim/cost_model/stage_times.hpp"
#include "sim/cost_model/training_memory.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kShape[] = "the model";
constexpr char kLayout[] = "the layout";
constexpr char kCounted[] = "counted in nanotron's source";
constexpr char kFitted[] = "fitted, see the list of constants";
constexpr char kCluster[] = "the cluster";

// The sizes of the runs that constants were fitted to.
constexpr double kNarrowest = 2048, kWidest = 4096, kMostNodes = 64, kMostTp = 32;

double real(Index number) { return static_cast<double>(number); }

// Marks a size that lies outside of [low, high].
TermInput within(const char* name, double value, const char* source, double low, double high) {
  TermInput input{name, value, "", source, value < low || value > high, 0};
  if (input.extrapolated) input.nearest_at = std::clamp(value, low, high);
  return input;
}

// All that the terms of a layout are made from.
struct StepParts {
  const ModelShape& model;
  const TrainingLayout& layout;
  const TrainingSoftware& software;
  StepRates rates;
  std::vector<StageTimes> stages;
  const StageTimes* slowest;  // the stage with the longest slot
  const StageTimes* last;     // the one with the longest tail
  double all_slots = 0;       // their sum
  double over_gibibytes = 0;  // that the fullest stage has too much

  StepParts(const ModelShape& the_model, const Cluster& cluster, const TrainingLayout& the_layout,
            const TrainingSoftware& the_software)
      : model(the_model),
        layout(the_layout),
        software(the_software),
        rates(step_rates(model, cluster, layout, software)),
        stages(stage_times(model, cluster, layout, software)) {
    const auto by_slot = [](const StageTimes& a, const StageTimes& b) { return a.slot() < b.slot(); };
    const auto by_tail = [](const StageTimes& a, const StageTimes& b) { return a.tail() < b.tail(); };
    slowest = &*std::max_element(stages.begin(), stages.end(), by_slot);
    last = &*std::max_element(stages.begin(), stages.end(), by_tail);
    for (const StageTimes& each : stages) all_slots += each.slot();
    const double card = cluster.accelerator.memory_bytes * kCardShare;
    // In pipelines over several nodes, too much memory shows as a stall of another kind, which is not modelled.
    if (software.remap_seconds_per_gibibyte > 0 && (layout.pp == 1 || layout.nodes == 1))
      over_gibibytes = std::max(0.0, peak_bytes(model, layout, software) - card) / kGibibyte;
  }

  double times(double seconds_of_a_micro_batch) const { return layout.accumulation * seconds_of_a_micro_batch; }
  double fill() const { return (all_slots - slowest->slot()) / layout.chunks; }
  double remap() const { return times(software.remap_seconds_per_gibibyte * over_gibibytes); }

  TermInput micro_batches() const { return {"m", static_cast<double>(layout.accumulation), "", kLayout}; }
  TermInput layers() const { return {"layers", real(slowest->stage.layers), "", "the stage that takes longest"}; }
  TermInput tokens() const { return {"tokens", real(model.tokens) * layout.micro_batch, "", "a micro-batch"}; }
  TermInput tp() const { return within("tp", layout.tp, kLayout, 1, kMostTp); }
  TermInput width() const { return within("width", real(model.width), kShape, kNarrowest, kWidest); }
  TermInput nodes() const { return within("nodes", layout.nodes, kLayout, 1, kMostNodes); }
  TermInput memory() const { return {"memory", rates.memory, "B/s", "90 % of the accelerator's bandwidth"}; }
  TermInput parameters(const StageTimes& stage) const { return {"parameters", stage.parameters, "", "of one rank"}; }
  TermInput product_rate() const {
    return {"rate",
            rates.product_flops,
            "FLOP/s",
            "the accelerator's peak · product efficiency",
            rates.efficiency_outside,
            rates.efficiency_nearest};
  }
};

void add_arithmetic(const StepParts& parts, std::vector<Term>& terms) {
  const StageTimes& stage = *parts.slowest;
  const ModelShape& model = parts.model;
  terms.push_back({"products of the layers",
                   parts.times(stage.products),
                   "m · layers · 6 · weights · tokens / tp / rate",
                   {parts.micro_batches(),
                    parts.layers(),
                    {"weights", product_weights(model), "", "of one layer"},
                    parts.width(),
                    parts.tokens(),
                    parts.tp(),
                    parts.product_rate()}});
  terms.push_back({"attention",
                   parts.times(stage.attention),
                   "m · layers · 12 · channels · sequence · tokens / tp / rate",
                   {parts.micro_batches(),
                    parts.layers(),
                    {"channels", real(model.heads * model.head_width), "", kShape},
                    {"sequence", real(model.tokens), "", kShape},
                    parts.tokens(),
                    parts.tp(),
                    {"rate", parts.rates.attention_flops, "FLOP/s", "FlashAttention-3's paper, 2024, on version 2"}}});
  terms.push_back({"norms, residuals, activations",
                   parts.times(stage.elementwise),
                   "m · layers · tokens · (a · width + b · hidden) / tp / memory",
                   {parts.micro_batches(),
                    parts.layers(),
                    parts.tokens(),
                    {"a", kWidthTraffic, "B", kCounted},
                    parts.width(),
                    {"b", kHiddenTraffic, "B", kCounted},
                    {"hidden", real(model.hidden), "", kShape},
                    parts.tp(),
                    parts.memory()}});
  terms.push_back({"gradients added up",
                   parts.times(stage.accumulation),
                   "m · parameters · bytes / memory",
                   {parts.micro_batches(),
                    parts.parameters(stage),
                    {"bytes", kAccumulationTraffic, "B", kCounted},
                    parts.memory()}});
  if (stage.stage.head)
    terms.push_back({"output layer",
                     parts.times(stage.head),
                     "m · 6 · vocabulary · width · tokens / tp / rate, and two gathers",
                     {parts.micro_batches(),
                      {"vocabulary", real(model.vocabulary), "", kShape},
                      parts.width(),
                      parts.tokens(),
                      parts.tp(),
                      parts.product_rate()}});
  if (stage.stage.loss)
    terms.push_back({"loss",
                     parts.times(stage.loss),
                     "m · tokens · vocabulary / tp · bytes / memory",
                     {parts.micro_batches(),
                      parts.tokens(),
                      {"vocabulary", real(model.vocabulary), "", kShape},
                      parts.tp(),
                      {"bytes", kLogitTraffic, "B", kCounted},
                      parts.memory()}});
}

void add_transfers(const StepParts& parts, std::vector<Term>& terms) {
  const StageTimes& stage = *parts.slowest;
  if (parts.layout.tp > 1)
    terms.push_back({"TP transfers",
                     parts.times(stage.tp_transfer),
                     "m · layers · collectives · 2 B · tokens · width · (tp − 1) / tp / link",
                     {parts.micro_batches(),
                      parts.layers(),
                      {"collectives", static_cast<double>(parts.rates.tp_collectives), "", kCounted},
                      parts.tokens(),
                      parts.width(),
                      parts.tp(),
                      {"link", parts.rates.tp_link, "B/s", kCluster}}});
  if (stage.tp_latency > 0)
    terms.push_back(
        {"TP latency between nodes",
         parts.times(stage.tp_latency),
         "m · layers · (tp − 1) · hop",
         {parts.micro_batches(), parts.layers(), parts.tp(), {"hop", parts.software.node_hop_seconds, "s", kFitted}}});
  if (stage.expert_transfer > 0)
    terms.push_back({"tokens to their experts and back",
                     parts.times(stage.expert_transfer),
                     "m · layers · 4 · 2 B · tokens / tp · width · chosen · (ep − 1) / ep / link",
                     {parts.micro_batches(),
                      parts.layers(),
                      parts.tokens(),
                      parts.tp(),
                      parts.width(),
                      {"chosen", real(parts.model.chosen), "", kShape},
                      {"ep", static_cast<double>(parts.layout.ep), "", kLayout},
                      {"link", parts.rates.expert_link, "B/s", kCluster}}});
  if (stage.next_stage > 0)
    terms.push_back({"activations to the next stage",
                     parts.times(stage.next_stage),
                     "m · 2 · 2 B · tokens · channels / tp / link",
                     {parts.micro_batches(),
                      parts.tokens(),
                      parts.tp(),
                      {"link", parts.rates.stage_link, "B/s", "the cluster, inside of a node"}}});
}

void add_waiting(const StepParts& parts, std::vector<Term>& terms) {
  const StageTimes& stage = *parts.slowest;
  if (stage.host > stage.accelerator())
    terms.push_back({parts.rates.slow_path ? "waiting for the host, on the slow path" : "waiting for the host",
                     parts.times(stage.host - stage.accelerator()),
                     "m · (layers · floor − what the accelerator needs)",
                     {parts.micro_batches(),
                      parts.layers(),
                      {"floor", parts.rates.floor_seconds, "s", kFitted},
                      parts.tp(),
                      {"accelerator", stage.accelerator(), "s", "the terms above, of one micro-batch"}}});
  if (parts.stages.size() > 1)
    terms.push_back({"pipeline fills and drains",
                     parts.fill(),
                     "(all stages' slots − the longest) / chunks",
                     {{"all stages' slots", parts.all_slots, "s", "one micro-batch through all stages"},
                      {"the longest", stage.slot(), "s", "the terms above, of one micro-batch"},
                      {"chunks", static_cast<double>(parts.layout.chunks), "", kLayout}}});
  if (parts.over_gibibytes > 0)
    terms.push_back({"memory mapped anew",
                     parts.remap(),
                     "m · GiB beyond the card · seconds",
                     {parts.micro_batches(),
                      {"GiB beyond the card", parts.over_gibibytes, "", "the fullest stage"},
                      {"seconds", parts.software.remap_seconds_per_gibibyte, "s", kFitted}}});
}

void add_tail(const StepParts& parts, std::vector<Term>& terms) {
  const StageTimes& stage = *parts.last;
  const TermInput dp{"dp", static_cast<double>(parts.layout.dp), "", kLayout};
  const TermInput link{"link", parts.rates.dp_link, "B/s", "per rank: the cluster · node link share"};
  const TermInput wait{"wait", parts.rates.group_wait_seconds, "s", kFitted};
  const double others =
      (parts.layout.dp - 1.0) / parts.layout.dp;  // the share of a buffer that a ring makes a rank send
  const auto sent = [](double bytes) {
    return TermInput{"bytes sent", bytes, "B", "by one rank, as a ring sends them"};
  };
  if (parts.layout.dp > 1)
    terms.push_back({"gradients summed over DP, not hidden",
                     stage.exposed_all_reduce(),
                     "2 (dp − 1) / dp · 4 B · parameters / link + wait − 2/3 · slot, at least 0",
                     {dp,
                      parts.parameters(stage),
                      link,
                      parts.nodes(),
                      wait,
                      {"slot", stage.slot(), "s", "above"},
                      sent(2 * others * kGradientBytes * stage.parameters)}});
  if (stage.all_gather > 0)
    terms.push_back(
        {"weights gathered over DP (ZeRO-1)",
         stage.all_gather,
         "(dp − 1) / dp · 2 B · parameters / link + wait",
         {dp, parts.parameters(stage), link, parts.nodes(), wait, sent(others * kWeightBytes * stage.parameters)}});
  const double share = parts.layout.zero > 0 ? parts.layout.dp : 1;
  terms.push_back({"AdamW",
                   stage.optimizer,
                   "parameters · (gradients + states / shares) / memory",
                   {parts.parameters(stage),
                    {"gradients", kGradientTraffic, "B", kCounted},
                    {"states", kStateTraffic, "B", kCounted},
                    {"shares", share, "", "dp with ZeRO-1, else 1"},
                    parts.memory()}});
  if (stage.tied_table > 0)
    terms.push_back({"the tied table's two gradients summed",
                     stage.tied_table,
                     "4 B · vocabulary · width / tp / link",
                     {{"vocabulary", real(parts.model.vocabulary), "", kShape},
                      parts.width(),
                      parts.tp(),
                      {"link", parts.rates.tie_link, "B/s", "per rank: the cluster · node link share"},
                      sent(4 * real(parts.model.vocabulary * parts.model.width) / parts.layout.tp)}});
}

}  // namespace

std::vector<Term> training_seconds(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                                   const TrainingSoftware& software) {
  const StepParts parts(model, cluster, layout, software);
  std::vector<Term> terms;
  add_arithmetic(parts, terms);
  add_transfers(parts, terms);
  add_waiting(parts, terms);
  add_tail(parts, terms);
  return terms;
}

double step_seconds(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                    const TrainingSoftware& software) {
  const StepParts parts(model, cluster, layout, software);
  return parts.times(parts.slowest->slot()) + parts.fill() + parts.remap() + parts.last->tail();
}

}  // namespace muonwalk::sim
