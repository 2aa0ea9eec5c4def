#include "tools/scale/training_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/text/text.hpp"
#include "tools/scale/stage_filling.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kShape[] = "the model";
constexpr char kLayout[] = "the layout";
constexpr char kCounted[] = "counted in nanotron's source";
constexpr char kFitted[] = "fitted, see the list of constants";
constexpr char kCluster[] = "the cluster";
constexpr char kProductRate[] = "the accelerator's peak · efficiency of products";
constexpr char kPerRank[] = "per rank: the cluster · node link share";

// The sizes of the runs that constants were fitted to.
constexpr double kNarrowest = 2048, kWidest = 4096, kMostNodes = 64, kMostTp = 32;

double real(Index number) { return static_cast<double>(number); }

double tokens_of(const ModelShape& model, const TrainingLayout& layout) {
  return real(model.tokens) * layout.micro_batch;
}

// ── Where groups of ranks lie, and what they reach there ──

int node_of(const StepQuestion& of) { return of.cluster.node() > 0 ? of.cluster.node() : of.layout.ranks(); }

// How many nodes a TP group takes, and how many a DP group.
int tp_nodes(const StepQuestion& of) { return std::max(1, of.layout.tp / node_of(of)); }
double dp_nodes(const StepQuestion& of) {
  const double tp = of.layout.tp, dp = of.layout.dp;
  const int node = node_of(of);
  return dp * tp <= node ? 1 : tp <= node ? dp * tp / node : dp;
}

// Bytes per second of a rank in a group that takes `span` accelerators in a row. Where that is more than a node, the
// `sharing` ranks of a node share its links into the first level that joins as many.
double link_of(const StepQuestion& of, double span, double sharing) {
  const std::vector<NetworkLevel>& levels = of.cluster.levels;
  if (span <= node_of(of)) return levels.front().bytes_per_second;
  const auto joins = [span](const NetworkLevel& level) {
    return level.accelerators == 0 || level.accelerators >= span;
  };
  const auto found = std::find_if(levels.begin(), levels.end(), joins);
  const NetworkLevel& level = found == levels.end() ? levels.back() : *found;
  return of.software.node_link_share * of.cluster.node() * level.bytes_per_second / sharing;
}

// Whether the software launches layers on its slow path.
bool slow_path(const StepQuestion& of) {
  const TrainingLayout& layout = of.layout;
  const bool many_nodes = of.software.slow_path_nodes > 0 && layout.nodes >= of.software.slow_path_nodes;
  return of.software.pipeline_rank_seconds > 0 && layout.tp > 1 && layout.nodes > 1 &&
         (layout.pp > 1 || (many_nodes && tp_nodes(of) <= 2));
}

// Seconds for a layer below which the host can't launch it.
double floor_seconds(const StepQuestion& of) {
  const TrainingSoftware& software = of.software;
  if (!slow_path(of)) return software.host_seconds_per_layer;
  return software.host_seconds_per_layer + (software.pipeline_rank_seconds * of.layout.tp +
                                            software.node_hop_seconds * (of.layout.tp - 1) * (tp_nodes(of) - 1));
}

// The share of its peak that the accelerator reaches in products: by their size, as in Newton–Schulz; or what was
// fitted to whole runs, with the band of that where the runs were on another accelerator.
ProductEfficiency product_efficiency(const StepQuestion& of) {
  constexpr double kProductsOfALayer = 4;  // queries, keys and values; output; gate and up; down
  ProductEfficiency efficiency =
      product_efficiency(of.cluster.accelerator, 2 * tokens_of(of.model, of.layout) * product_weights(of.model) /
                                                     of.layout.tp / kProductsOfALayer);
  if (of.software.reads_curve) return efficiency;
  const double fitted = efficiency.value = of.software.product_efficiency;
  efficiency.elsewhere = of.cluster.accelerator.name != of.software.fitted_on;
  efficiency.source = efficiency.elsewhere ? "fitted to runs on another accelerator" : kFitted;
  efficiency.outside.reset();
  efficiency.low = efficiency.elsewhere ? std::min(fitted, efficiency.low) : fitted;
  efficiency.high = efficiency.elsewhere ? std::max(fitted, efficiency.high) : fitted;
  return efficiency;
}

// ── Formulas of one stage ──

// Marks a size that lies outside of [low, high].
TermInput within(const char* name, double value, const char* source, double low, double high) {
  TermInput input{name, value, "", source};
  if (value < low || value > high) input.nearest_at = std::clamp(value, low, high);
  return input;
}

class StageFormulas {
 public:
  StageFormulas(const StepQuestion& of, const Stage& stage, bool last)
      : of_(of), stage_(stage), last_(last), held_(stage_parameters(of.model, of.layout, stage)) {}

  // What the accelerator does for `m` micro-batches, forward and backward, one after the other.
  std::vector<Term> slots(const Formula& m) const {
    std::vector<Term> terms;
    const auto add = [&](const TermKind& kind, const Formula& time) { terms.push_back(term_of(kind, m * time)); };
    const Recomputation recomputation = of_.layout.recomputation;
    const bool all = recomputation == Recomputation::full;
    const Formula weights = with(in("weights", product_weights(of_.model), "", "of one layer"), width());
    add(terms::products, once_more(all, layers() * 6 * weights * tokens() / tp() / product_rate()));
    add(terms::attention, once_more(recomputation != Recomputation::none, attention()));
    add(terms::elementwise,
        once_more(all, layers() * tokens() *
                           (in("a", kWidthTraffic * of_.software.elementwise_share, "B", kCounted) * in(width()) +
                            in("b", kHiddenTraffic * of_.software.elementwise_share, "B", kCounted) *
                                in("hidden", real(of_.model.hidden), "", kShape)) /
                           tp() / memory()));
    add(terms::gradients_added, parameters() * in("bytes", kAccumulationTraffic, "B", kCounted) / memory());
    if (stage_.head) add(terms::output_layer, output_layer());
    if (stage_.loss)
      add(terms::loss, tokens() * vocabulary() / tp() *
                           in("bytes", kLogitTraffic * of_.software.logit_share, "B", kCounted) / memory());
    if (of_.layout.tp > 1)
      add(terms::tp_transfers,
          once_more(all, layers() *
                             in("collectives", kTpCollectives + (slow_path(of_) ? kRegathered : 0), "", kCounted) *
                             gathered() / tp_link()));
    if (tp_nodes(of_) > 1 && of_.software.node_hop_seconds > 0)
      add(terms::tp_latency, layers() * (tp() - 1) * in("hop", of_.software.node_hop_seconds, "s", kFitted));
    if (of_.layout.ep > 1) add(terms::expert_tokens, once_more(all, expert_tokens()));
    if (!last_) {
      const Index channels = stage_.head && !stage_.loss ? of_.model.vocabulary : of_.model.width;
      add(terms::next_stage,
          Formula(2 * kBf16Bytes, "2 · 2 B") * tokens() * in("channels", real(channels), "", kShape) / tp() /
              in("link", of_.cluster.levels.front().bytes_per_second, "B/s", "the cluster, inside of a node"));
    }
    return terms;
  }

  // What the host needs to launch all of that, at the same time.
  Formula host() const { return layers() * with(in("floor", floor_seconds(of_), "s", kFitted), tp_size()); }

  // What comes after the last micro-batch, one after the other; `slot` is this stage's.
  std::vector<Term> ending(double slot) const {
    std::vector<Term> terms;
    const auto add = [&](const TermKind& kind, const Formula& time, double sent) {
      terms.push_back(term_of(kind, time, sent));
    };
    const double copies = copies_of(of_.model, of_.layout, stage_);
    const bool experts = of_.layout.ep > 1;
    const Formula shares = in(experts ? "copies" : "dp", copies, "", experts ? "dp, but of experts dp / ep" : kLayout);
    const Formula others = (shares - 1) / shares;  // what a ring makes a rank send of a buffer
    const Formula link = with(
        in("link", link_of(of_, of_.layout.dp * of_.layout.tp, std::min(of_.layout.tp, node_of(of_))), "B/s", kPerRank),
        within("nodes", of_.layout.nodes, kLayout, 1, kMostNodes));
    const Formula wait = in("wait", of_.software.group_seconds_per_doubling * std::log2(dp_nodes(of_)), "s", kFitted);
    const double sent = (copies - 1) / copies * held_;
    if (of_.layout.dp > 1) {
      const Formula sum =
          2 * others * in("bytes", of_.software.gradient_bytes, "B", "of a gradient") * parameters() / link + wait;
      // It hides behind the backward pass, two thirds of a slot.
      add(terms::gradient_sum, at_least_0(sum - Formula(2.0 / 3, "2/3") * in("slot", slot, "s", "above")),
          2 * of_.software.gradient_bytes * sent);
      if (of_.layout.zero > 0)
        add(terms::weight_gather, others * Formula(kWeightBytes, "2 B") * parameters() / link + wait,
            kWeightBytes * sent);
    }
    add(terms::adamw,
        parameters() *
            (in("gradients", kGradientTraffic, "B", kCounted) +
             in("states", kStateTraffic, "B", kCounted) /
                 in("shares", of_.layout.zero > 0 ? copies : 1, "",
                    experts ? "with ZeRO-1 dp, but of experts dp / ep; else 1" : "dp with ZeRO-1, else 1")) /
            memory(),
        0);
    if (of_.model.tied && of_.layout.pp > 1 && (stage_.embedding || stage_.head))
      add(terms::tied_table,
          Formula(kGradientBytes, "4 B") * vocabulary() * in(width()) / tp() /
              in("link", link_of(of_, of_.layout.ranks(), node_of(of_)), "B/s", kPerRank),
          kGradientBytes * real(of_.model.vocabulary * of_.model.width) / of_.layout.tp);
    return terms;
  }

  Formula layers() const { return in("layers", real(stage_.layers), "", "the stage that takes longest"); }

 private:
  Formula in(const TermInput& named) const { return of_.in(named); }
  Formula in(const char* name, double value, const char* unit, const char* source) const {
    return of_.in({name, value, unit, source});
  }
  TermInput tp_size() const { return within("tp", of_.layout.tp, kLayout, 1, kMostTp); }
  TermInput width() const { return within("width", real(of_.model.width), kShape, kNarrowest, kWidest); }
  Formula tp() const { return in(tp_size()); }
  Formula tokens() const { return in("tokens", tokens_of(of_.model, of_.layout), "", "a micro-batch"); }
  Formula vocabulary() const { return in("vocabulary", real(of_.model.vocabulary), "", kShape); }
  Formula parameters() const { return in("parameters", held_, "", "of one rank"); }
  Formula memory() const {
    return in("memory", of_.cluster.accelerator.memory_bytes_per_second * kMemoryEfficiency, "B/s",
              "90 % of the accelerator's bandwidth");
  }
  Formula tp_link() const { return in("link", link_of(of_, of_.layout.tp, 1), "B/s", kCluster); }
  double peak() const { return of_.cluster.accelerator.flops_per_second; }
  Formula product_rate() const {
    const ProductEfficiency efficiency = product_efficiency(of_);
    TermInput share{"efficiency", efficiency.value, "", efficiency.source};
    if (efficiency.low < efficiency.high) share.low = efficiency.low, share.high = efficiency.high;
    share.elsewhere = efficiency.elsewhere;
    const Formula rate = in("peak", peak(), "FLOP/s", kCluster) * in(share);
    if (!efficiency.outside) return rate;
    return with(rate, {"a product", efficiency.outside->at, "FLOP", kShape, efficiency.outside->nearest});
  }
  // What one collective of a TP group moves.
  Formula gathered() const { return Formula(kBf16Bytes, "2 B") * tokens() * in(width()) * (tp() - 1) / tp(); }
  // The forward pass is a third of all.
  Formula once_more(bool recomputed, const Formula& time) const {
    return recomputed ? time * Formula(4.0 / 3, "4/3") : time;
  }
  Formula attention() const {
    const ModelShape& model = of_.model;
    const Formula sequence = in("sequence", real(model.tokens), "", kShape);
    const Formula products =
        12 * in("channels", real(model.heads * model.head), "", kShape) * sequence * tokens() / tp() /
        (of_.software.fused_attention
             ? in("rate", peak() * kAttentionEfficiency, "FLOP/s", "FlashAttention-3's paper, 2024, on version 2")
             : in("rate", peak() * product_efficiency(of_).value, "FLOP/s", kProductRate));
    if (of_.software.fused_attention) return layers() * products;
    return layers() * (products + tokens() * in("heads", real(model.heads), "", kShape) * sequence / tp() *
                                      in("bytes of a score", kScoreTraffic, "B", kCounted) / memory());
  }
  Formula output_layer() const {
    const Formula product = 6 * vocabulary() * in(width()) * tokens() / tp() / product_rate();
    return of_.layout.tp == 1 ? product : product + 2 * gathered() / tp_link();
  }
  Formula expert_tokens() const {
    const Formula ep = in("ep", of_.layout.ep, "", kLayout);
    return layers() * 4 * Formula(kBf16Bytes, "2 B") * tokens() / tp() * in(width()) *
           in("chosen", real(of_.model.experts.chosen), "", kShape) * (ep - 1) / ep /
           in("link", link_of(of_, of_.layout.ep * of_.layout.tp, node_of(of_)), "B/s", kCluster);
  }

  const StepQuestion& of_;
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

// What the fullest stage has too much, where that costs time. In pipelines over several nodes it shows as a stall of
// another kind, which is not modelled.
double over_gibibytes(const StepQuestion& of) {
  if (of.software.remap_seconds_per_gibibyte <= 0 || (of.layout.pp > 1 && of.layout.nodes > 1)) return 0;
  return std::max(0.0, peak_bytes(of) - of.cluster.accelerator.memory_bytes * kCardShare) / kGibibyte;
}

StepPrediction completed(const StepQuestion& question, StepPrediction prediction) {
  const TrainingLayout& layout = question.layout;
  const double tokens = static_cast<double>(layout.dp) * layout.micro_batch * layout.accumulation *
                        static_cast<double>(question.model.tokens);
  prediction.tokens_per_second = tokens / prediction.step_seconds();
  prediction.fits = fits(total(prediction.bytes), question.cluster, question.software);
  return prediction;
}

// In place of two moments for every parameter: one, half of that, for those of Muon.
void exchange_moments(const StepQuestion& question, std::vector<Term>& bytes) {
  const double share = question.model.muon_parameters() / question.model.parameters();
  for (Term& term : bytes)
    if (term.kind == &terms::two_moments)
      term = term_of(terms::muon_state, Formula({term.kind->name, term.amount, "B", "the same layout with AdamW"}) *
                                            (1 - Formula({"Muon's share", share, "", "the model's tensors"}) / 2));
}

}  // namespace

std::vector<Term> training_seconds(const StepQuestion& question) {
  const StepQuestion amounts = question.unexplained();
  const std::vector<Stage> stages = fill_stages(question.model, question.layout.pp, question.software);
  const auto formulas_of = [&stages](const StepQuestion& of, std::size_t stage) {
    return StageFormulas(of, stages[stage], stage + 1 == stages.size());
  };
  std::vector<StageSeconds> seconds;  // of each stage
  std::size_t slowest = 0, last = 0;  // the stages with the longest slot and with the longest ending
  double all_slots = 0;               // their sum
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageFormulas formulas = formulas_of(amounts, i);
    StageSeconds each{total(formulas.slots(1)), formulas.host().value};
    each.ending = total(formulas.ending(each.slot()));
    all_slots += each.slot();
    seconds.push_back(each);
    if (each.slot() > seconds[slowest].slot()) slowest = i;
    if (each.ending > seconds[last].ending) last = i;
  }

  const auto in = [&question](const TermInput& named) { return question.in(named); };
  const auto& [accelerator, host, ending] = seconds[slowest];
  const Formula m = in({"m", real(question.layout.accumulation), "", kLayout});
  const StageFormulas formulas = formulas_of(question, slowest);
  std::vector<Term> terms = formulas.slots(m);
  if (host > accelerator)
    terms.push_back(
        term_of(slow_path(question) ? terms::slow_host : terms::host,
                m * (formulas.host() - in({"accelerator", accelerator, "s", "the terms above, of one micro-batch"}))));
  if (stages.size() > 1)
    terms.push_back(term_of(terms::fill_and_drain,
                            (in({"all stages' slots", all_slots, "s", "one micro-batch through all stages"}) -
                             in({"the longest", seconds[slowest].slot(), "s", "the terms above, of one micro-batch"})) /
                                in({"chunks", real(question.layout.chunks), "", kLayout})));
  if (const double over = over_gibibytes(question); over > 0)
    terms.push_back(
        term_of(terms::memory_mapped, m * in({"GiB beyond the card", over, "", "the fullest stage"}) *
                                          in({"seconds", question.software.remap_seconds_per_gibibyte, "s", kFitted})));
  for (Term& term : formulas_of(question, last).ending(seconds[last].slot())) terms.push_back(std::move(term));
  return terms;
}

double step_seconds(const StepQuestion& question) { return total(training_seconds(question.unexplained())); }

StepPrediction predict_adamw(const StepQuestion& question) {
  StepPrediction prediction;
  prediction.seconds = training_seconds(question);
  prediction.bytes = training_bytes(question);
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonCost& muon) {
  StepPrediction prediction = predict_adamw(question);
  prediction.seconds.insert(prediction.seconds.end(), muon.terms.begin(), muon.terms.end());
  prediction.muon = muon_share(question.model, question.layout, muon.flops, muon.ns_steps);
  prediction.muon_seconds = muon.seconds();
  prediction.muon_band = total_band(muon.terms);
  exchange_moments(question, prediction.bytes);
  // The optimizer's step comes when activations are gone: its memory counts only where it is more than theirs.
  double activations = 0;
  for (const Term& term : prediction.bytes)
    if (term.kind->when == TermKind::transient) activations += term.amount;
  if (muon.transient_bytes > activations)
    prediction.bytes.push_back(
        term_of(terms::gathered_matrices,
                Formula({"the most at one time", muon.transient_bytes, "B", "the plan of the busiest rank"}) -
                    Formula({"activations", activations, "B", "which are gone by then"})));
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonSetup& setup) {
  return predict_muon(question, muon_cost(question.model, question.layout, setup, question.cluster));
}

std::string muon_share_text(const StepPrediction& prediction) {
  const MuonShare& share = *prediction.muon;
  const double adamw = prediction.step_seconds() - prediction.muon_seconds;
  const auto [least, most] = prediction.muon_band;
  return fmt::format(
      "Muon's products over the model's: T · m / B = {} · {} / {} = {:.3g} %, times {:.3g} for ranks that repeat them "
      "or wait: {:.3g} %. In time, with its transfers: {:.3g} % of the step with AdamW, from {:.3g} to {:.3g} %",
      share.steps, number_text(std::llround(share.side)), number_text(std::llround(share.batch_tokens)),
      100 * share.once(), share.repeats, 100 * share.all(), 100 * prediction.muon_seconds / adamw, 100 * least / adamw,
      100 * most / adamw);
}

}  // namespace muonwalk::sim
