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
class StageMemory {
 public:
  StageMemory(const StepQuestion& of, const Stage& stage, int flight) : of_(of), stage_(stage), flight_(flight) {}

  std::vector<Term> terms() const {
    std::vector<Term> all;
    const auto add = [&all](const TermKind& kind, const Formula& bytes) { all.push_back(term_of(kind, bytes)); };
    const double copies = of_.layout.zero == 0 ? 1 : copies_of(of_.model, of_.layout, stage_);
    add(terms::weights, per_parameter(kWeightBytes));
    add(terms::gradients, per_parameter(kGradientBytes));
    if (of_.software.fresh_gradient_bytes > 0)
      add(terms::fresh_gradients, per_parameter(of_.software.fresh_gradient_bytes));
    add(terms::master_weights, shared(per_parameter(kMasterBytes), copies));
    add(terms::two_moments, shared(per_parameter(kMomentBytes), copies));
    const double kept = layer_bytes(of_.model, of_.layout, of_.software);
    add(terms::activations, layers() * in_flight() * tokens() * in("bytes", kept, "B", kCounted));
    if (gathered_share() > 0)
      add(terms::gathered_inputs, layers() * in_flight() *
                                      in("share", gathered_share(), "", "1 − 2 / in flight in slow pipelines") *
                                      tokens() * Formula(kGatheredActivation, "4 B") * width() * (1 - 1 / tp()));
    if (logit_bytes() > 0)
      add(terms::logits, tokens() * in("vocabulary", real(of_.model.vocabulary), "", kShape) / tp() *
                             in("bytes", logit_bytes(), "B", kCounted));
    add(terms::working_layer, working());
    return all;
  }

 private:
  Formula in(const char* name, double value, const char* unit, const char* source) const {
    return of_.in({name, value, unit, source});
  }
  Formula layers() const { return in("layers", real(stage_.layers), "", "of this stage"); }
  Formula in_flight() const { return in("in flight", flight_, "", "1F1B: min(m, pp − stage)"); }
  Formula tokens() const { return in("tokens", real(of_.model.tokens) * of_.layout.micro_batch, "", "a micro-batch"); }
  Formula width() const { return in("width", real(of_.model.width), "", kShape); }
  Formula tp() const { return in("tp", of_.layout.tp, "", kLayout); }
  Formula per_parameter(double bytes) const {
    return in("parameters", stage_parameters(of_.model, of_.layout, stage_), "", "of one rank") *
           in("bytes", bytes, "B", kCounted);
  }
  Formula shared(const Formula& bytes, double copies) const {
    return copies == 1 ? bytes : bytes / in("shares", copies, "", "ZeRO-1: dp, but of experts dp / ep");
  }

  // The share of the gathered inputs that is still there when the backward pass comes. Freed memory returns to the
  // allocator only when the transfer's stream has come by; a host that is slower than its GPU sees to that.
  double gathered_share() const {
    if (of_.layout.tp == 1 || !of_.software.keeps_gathered_inputs) return 0;
    if (of_.layout.pp == 1 || of_.layout.nodes == 1) return 1;
    const int node = of_.layout.ranks() / of_.layout.nodes;
    return of_.layout.tp > 2 * node ? 0 : std::max(0.0, 1 - 2.0 / flight_);
  }

  // The layer that is worked on; of one whose activations are recomputed, these as well.
  Formula working() const {
    const Formula gathered = in("bytes", kWorkingBytes, "B", kCounted) * width();
    if (of_.layout.recomputation != Recomputation::full) return tokens() * gathered;
    TrainingLayout kept = of_.layout;
    kept.recomputation = Recomputation::none;
    return tokens() * (gathered + in("recomputed", layer_bytes(of_.model, kept, of_.software), "B", kCounted));
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

  const StepQuestion& of_;
  Stage stage_;
  int flight_;
};

// Without what can be taken back.
std::vector<Term> firm(std::vector<Term> terms) {
  const auto gathered = [](const Term& term) { return term.kind == &terms::gathered_inputs; };
  terms.erase(std::remove_if(terms.begin(), terms.end(), gathered), terms.end());
  return terms;
}

}  // namespace

std::vector<Term> stage_bytes(const StepQuestion& question, int stage) {
  const TrainingLayout& layout = question.layout;
  const std::vector<Stage> stages = fill_stages(question.model, layout.pp, question.software);
  const int flight = std::min(layout.accumulation, layout.pp - stage);
  return StageMemory(question, stages.at(static_cast<std::size_t>(stage)), flight).terms();
}

std::vector<Term> training_bytes(const StepQuestion& question) {
  const StepQuestion amounts = question.unexplained();
  std::vector<double> sums;
  for (int stage = 0; stage < question.layout.pp; ++stage) sums.push_back(total(firm(stage_bytes(amounts, stage))));
  return firm(stage_bytes(question, static_cast<int>(std::max_element(sums.begin(), sums.end()) - sums.begin())));
}

double peak_bytes(const StepQuestion& question) {
  const StepQuestion amounts = question.unexplained();
  double most = 0;
  for (int stage = 0; stage < question.layout.pp; ++stage) most = std::max(most, total(stage_bytes(amounts, stage)));
  return most;
}

bool fits(double bytes, const Cluster& cluster, const TrainingSoftware& software) {
  return bytes <= software.usable_share * cluster.accelerator.memory_bytes;
}

}  // namespace muonwalk::sim
