#include "tools/scale/run_prediction.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/training_time.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kRun[] = "the run file";
constexpr char kRead[] = "the GPU's bandwidth, 90 % of it";

// Bytes per element that AdamW reads and writes besides a gradient: two moments and the weight, in float32, both ways.
// That gradients are clipped and cleared is the same for both.
constexpr double kAdamWTraffic = 24;
// Muon: momentum and Nesterov in three kernels of 12 B; the new weights in two, a cast and a sum, of 18 B together.
constexpr double kMomentumTraffic = 36, kMomentumKernels = 3, kUpdateTraffic = 18, kUpdateKernels = 2;
// How a prediction leans where nobody measured, and what that makes of launches, links and products: hosts differ by a
// factor of two; busy links reach half of idle ones; and nobody's products are those that were timed, whose band is
// read at its low or its high end.
struct Leaning {
  double launch, link, products;
  double ProductEfficiency::*end;
  bool hides;  // transfers behind Newton–Schulz
};
constexpr Leaning kFast = {0.6, 1.2, 1.15, &ProductEfficiency::high, true},
                  kMiddle = {1, 1, 1, &ProductEfficiency::value, false},
                  kSlow = {2, 0.5, 0.75, &ProductEfficiency::low, false};
// A step is off by so much (validate); and a pair has this noise: dmuon's pairs of one model, FSDP-Z2 and HSDP-Z3,
// differ by 2 to 7 % of a step (X-Square-Robot/dmuon, README at 001f582).
constexpr double kStepError = 0.25, kRunNoise = 0.025;
// A kernel that a Python loop launches takes as long as so many in a compiled graph: 10 µs where these take 4.
constexpr double kEagerLaunches = 2.5;
// A call of DTensor takes as long as so many launches: torch's dispatch through Python (pytorch/pytorch 134191).
constexpr double kDTensorLaunches = 10;

// A kernel takes its work, but not less than a launch.
struct KernelTime {
  double work = 0, seconds = 0, flops_or_bytes = 0;
  bool waits = false;

  void add(double of_work, double launch, double amount, double times) {
    work += times * of_work;
    seconds += times * std::max(of_work, launch);
    flops_or_bytes += times * amount;
    waits = waits || of_work < launch;
  }
  void add(const KernelTime& other, double times) {
    work += times * other.work;
    seconds += times * other.seconds;
    flops_or_bytes += times * other.flops_or_bytes;
  }
};

// Newton–Schulz of one matrix.
struct MatrixTime {
  KernelTime products, elementwise;
  double seconds() const { return products.seconds + elementwise.seconds; }
  void add(const MatrixTime& other, double times) {
    products.add(other.products, times);
    elementwise.add(other.elementwise, times);
  }
};

// What Muon does on the busiest rank.
struct MuonWork {
  MatrixTime time;              // of Newton–Schulz
  double owned = 0;             // elements whose momentum it keeps
  double transient = 0;         // bytes that it holds for a moment
  std::vector<Term> transfers;  // what it sends
};

// What a matrix of Muon's means for one rank of the stage.
struct StageClass {
  const RunMatrices* of = nullptr;
  double count = 0;
  MatrixTime time;
};

class RunModel {
 public:
  RunModel(const TrainingRun& run, const Leaning& leaning) : run_(run), leaning_(leaning) {
    launch_ = run.launch * leaning_.launch;
    device_ = run.cluster.accelerator;
    device_.flops_per_second = run.newton_schulz_flops_per_second;
    element_ = run.precision == Precision::fp32 ? 4 : 2;
    read_ = device_.memory_bytes_per_second * kMemoryEfficiency;
  }

  RunAnswer predict() {
    const StepQuestion question{run_.model, run_.cluster, run_.software, run_.layout};
    const std::string why = why_it_cannot_run(run_.model, run_.layout, run_.software);
    if (!why.empty()) throw UsageError(why);
    RunAnswer prediction;
    std::vector<Term> both;
    for (Term& term : training_seconds(question)) {
      const bool shards = term.kind == &terms::gradient_sum || term.kind == &terms::weight_gather;
      if (term.kind != &terms::adamw && !(run_.shards_parameters() && shards)) both.push_back(std::move(term));
    }
    count_parameters();
    if (shards_all() && run_.shard > 1) add_shard_traffic(both);
    prediction.adamw.seconds = prediction.muon.seconds = both;
    add(prediction.adamw, adamw_term(dense_ + experts_ + tables_));
    add(prediction.muon, adamw_term(dense_ + experts_ + tables_ - muon_));
    MuonWork work;
    if (muon_ > 0) {
      replace_weight_gather(prediction.muon.seconds);
      work = muon_work();
      add_muon(work, prediction.muon);
    }
    prediction.sent = sent_;
    prediction.adamw.bytes = memory(0, {});
    prediction.muon.bytes = memory(muon_, work);
    describe(prediction);
    return prediction;
  }

 private:
  static Formula in(const char* name, double value, const char* unit, const char* source) {
    return Formula({name, value, unit, source});
  }
  // A term of the optimizer's. What one sends is Muon's: that of AdamW is with forward and backward.
  void add(RunStep& step, Term term) {
    step.optimizer += term.amount;
    if (term.kind == &terms::newton_schulz || term.kind == &terms::newton_schulz_elementwise)
      step.newton_schulz += term.amount;
    if (term.bytes_sent > 0) sent_[collective_name(term.kind->collective)] += term.bytes_sent;
    step.seconds.push_back(std::move(term));
  }

  // ── Parameters of the fullest stage, on one rank

  double stage_share() const {
    const double layers = static_cast<double>(run_.model.layers), pp = run_.layout.pp;
    return pp == 1 ? 1 : std::ceil(layers / pp) / layers;
  }
  double stage_count(const RunMatrices& each) const {
    const double count = static_cast<double>(each.count);
    return std::max(1.0, std::round(count * stage_share() / (each.expert() ? run_.layout.ep : 1)));
  }
  void count_parameters() {
    for (const RunMatrices& each : run_.matrices) {
      const double elements = stage_count(each) * each.elements() / run_.layout.tp;
      (each.expert() ? experts_ : dense_) += elements;
      if (each.muon) muon_ += elements;
    }
    tables_ = run_.table_parameters / run_.layout.tp / (run_.layout.pp > 1 ? 2 : 1);
  }
  double state_shares() const {
    return run_.sharding == ParameterSharding::ddp ? 1 : shards_all() ? run_.shard : run_.layout.dp;
  }
  bool shards_all() const { return run_.shards_parameters(); }

  // ── AdamW, and what moves for both

  Term adamw_term(double parameters) const {
    const double store = run_.weight_bytes < 4 ? run_.weight_bytes : 0;
    return term_of(terms::adamw, in("parameters", parameters, "", "of one rank, those of AdamW") *
                                     in("bytes", kAdamWTraffic + store + run_.gradient_bytes, "B",
                                        "two moments, weight and gradient, read and written") /
                                     (in("shares", state_shares(), "", "of the optimizer's state") *
                                      in("memory", read_, "B/s", kRead)));
  }

  // FSDP2 gathers weights before forward and backward of every micro-batch and scatters its gradients, each layer
  // while another one computes; the first one can't hide.
  void add_shard_traffic(std::vector<Term>& both) const {
    double slot = 0;
    for (const Term& term : both)
      if (term.kind->when == TermKind::in_micro_batches) slot += term.amount / run_.layout.accumulation;
    const double parameters = dense_ + experts_ + tables_;
    const int tp = run_.layout.tp;
    const double moved =
        collective(CollectiveKind::all_gather, 2 * kBf16Bytes * parameters, run_.shard, tp).total() +
        collective(CollectiveKind::reduce_scatter, run_.gradient_bytes * parameters, run_.shard, tp).total();
    const double layers = static_cast<double>(run_.model.layers);
    both.push_back(term_of(terms::shard_traffic,
                           in("m", run_.layout.accumulation, "", kRun) *
                               (at_least_0(in("gathers and scatters", moved, "s", "weights twice, gradients once") *
                                               (1 - 1 / in("layers", layers, "", kRun)) -
                                           in("slot", slot, "s", "forward and backward of a micro-batch")) +
                                in("of the first layer", moved / layers, "s", "which nothing hides"))));
    if (const int replicas = run_.layout.dp / run_.shard; replicas > 1) {
      const double all = collective(CollectiveKind::all_reduce, run_.gradient_bytes * parameters / run_.shard, replicas,
                                    run_.shard * tp)
                             .total();
      both.push_back(term_of(terms::replica_sum, at_least_0(in("all-reduce", all, "s", "of a shard's gradients") -
                                                            Formula(2.0 / 3, "2/3") * in("slot", slot, "s", "above"))));
    }
  }

  // With ZeRO-1, results that come to all ranks are new weights already.
  void replace_weight_gather(std::vector<Term>& seconds) const {
    if (run_.sharding != ParameterSharding::zero1 || run_.who > Orthogonalizers::dealt) return;
    const double share = muon_ / (dense_ + experts_ + tables_);
    for (Term& term : seconds)
      if (term.kind == &terms::weight_gather)
        term = term_of(terms::weight_gather, in("AdamW's gather", term.amount, "s", "ZeRO-1") *
                                                 (1 - in("Muon's share", share, "", "which travels otherwise")));
  }

  // ── Collectives

  // `bytes` in `calls` calls over ranks that are `stride` apart. A call waits for its latency once per doubling of
  // the ranks, as NCCL takes trees where messages are small.
  CollectiveSeconds collective(CollectiveKind kind, double bytes, int ranks, int stride, double calls = 1) const {
    CollectiveSeconds time;
    if (ranks == 1) return time;
    const GroupSpread spread = group_spread(run_.cluster, ranks, stride);
    const bool broadcast = kind == CollectiveKind::broadcast;
    time.transfer =
        collective_seconds(broadcast ? CollectiveKind::all_gather : kind, bytes, run_.cluster, spread).transfer;
    if (broadcast) time.transfer *= ranks / (ranks - 1.0);
    time.transfer /= leaning_.link;
    for (std::size_t l = 0; l < spread.widths.size(); ++l)
      time.latency += calls * std::ceil(std::log2(spread.widths[l])) * run_.cluster.levels[l].latency_seconds;
    if (kind == CollectiveKind::all_reduce) time.latency *= 2;
    time.latency = std::max(time.latency, calls * launch_);
    return time;
  }

  void add_transfer(const TermKind& kind, double bytes, int ranks, int stride, double calls, MuonWork& work) const {
    if (ranks == 1 || bytes == 0) return;
    const CollectiveSeconds time = collective(kind.collective, bytes, ranks, stride, calls);
    const double sent = (kind.collective == CollectiveKind::all_reduce ? 2 : 1) * bytes * (ranks - 1.0) / ranks;
    work.transfers.push_back(
        term_of(kind, in("calls", calls, "", "of one rank") * in("wait", time.latency / calls, "s", kRun) +
                          in("bytes", sent, "B", "sent by one rank, as a ring sends them") /
                              in("bandwidth", sent / time.transfer, "B/s", "the run's links")));
    work.transfers.back().bytes_sent = sent;
  }

  // ── Newton–Schulz

  double product_seconds(double flops) const {
    const double reached = product_efficiency(device_, flops).*leaning_.end;
    return flops / (device_.flops_per_second * std::min(1.0, leaning_.products * reached));
  }

  // One matrix, of whose products this rank computes a part.
  MatrixTime newton_schulz(Shape shape, double part = 1, double launches = 1) const {
    const double m = static_cast<double>(std::min(shape.rows, shape.cols)),
                 n = static_cast<double>(std::max(shape.rows, shape.cols)), steps = run_.ns_steps,
                 half = run_.symmetric ? 0.5 : 1;
    MatrixTime time;
    launches *= run_.compiled ? 1 : kEagerLaunches;
    const auto product = [&](double flops, double times) {
      time.products.add(product_seconds(flops * part), launches * launch_, flops * part, times);
    };
    const auto pass = [&](double elements, double times) {
      time.elementwise.add(part * elements * element_ / read_, launches * launch_, part * elements * element_, times);
    };
    if (run_.gram) {
      const double begins = steps < kGramBeginsAnew ? 1 : 2;
      product(half * 2 * m * m * n, begins);
      product(2 * m * m * n, begins);
      product(half * 2 * m * m * m, 4 * steps - 3 * begins);
    } else {
      product(half * 2 * m * m * n, steps);
      product(half * 2 * m * m * m, steps);
      product(2 * m * m * n, steps);
    }
    const double rows = run_.gram ? m : n;
    if (run_.compiled) {  // b A + c A², and a X + B X
      pass(3 * m * m, steps);
      pass(3 * m * rows, steps);
    } else {
      pass(2 * m * m, 2 * steps);
      pass(3 * m * m, steps);
      pass(2 * m * rows, steps);
      pass(3 * m * rows, steps);
    }
    pass(2 * m * n, run_.compiled ? 3 : 6);  // cast, norm, quotient; the scale of the result
    return time;
  }

  std::vector<StageClass> classes(bool experts) const {
    std::vector<StageClass> all;
    for (const RunMatrices& each : run_.matrices)
      if (each.muon && each.expert() == experts) all.push_back({&each, stage_count(each), newton_schulz(each.shape)});
    return all;
  }

  // How many of each class the busiest of `ranks` owners has, dealt out from the longest on.
  static std::vector<double> dealt(const std::vector<StageClass>& all, int ranks) {
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return all[a].time.seconds() > all[b].time.seconds(); });
    using Load = std::pair<double, int>;
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (int rank = 0; rank < ranks; ++rank) loads.emplace(0.0, rank);
    std::vector<std::vector<double>> owned(static_cast<std::size_t>(ranks), std::vector<double>(all.size()));
    Load busiest{0, 0};
    for (const std::size_t i : order)
      for (double n = 0; n < all[i].count; ++n) {
        auto [load, rank] = loads.top();
        loads.pop();
        load += all[i].time.seconds();
        ++owned[static_cast<std::size_t>(rank)][i];
        loads.emplace(load, rank);
        busiest = std::max(busiest, Load{load, rank});
      }
    return owned[static_cast<std::size_t>(busiest.second)];
  }

  MuonWork muon_work() const {
    MuonWork work;
    if (run_.who == Orthogonalizers::strategy)
      add_strategy(work);
    else
      for (const bool experts : {false, true})
        if (const std::vector<StageClass> all = classes(experts); !all.empty())
          add_group(all, experts ? run_.layout.ep : 1, work);
    return work;
  }

  void add_muon(const MuonWork& work, RunStep& step) {
    add_newton_schulz(work.time, step);
    const double held = muon_ / (shards_all() ? run_.shard : 1);
    const double momenta = kMomentumTraffic * work.owned, weights = kUpdateTraffic * held;
    const double waits = std::max(0.0, muon_kernels() * kEagerLaunches * launch_ - (momenta / read_ + weights / read_));
    add(step, term_of(terms::muon_elementwise,
                      in("bytes", momenta + weights, "B", "momentum of what it owns, weights of what it holds") /
                              in("memory", read_, "B/s", kRead) +
                          in("waiting for launches", waits, "s", "beyond that")));
    for (Term term : work.transfers) {
      if (leaning_.hides && run_.who != Orthogonalizers::strategy)
        term.amount = std::max(0.0, term.amount - step.newton_schulz);
      add(step, term);
    }
  }

  // Of momenta and new weights. Experts lie in stacks; of a strategy of lesson 16, an owner has what it owns.
  double muon_kernels() const {
    double count = 0;
    for (const RunMatrices& each : run_.matrices)
      if (each.muon) count += std::ceil(stage_count(each) / (each.expert() ? experts_of_a_rank() : 1));
    const double owners = run_.layout.dp;
    if (run_.who == Orthogonalizers::strategy) return std::ceil(count / owners) * (kUpdateKernels + kMomentumKernels);
    return count * kUpdateKernels + count * kMomentumKernels / (run_.who == Orthogonalizers::dealt ? owners : 1);
  }
  double experts_of_a_rank() const {
    return std::max(1.0, static_cast<double>(run_.model.experts.count) / run_.layout.ep);
  }

  void add_newton_schulz(const MatrixTime& time, RunStep& step) {
    const KernelTime &products = time.products, &passes = time.elementwise;
    const double peak = device_.flops_per_second, flops = products.flops_or_bytes;
    add(step, term_of(terms::newton_schulz,
                      in("FLOPs", flops, "FLOP", "of the busiest rank") /
                              (in("peak", peak, "FLOP/s", kRun) *
                               in("efficiency", products.work > 0 ? flops / (products.work * peak) : 1, "",
                                  product_efficiency(device_, flops).source)) +
                          in("waiting for launches", products.seconds - products.work, "s", "of small products")));
    add(step, term_of(terms::newton_schulz_elementwise,
                      in("bytes", passes.flops_or_bytes, "B", run_.compiled ? "fused" : "kernel by kernel") /
                              in("memory", read_, "B/s", kRead) +
                          in("waiting for launches", passes.seconds - passes.work, "s", "of small kernels")));
  }

  void add_group(const std::vector<StageClass>& all, int ep, MuonWork& work) const {
    const int tp = run_.layout.tp, dp = run_.layout.dp / ep, shard = std::max(1, std::min(run_.shard, dp));
    const bool deals = run_.who == Orthogonalizers::dealt || run_.who == Orthogonalizers::owner_all_to_all;
    const std::vector<double> mine = deals ? dealt(all, dp) : std::vector<double>();
    double bytes = 0, count = 0, gathered = 0, gathers = 0, largest = 0, products = 0;
    const bool spread = run_.who == Orthogonalizers::sharded_products;
    const int parts = shards_all() ? shard : tp;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const StageClass& each = all[i];
      const double here = deals ? mine[i] : each.count, elements = each.of->elements(),
                   slice = elements * element_ / tp;
      const MatrixTime one =
          spread ? newton_schulz(each.of->shape, 1.0 / parts, kDTensorLaunches / (run_.compiled ? 1 : kEagerLaunches))
                 : each.time;
      work.time.add(one, here);
      work.owned += here * elements / tp / (deals ? 1 : shards_all() ? shard : 1);
      bytes += each.count * slice;
      count += each.count;
      if (tp > 1 && each.of->tp_split_dim != SplitDim::none) gathered += here * slice * tp, gathers += here;
      largest = std::max(largest, elements * element_);
      const double m = static_cast<double>(std::min(each.of->shape.rows, each.of->shape.cols));
      products += each.count * run_.ns_steps * (2 * elements + m * m) * element_ / (shards_all() ? 1 : tp);
    }
    work.transient = std::max(work.transient, 3 * largest + (deals && !shards_all() ? bytes : 0));
    const auto move = [&](const TermKind& kind, double of_all, int ranks, int stride, double calls) {
      add_transfer(kind, of_all, ranks, stride, calls, work);
    };
    if (spread) {
      move(terms::muon_all_gather, products, parts, shards_all() ? tp : 1, 3.0 * run_.ns_steps * count);
      return;
    }
    if (gathers > 0) move(terms::tp_gather, gathered, tp, 1, gathers);
    const int stride = tp * ep;
    const bool cut = run_.sharding != ParameterSharding::ddp;  // gradients lie in shards
    const int group = run_.sharding == ParameterSharding::zero1 ? dp : shard;
    if (run_.who == Orthogonalizers::all) {
      if (cut) move(terms::muon_all_gather, bytes, group, stride, count);
      return;
    }
    if (run_.who == Orthogonalizers::owner_all_to_all && cut) {
      move(terms::muon_all_to_all, 2 * bytes / group, group, stride, 2 * std::ceil(count / dp));
      return;
    }
    if (shards_all()) move(terms::muon_all_to_all, bytes / group, group, stride, std::ceil(count / dp));
    if (run_.then == Return::all_reduce && deals) return move(terms::muon_all_reduce, bytes, dp, stride, 1);
    if (run_.then == Return::broadcast) return move(terms::muon_broadcast, bytes, dp, stride, count);
    move(terms::muon_all_gather, bytes, dp, stride, std::ceil(count / dp));
  }

  // By the plan of a strategy: what travels is muon_cost's, the kernels are those of each matrix in it.
  void add_strategy(MuonWork& work) const {
    MuonSetup setup;
    setup.strategy = run_.strategy;
    setup.settings.newton_schulz.steps = run_.ns_steps;
    setup.settings.newton_schulz.precision = run_.precision;
    for (const bool experts : {false, true}) {
      std::vector<Parameter> matrices;
      for (const RunMatrices& each : run_.matrices)
        for (double n = 0; each.muon && each.expert() == experts && n < stage_count(each); ++n)
          matrices.push_back({each.name + "." + std::to_string(matrices.size()), each.shape, each.tp_split_dim});
      if (matrices.empty()) continue;
      const int dp = run_.layout.dp / (experts ? run_.layout.ep : 1), tp = run_.layout.tp;
      const MuonCost cost = muon_cost(
          matrices, dp, tp, tp * (run_.layout.dp / dp), megatron_bucket(dp), setup, run_.cluster, [&](const Work& of) {
            const double part = of.flops / newton_schulz_flops(of.shape.rows, of.shape.cols, run_.ns_steps);
            work.time.add(newton_schulz(of.shape, std::min(1.0, part)), 1.0 / run_.strategy.period);
          });
      for (const Term& term : cost.terms)
        if (term.kind != &terms::newton_schulz) work.transfers.push_back(term);
      work.transient = std::max(work.transient, cost.transient_bytes);
    }
    work.owned += muon_ / run_.layout.dp;
  }

  // ── Memory

  std::vector<Term> memory(double muons, const MuonWork& work) const {
    const double all = dense_ + experts_ + tables_, shares = shards_all() ? run_.shard : 1;
    const double state = kMomentBytes * (all - muons) / state_shares() + 4 * work.owned;
    std::vector<Term> bytes = {
        term_of(terms::parameters_and_state,
                in("parameters", all, "", "of one rank, whole") *
                        in("bytes", run_.weight_bytes + run_.gradient_bytes, "B", "weight and gradient") /
                        in("shards", shares, "", kRun) +
                    in("parameters", all, "", "") * in("masters", run_.master_bytes, "B", kRun) /
                        in("shares", state_shares(), "", "of the optimizer's state") +
                    in("state", state, "B", muons > 0 ? "AdamW's two moments, Muon's momentum" : "two moments"))};
    double gone = 0;
    for (Term& term : stage_bytes({run_.model, run_.cluster, run_.software, run_.layout}, 0))
      if (term.kind->when == TermKind::transient && term.amount > 0) {
        gone += term.amount;
        bytes.push_back(std::move(term));
      }
    if (work.transient > gone)
      bytes.push_back(
          term_of(terms::gathered_matrices, in("the most at one time", work.transient, "B", "Newton–Schulz") -
                                                in("activations", gone, "B", "which are gone by then")));
    return bytes;
  }

  void describe(RunAnswer& prediction) const {
    // 2 side³ FLOPs take a launch.
    double low = 1, high = 1e6;
    for (int i = 0; i < 60; ++i) {
      const double side = std::sqrt(low * high);
      (product_seconds(2 * side * side * side) < launch_ ? low : high) = side;
    }
    prediction.least_side = low;
    double weighed = 0, elements = 0;
    for (const RunMatrices& each : run_.matrices) {
      if (!each.muon) continue;
      const double count = static_cast<double>(each.count);
      prediction.matrices += count;
      if (newton_schulz(each.shape).products.waits) prediction.waiting_matrices += count;
      weighed += each.all_elements() * static_cast<double>(std::min(each.shape.rows, each.shape.cols));
      elements += each.all_elements();
    }
    if (elements > 0) prediction.jordan = run_.ns_steps * weighed / elements / run_.tokens;
  }

  const TrainingRun& run_;
  const Leaning& leaning_;
  Accelerator device_;  // whose peak is that of Newton–Schulz
  double launch_ = 0, element_ = 2, read_ = 0;
  double dense_ = 0, experts_ = 0, tables_ = 0, muon_ = 0;  // elements of one rank, whole
  std::map<std::string, double> sent_;
};

}  // namespace

RunAnswer predict_run(const TrainingRun& run) { return RunModel(run, kMiddle).predict(); }

std::pair<RunBand, RunBand> band_of(const TrainingRun& run) {
  const double step = predict_run(run).adamw.step();
  const double least = RunModel(run, kFast).predict().extra() - kRunNoise * step,
               most = RunModel(run, kSlow).predict().extra() + kRunNoise * step;
  // A step that is longer than predicted makes the share smaller.
  const auto share = [step](double extra, double error) { return extra / (step * (1 + (extra > 0 ? error : -error))); };
  return {{least, share(least, kStepError)}, {most, share(most, -kStepError)}};
}

}  // namespace muonwalk::sim
