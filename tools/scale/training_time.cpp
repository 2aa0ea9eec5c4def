#include "tools/scale/training_time.hpp"

#include <algorithm>
#include <cmath>

#include "tools/scale/counted_traffic.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/training_memory.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kShape[] = "the model";
constexpr char kLayout[] = "the layout";
constexpr char kCounted[] = "counted in nanotron's source";
constexpr char kFitted[] = "fitted, see the list of constants";
constexpr char kCluster[] = "the cluster";
constexpr char kPerRank[] = "per rank: the cluster · node link share";

// The sizes of the runs that constants were fitted to.
constexpr double kNarrowest = 2048, kWidest = 4096, kMostNodes = 64, kMostTp = 32;

double real(Index number) { return static_cast<double>(number); }

double tokens_of(const ModelShape& model, const TrainingLayout& layout) {
  return real(model.tokens) * layout.micro_batch;
}

// ── Rates: all of them reached, none a peak ──

struct StepRates {
  double product_flops = 0;               // FLOP/s of matrix products
  std::optional<double> nearest_product;  // in FLOPs, where none of this size was measured
  double attention_flops = 0;             // FLOP/s of fused attention, over the whole square
  double memory = 0;                      // B/s
  double stage_link = 0;                  // B/s from one stage to the next, per rank
  double tp_link = 0;                     // B/s per rank of a TP group
  double dp_link = 0;                     // B/s per rank of a DP group, which shares the links out of its nodes
  double tie_link = 0;                    // B/s per rank, between the two copies of a tied table
  double expert_link = 0;                 // B/s per rank of an EP group
  bool crosses_nodes = false;             // a TP group does
  double floor_seconds = 0;               // per layer: the host
  double group_wait_seconds = 0;          // per collective of a DP group
  bool slow_path = false;                 // what floor_seconds says
  int tp_collectives = 0;                 // per layer, forward and backward
};

// Bytes per second that each of the `sharing` ranks of a node gets of the links that leave it, in a group that takes
// `span` accelerators in a row: those of the first level that joins as many.
double out_of_node(const Cluster& cluster, double span, double sharing, const TrainingSoftware& software) {
  const auto joins = [span](const NetworkLevel& level) {
    return level.accelerators == 0 || level.accelerators >= span;
  };
  const auto found = std::find_if(cluster.levels.begin(), cluster.levels.end(), joins);
  const NetworkLevel& level = found == cluster.levels.end() ? cluster.levels.back() : *found;
  return software.node_link_share * cluster.node() * level.bytes_per_second / sharing;
}

void set_products(StepRates& rates, const StepQuestion& of) {
  double efficiency = of.software.product_efficiency;
  const MeasuredCurve& curve = of.cluster.accelerator.product_efficiency;
  if (of.software.reads_curve && curve.measured()) {
    constexpr double kProductsOfALayer = 4;  // queries, keys and values; output; gate and up; down
    const CurveReading reading =
        curve.at(2 * tokens_of(of.model, of.layout) * product_weights(of.model) / of.layout.tp / kProductsOfALayer);
    efficiency = reading.value;
    if (reading.outside) rates.nearest_product = reading.outside->nearest;
  }
  rates.product_flops = of.cluster.accelerator.flops_per_second * efficiency;
  rates.attention_flops = of.software.fused_attention ? of.cluster.accelerator.flops_per_second * kAttentionEfficiency
                                                      : rates.product_flops;
}

StepRates step_rates(const StepQuestion& of) {
  const Cluster& cluster = of.cluster;
  const TrainingLayout& layout = of.layout;
  const TrainingSoftware& software = of.software;
  StepRates rates;
  set_products(rates, of);
  rates.memory = cluster.accelerator.memory_bytes_per_second * kMemoryEfficiency;

  const int node = cluster.node() > 0 ? cluster.node() : layout.ranks();
  const double inside = cluster.levels.front().bytes_per_second;
  const double tp = layout.tp, dp = layout.dp;
  const int tp_nodes = std::max(1, layout.tp / node);  // that one TP group takes
  const double dp_nodes = dp * tp <= node ? 1 : tp <= node ? dp * tp / node : dp;
  rates.stage_link = inside;
  rates.tp_link = tp <= node ? inside : out_of_node(cluster, tp, 1, software);
  rates.dp_link = dp_nodes <= 1 ? inside : out_of_node(cluster, dp * tp, std::min<double>(tp, node), software);
  rates.tie_link = layout.nodes > 1 ? out_of_node(cluster, layout.ranks(), node, software) : inside;
  rates.expert_link = layout.ep * tp <= node ? inside : out_of_node(cluster, layout.ep * tp, node, software);
  if (dp_nodes > 1) rates.group_wait_seconds = software.group_seconds_per_doubling * std::log2(dp_nodes);

  const bool many_nodes = software.slow_path_nodes > 0 && layout.nodes >= software.slow_path_nodes;
  rates.slow_path = software.pipeline_rank_seconds > 0 && layout.tp > 1 && layout.nodes > 1 &&
                    (layout.pp > 1 || (many_nodes && tp_nodes <= 2));
  rates.tp_collectives = kTpCollectives + (rates.slow_path ? kRegathered : 0);
  rates.crosses_nodes = tp_nodes > 1 && software.node_hop_seconds > 0;
  rates.floor_seconds = software.host_seconds_per_layer;
  if (rates.slow_path)
    rates.floor_seconds +=
        software.pipeline_rank_seconds * layout.tp + software.node_hop_seconds * (layout.tp - 1) * (tp_nodes - 1);
  return rates;
}

// ── Formulas of one stage ──

// Marks a size that lies outside of [low, high].
TermInput within(const char* name, double value, const char* source, double low, double high) {
  TermInput input{name, value, "", source};
  if (value < low || value > high) input.nearest_at = std::clamp(value, low, high);
  return input;
}

template <class N>
class StageFormulas {
 public:
  StageFormulas(const StepQuestion& of, const StepRates& rates, const Stage& stage, bool last)
      : of_(of), rates_(rates), stage_(stage), last_(last), held_(stage_parameters(of.model, of.layout, stage)) {}

  // What the accelerator does for a micro-batch, forward and backward, one after the other.
  template <class Each>
  void slot(const Each& each) const {
    const Recomputation recomputation = of_.layout.recomputation;
    const bool all = recomputation == Recomputation::full;
    const N weights = with(in("weights", product_weights(of_.model), "", "of one layer"), width());
    each(terms::products, once_more(all, layers() * number<N>(6, "6") * weights * tokens() / tp() / product_rate()));
    each(terms::attention, once_more(recomputation != Recomputation::none, attention()));
    each(terms::elementwise, once_more(all, layers() * tokens() *
                                                (in("a", kWidthTraffic, "B", kCounted) * input<N>(width()) +
                                                 in("b", kHiddenTraffic, "B", kCounted) *
                                                     in("hidden", real(of_.model.hidden), "", kShape)) /
                                                tp() / memory()));
    each(terms::gradients_added, parameters() * in("bytes", kAccumulationTraffic, "B", kCounted) / memory());
    if (stage_.head) each(terms::output_layer, output_layer());
    if (stage_.loss)
      each(terms::loss, tokens() * vocabulary() / tp() * in("bytes", kLogitTraffic, "B", kCounted) / memory());
    if (of_.layout.tp > 1)
      each(terms::tp_transfers,
           once_more(all, layers() * in("collectives", rates_.tp_collectives, "", kCounted) * gathered() / tp_link()));
    if (rates_.crosses_nodes)
      each(terms::tp_latency,
           layers() * (tp() - number<N>(1, "1")) * in("hop", of_.software.node_hop_seconds, "s", kFitted));
    if (of_.layout.ep > 1) each(terms::expert_tokens, once_more(all, expert_tokens()));
    if (!last_) {
      const Index channels = stage_.head && !stage_.loss ? of_.model.vocabulary : of_.model.width;
      each(terms::next_stage, number<N>(2, "2") * number<N>(kBf16Bytes, "2 B") * tokens() *
                                  in("channels", real(channels), "", kShape) / tp() /
                                  in("link", rates_.stage_link, "B/s", "the cluster, inside of a node"));
    }
  }

  // What the host needs to launch all of that, at the same time.
  N host() const { return layers() * with(in("floor", rates_.floor_seconds, "s", kFitted), tp_size()); }

  // What comes after the last micro-batch, one after the other; `slot` is this stage's.
  template <class Each>
  void ending(double slot, const Each& each) const {
    const double copies = copies_of(of_.model, of_.layout, stage_);
    const bool experts = of_.layout.ep > 1;
    const N shares = in(experts ? "copies" : "dp", copies, "", experts ? "dp, but of experts dp / ep" : kLayout);
    const N others = (shares - number<N>(1, "1")) / shares;  // what a ring makes a rank send of a buffer
    const N link =
        with(in("link", rates_.dp_link, "B/s", kPerRank), within("nodes", of_.layout.nodes, kLayout, 1, kMostNodes));
    const N wait = in("wait", rates_.group_wait_seconds, "s", kFitted);
    const double sent = (copies - 1) / copies * held_;
    if (of_.layout.dp > 1) {
      const N all = number<N>(2, "2") * others * number<N>(kGradientBytes, "4 B") * parameters() / link + wait;
      // It hides behind the backward pass, two thirds of a slot.
      each(terms::gradient_sum, at_least_0(all - number<N>(2.0 / 3, "2/3") * in("slot", slot, "s", "above")),
           2 * kGradientBytes * sent);
      if (of_.layout.zero > 0)
        each(terms::weight_gather, others * number<N>(kWeightBytes, "2 B") * parameters() / link + wait,
             kWeightBytes * sent);
    }
    each(terms::adamw,
         parameters() *
             (in("gradients", kGradientTraffic, "B", kCounted) +
              in("states", kStateTraffic, "B", kCounted) /
                  in("shares", of_.layout.zero > 0 ? copies : 1, "",
                     experts ? "with ZeRO-1 dp, but of experts dp / ep; else 1" : "dp with ZeRO-1, else 1")) /
             memory(),
         0);
    if (of_.model.tied && of_.layout.pp > 1 && (stage_.embedding || stage_.head))
      each(terms::tied_table,
           number<N>(kGradientBytes, "4 B") * vocabulary() * input<N>(width()) / tp() /
               in("link", rates_.tie_link, "B/s", kPerRank),
           kGradientBytes * real(of_.model.vocabulary * of_.model.width) / of_.layout.tp);
  }

  N layers() const { return in("layers", real(stage_.layers), "", "the stage that takes longest"); }

 private:
  N in(const char* name, double value, const char* unit, const char* source) const {
    return input<N>({name, value, unit, source});
  }
  TermInput tp_size() const { return within("tp", of_.layout.tp, kLayout, 1, kMostTp); }
  TermInput width() const { return within("width", real(of_.model.width), kShape, kNarrowest, kWidest); }
  N tp() const { return input<N>(tp_size()); }
  N tokens() const { return in("tokens", tokens_of(of_.model, of_.layout), "", "a micro-batch"); }
  N vocabulary() const { return in("vocabulary", real(of_.model.vocabulary), "", kShape); }
  N parameters() const { return in("parameters", held_, "", "of one rank"); }
  N memory() const { return in("memory", rates_.memory, "B/s", "90 % of the accelerator's bandwidth"); }
  N tp_link() const { return in("link", rates_.tp_link, "B/s", kCluster); }
  N product_rate() const {
    return input<N>({"rate", rates_.product_flops, "FLOP/s", "the accelerator's peak · product efficiency",
                     rates_.nearest_product});
  }
  // What one collective of a TP group moves.
  N gathered() const {
    return number<N>(kBf16Bytes, "2 B") * tokens() * input<N>(width()) * (tp() - number<N>(1, "1")) / tp();
  }
  // The forward pass is a third of all.
  N once_more(bool recomputed, const N& time) const { return recomputed ? time * number<N>(4.0 / 3, "4/3") : time; }
  N attention() const {
    const ModelShape& model = of_.model;
    const N sequence = in("sequence", real(model.tokens), "", kShape);
    const N products = number<N>(12, "12") * in("channels", real(model.heads * model.head), "", kShape) * sequence *
                       tokens() / tp() /
                       in("rate", rates_.attention_flops, "FLOP/s",
                          of_.software.fused_attention ? "FlashAttention-3's paper, 2024, on version 2"
                                                       : "the accelerator's peak · product efficiency");
    if (of_.software.fused_attention) return layers() * products;
    return layers() * (products + tokens() * in("heads", real(model.heads), "", kShape) * sequence / tp() *
                                      in("bytes of a score", kScoreTraffic, "B", kCounted) / memory());
  }
  N output_layer() const {
    const N product = number<N>(6, "6") * vocabulary() * input<N>(width()) * tokens() / tp() / product_rate();
    return of_.layout.tp == 1 ? product : product + number<N>(2, "2") * gathered() / tp_link();
  }
  N expert_tokens() const {
    const N ep = in("ep", of_.layout.ep, "", kLayout);
    return layers() * number<N>(4, "4") * number<N>(kBf16Bytes, "2 B") * tokens() / tp() * input<N>(width()) *
           in("chosen", real(of_.model.experts.chosen), "", kShape) * (ep - number<N>(1, "1")) / ep /
           in("link", rates_.expert_link, "B/s", kCluster);
  }

  const StepQuestion& of_;
  const StepRates& rates_;
  const Stage& stage_;
  bool last_;
  double held_;
};

// ── The step ──

// What a stage needs for a micro-batch, and after the last one.
struct StageSeconds {
  double accelerator = 0, host = 0, ending = 0;
  double slot() const { return std::max(accelerator, host); }
};

struct Step {
  const StepQuestion& of;
  StepRates rates;
  std::vector<Stage> stages;
  std::vector<StageSeconds> seconds;  // of each stage
  std::size_t slowest = 0, last = 0;  // the stages with the longest slot and with the longest ending
  double all_slots = 0;               // their sum
  double over_gibibytes = 0;          // that the fullest stage has too much

  explicit Step(const StepQuestion& question)
      : of(question), rates(step_rates(of)), stages(fill_stages(of.model, of.layout.pp, of.software)) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const StageFormulas<double> formulas = formulas_of<double>(i);
      StageSeconds each;
      formulas.slot([&each](const TermKind&, double time) { each.accelerator += time; });
      each.host = formulas.host();
      formulas.ending(each.slot(), [&each](const TermKind&, double time, double) { each.ending += time; });
      all_slots += each.slot();
      seconds.push_back(each);
      if (each.slot() > seconds[slowest].slot()) slowest = i;
      if (each.ending > seconds[last].ending) last = i;
    }
    const double card = of.cluster.accelerator.memory_bytes * kCardShare;
    // In pipelines over several nodes, too much memory shows as a stall of another kind, which is not modelled.
    if (of.software.remap_seconds_per_gibibyte > 0 && (of.layout.pp == 1 || of.layout.nodes == 1))
      over_gibibytes = std::max(0.0, peak_bytes(of.model, of.layout, of.software) - card) / kGibibyte;
  }

  template <class N>
  StageFormulas<N> formulas_of(std::size_t stage) const {
    return {of, rates, stages[stage], stage + 1 == stages.size()};
  }
  template <class N>
  N micro_batches() const {
    return input<N>({"m", static_cast<double>(of.layout.accumulation), "", kLayout});
  }
  template <class N>
  N fill() const {
    return (input<N>({"all stages' slots", all_slots, "s", "one micro-batch through all stages"}) -
            input<N>({"the longest", seconds[slowest].slot(), "s", "the terms above, of one micro-batch"})) /
           input<N>({"chunks", static_cast<double>(of.layout.chunks), "", kLayout});
  }
  template <class N>
  N remap() const {
    return micro_batches<N>() * input<N>({"GiB beyond the card", over_gibibytes, "", "the fullest stage"}) *
           input<N>({"seconds", of.software.remap_seconds_per_gibibyte, "s", kFitted});
  }
};

}  // namespace

std::vector<Term> training_seconds(const StepQuestion& question) {
  const Step step(question);
  const StageSeconds& slowest = step.seconds[step.slowest];
  const auto m = step.micro_batches<Formula>();
  const auto formulas = step.formulas_of<Formula>(step.slowest);
  std::vector<Term> terms;
  formulas.slot([&](const TermKind& kind, const Formula& time) { terms.push_back(term_of(kind, m * time)); });
  if (slowest.host > slowest.accelerator)
    terms.push_back(term_of(step.rates.slow_path ? terms::slow_host : terms::host,
                            m * (formulas.host() - input<Formula>({"accelerator", slowest.accelerator, "s",
                                                                   "the terms above, of one micro-batch"}))));
  if (step.stages.size() > 1) terms.push_back(term_of(terms::fill_and_drain, step.fill<Formula>()));
  if (step.over_gibibytes > 0) terms.push_back(term_of(terms::memory_mapped, step.remap<Formula>()));
  step.formulas_of<Formula>(step.last).ending(
      step.seconds[step.last].slot(),
      [&](const TermKind& kind, const Formula& time, double sent) { terms.push_back(term_of(kind, time, sent)); });
  return terms;
}

double step_seconds(const StepQuestion& question) {
  const Step step(question);
  return step.micro_batches<double>() * step.seconds[step.slowest].slot() + step.fill<double>() + step.remap<double>() +
         step.seconds[step.last].ending;
}

}  // namespace muonwalk::sim
