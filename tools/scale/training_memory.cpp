#include "tools/scale/training_memory.hpp"

#include <algorithm>

#include "tools/scale/muon_cost.hpp"
#include "tools/scale/stage_filling.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kCounted[] = "counted in nanotron's source";
constexpr char kShape[] = "the model";
constexpr char kLayout[] = "the layout";

double real(Index number) { return static_cast<double>(number); }

// Bytes of activations per token and layer.
double layer_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software) {
  const double width = real(model.width), hidden = real(model.hidden), tp = layout.tp;
  if (layout.recomputation == Recomputation::full) return kBf16Bytes * width / tp;
  double bytes = kWidthActivation * width + kHiddenActivation * hidden;
  constexpr double kScoreBytes = 5;  // softmax, its mask, what dropout leaves (Korthikanti et al., 2022)
  if (!software.fused_attention && layout.recomputation == Recomputation::none)
    bytes += kScoreBytes * real(model.heads * model.tokens);
  return bytes / tp;
}

// One stage of a layout, and how many micro-batches are in flight there.
template <class N>
class StageMemory {
 public:
  StageMemory(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software,
              const Stage& stage, int flight)
      : model_(model), layout_(layout), software_(software), stage_(stage), flight_(flight) {}

  template <class Each>
  void terms(const Each& each) const {
    const double copies = layout_.zero == 0 ? 1 : copies_of(model_, layout_, stage_);
    each(terms::weights, per_parameter(kWeightBytes));
    each(terms::gradients, per_parameter(kGradientBytes));
    if (software_.fresh_gradient_bytes > 0) each(terms::fresh_gradients, per_parameter(software_.fresh_gradient_bytes));
    each(terms::master_weights, shared(per_parameter(kMasterBytes), copies));
    each(terms::two_moments, shared(per_parameter(kMomentBytes), copies));
    const double kept = layer_bytes(model_, layout_, software_);
    each(terms::activations, layers() * in_flight() * tokens() * in("bytes", kept, "B", kCounted));
    if (gathered_share() > 0)
      each(terms::gathered_inputs, layers() * in_flight() *
                                       in("share", gathered_share(), "", "1 − 2 / in flight in slow pipelines") *
                                       tokens() * number<N>(kGatheredActivation, "4 B") * width() *
                                       (number<N>(1, "1") - number<N>(1, "1") / tp()));
    if (logit_bytes() > 0)
      each(terms::logits, tokens() * in("vocabulary", real(model_.vocabulary), "", kShape) / tp() *
                              in("bytes", logit_bytes(), "B", kCounted));
    each(terms::working_layer, working());
  }

 private:
  N in(const char* name, double value, const char* unit, const char* source) const {
    return input<N>({name, value, unit, source});
  }
  N layers() const { return in("layers", real(stage_.layers), "", "of this stage"); }
  N in_flight() const { return in("in flight", flight_, "", "1F1B: min(m, pp − stage)"); }
  N tokens() const { return in("tokens", real(model_.tokens) * layout_.micro_batch, "", "a micro-batch"); }
  N width() const { return in("width", real(model_.width), "", kShape); }
  N tp() const { return in("tp", layout_.tp, "", kLayout); }
  N per_parameter(double bytes) const {
    return in("parameters", stage_parameters(model_, layout_, stage_), "", "of one rank") *
           in("bytes", bytes, "B", kCounted);
  }
  N shared(const N& bytes, double copies) const {
    return copies == 1 ? bytes : bytes / in("shares", copies, "", "ZeRO-1: dp, but of experts dp / ep");
  }

  // The share of the gathered inputs that is still there when the backward pass comes. Freed memory returns to the
  // allocator only when the transfer's stream has come by; a host that is slower than its GPU sees to that.
  double gathered_share() const {
    if (layout_.tp == 1 || !software_.keeps_gathered_inputs) return 0;
    if (layout_.pp == 1 || layout_.nodes == 1) return 1;
    const int node = layout_.ranks() / layout_.nodes;
    return layout_.tp > 2 * node ? 0 : std::max(0.0, 1 - 2.0 / flight_);
  }

  // The layer that is worked on; of one whose activations are recomputed, these as well.
  N working() const {
    const N gathered = in("bytes", kWorkingBytes, "B", kCounted) * width();
    if (layout_.recomputation != Recomputation::full) return tokens() * gathered;
    TrainingLayout kept = layout_;
    kept.recomputation = Recomputation::none;
    return tokens() * (gathered + in("recomputed", layer_bytes(model_, kept, software_), "B", kCounted));
  }

  // Bytes per logit of one TP rank: bf16 for all in flight where they are made; fp32 copies where the loss is taken; a
  // second bf16 copy on each side where they go from one stage to another.
  double logit_bytes() const {
    constexpr double kFloatBytes = 4;
    double bytes = 0;
    if (stage_.head) bytes += kBf16Bytes * flight_;
    if (stage_.loss) bytes += kLogitBytes - kBf16Bytes;
    if (stage_.cast && !stage_.loss) bytes += kFloatBytes;
    if (stage_.head != stage_.loss) bytes += kBf16Bytes;
    return bytes;
  }

  const ModelShape& model_;
  const TrainingLayout& layout_;
  const TrainingSoftware& software_;
  Stage stage_;
  int flight_;
};

template <class N>
std::vector<StageMemory<N>> stages_of(const ModelShape& model, const TrainingLayout& layout,
                                      const TrainingSoftware& software) {
  std::vector<StageMemory<N>> all;
  int stage = 0;
  for (const Stage& each : fill_stages(model, layout.pp, software))
    all.emplace_back(model, layout, software, each, std::min(layout.accumulation, layout.pp - stage++));
  return all;
}

// What can't be taken back, and all that there is at the peak.
struct StageSums {
  double firm = 0, peak = 0;
};

std::vector<StageSums> sums_of(const ModelShape& model, const TrainingLayout& layout,
                               const TrainingSoftware& software) {
  std::vector<StageSums> all;
  for (const StageMemory<double>& each : stages_of<double>(model, layout, software)) {
    all.emplace_back();
    each.terms([&sums = all.back()](const TermKind& kind, double bytes) {
      sums.peak += bytes;
      if (&kind != &terms::gathered_inputs) sums.firm += bytes;
    });
  }
  return all;
}

}  // namespace

std::vector<Term> stage_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software,
                              int stage) {
  std::vector<Term> terms;
  stages_of<Formula>(model, layout, software)
      .at(static_cast<std::size_t>(stage))
      .terms([&terms](const TermKind& kind, const Formula& bytes) { terms.push_back(term_of(kind, bytes)); });
  return terms;
}

std::vector<Term> training_bytes(const ModelShape& model, const TrainingLayout& layout,
                                 const TrainingSoftware& software) {
  const std::vector<StageSums> sums = sums_of(model, layout, software);
  const auto by_firm = [](const StageSums& a, const StageSums& b) { return a.firm < b.firm; };
  const auto fullest = std::max_element(sums.begin(), sums.end(), by_firm) - sums.begin();
  std::vector<Term> terms = stage_bytes(model, layout, software, static_cast<int>(fullest));
  const auto gathered = [](const Term& term) { return term.kind == &terms::gathered_inputs; };
  terms.erase(std::remove_if(terms.begin(), terms.end(), gathered), terms.end());
  return terms;
}

double peak_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software) {
  double most = 0;
  for (const StageSums& each : sums_of(model, layout, software)) most = std::max(most, each.peak);
  return most;
}

bool fits(double bytes, const Cluster& cluster, const TrainingSoftware& software) {
  return bytes <= software.usable_share * cluster.accelerator.memory_bytes;
}

}  // namespace muonwalk::sim
