#include "tools/scale/run_prediction.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/counted_traffic.hpp"
#include "tools/scale/muon_cost.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/training_memory.hpp"
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
// What a leaning makes of launches, links and the rest of a step: hosts differ by a factor of two; busy links reach
// half of idle ones; and steps are off by so much (validate).
constexpr double kSlowLaunch = 2, kFastLaunch = 0.6, kSlowLink = 0.5, kFastLink = 1.2, kStepError = 0.25;
// Nobody's products are those that were timed; and a pair has this noise: dmuon's pairs of one model, FSDP-Z2 and
// HSDP-Z3, differ by 2 to 7 % of a step (X-Square-Robot/dmuon, README at 001f582).
constexpr double kSlowProducts = 0.75, kFastProducts = 1.15, kRunNoise = 0.025;
// A kernel that a Python loop launches by itself takes as long as so many in a compiled graph: 10 µs where these
// take 4.
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
};

// What a matrix of Muon's means for one rank of the stage.
struct StageClass {
  const RunMatrices* of = nullptr;
  double count = 0;
  MatrixTime time;
};

class RunModel {
 public:
  RunModel(const TrainingRun& run, Leaning leaning) : run_(run), leaning_(leaning) {
    launch_ = run.launch * (leaning == Leaning::slow ? kSlowLaunch : leaning == Leaning::fast ? kFastLaunch : 1);
    link_ = leaning == Leaning::slow ? kSlowLink : leaning == Leaning::fast ? kFastLink : 1;
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
    if (muon_ > 0) {
      replace_weight_gather(prediction.muon.seconds);
      add_muon(prediction.muon);
    }
    prediction.sent = sent_;
    prediction.adamw.bytes = memory(0, 0);
    prediction.muon.bytes = memory(muon_, transient_);
    describe(prediction);
    return prediction;
  }

 private:
  static Formula in(const char* name, double value, const char* unit, const char* source) {
    return input<Formula>({name, value, unit, source});
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
    return std::max(1.0, std::round(each.count * stage_share() / (each.expert ? run_.layout.ep : 1)));
  }
  void count_parameters() {
    for (const RunMatrices& each : run_.matrices) {
      const double elements = stage_count(each) * each.elements() / run_.layout.tp;
      (each.expert ? experts_ : dense_) += elements;
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
        collective(CollectiveKind::all_gather, 2 * kBf16Bytes * parameters, run_.shard, tp).seconds +
        collective(CollectiveKind::reduce_scatter, run_.gradient_bytes * parameters, run_.shard, tp).seconds;
    const double layers = static_cast<double>(run_.model.layers);
    both.push_back(term_of(
        terms::shard_traffic,
        in("m", run_.layout.accumulation, "", kRun) *
            (at_least_0(in("gathers and scatters", moved, "s", "weights twice, gradients once") *
                            (number<Formula>(1, "1") - number<Formula>(1, "1") / in("layers", layers, "", kRun)) -
                        in("slot", slot, "s", "forward and backward of a micro-batch")) +
             in("of the first layer", moved / layers, "s", "which nothing hides"))));
    if (const int replicas = run_.layout.dp / run_.shard; replicas > 1) {
      const double all = collective(CollectiveKind::all_reduce, run_.gradient_bytes * parameters / run_.shard, replicas,
                                    run_.shard * tp)
                             .seconds;
      both.push_back(
          term_of(terms::replica_sum, at_least_0(in("all-reduce", all, "s", "of a shard's gradients") -
                                                 number<Formula>(2.0 / 3, "2/3") * in("slot", slot, "s", "above"))));
    }
  }

  // With ZeRO-1, results that come to all ranks are new weights already.
  void replace_weight_gather(std::vector<Term>& seconds) const {
    if (run_.sharding != ParameterSharding::zero1 || run_.who > Orthogonalizers::dealt) return;
    const double share = muon_ / (dense_ + experts_ + tables_);
    for (Term& term : seconds)
      if (term.kind == &terms::weight_gather)
        term = term_of(terms::weight_gather,
                       in("AdamW's gather", term.amount, "s", "ZeRO-1") *
                           (number<Formula>(1, "1") - in("Muon's share", share, "", "which travels otherwise")));
  }

  // ── Collectives

  struct Collective {
    double wait = 0, transfer = 0, seconds = 0;
  };
  // `bytes` in `calls` calls over ranks that are `stride` apart. A call waits for its latency once per doubling of
  // the ranks, as NCCL takes trees where messages are small.
  Collective collective(CollectiveKind kind, double bytes, int ranks, int stride, double calls = 1) const {
    Collective time;
    if (ranks == 1) return time;
    const GroupSpread spread = group_spread(run_.cluster, ranks, stride);
    const bool broadcast = kind == CollectiveKind::broadcast;
    time.transfer =
        collective_seconds(broadcast ? CollectiveKind::all_gather : kind, bytes, run_.cluster, spread).transfer;
    if (broadcast) time.transfer *= ranks / (ranks - 1.0);
    time.transfer /= link_;
    for (std::size_t l = 0; l < spread.widths.size(); ++l)
      time.wait += calls * std::ceil(std::log2(spread.widths[l])) * run_.cluster.levels[l].latency_seconds;
    if (kind == CollectiveKind::all_reduce) time.wait *= 2;
    time.wait = std::max(time.wait, calls * launch_);
    time.seconds = time.wait + time.transfer;
    return time;
  }

  void add_transfer(const TermKind& kind, double bytes, int ranks, int stride, double calls, RunStep& step) {
    if (ranks == 1 || bytes == 0) return;
    const Collective time = collective(kind.collective, bytes, ranks, stride, calls);
    const double sent = (kind.collective == CollectiveKind::all_reduce ? 2 : 1) * bytes * (ranks - 1.0) / ranks;
    Formula seconds = in("calls", calls, "", "of one rank") * in("wait", time.wait / calls, "s", kRun) +
                      in("bytes", sent, "B", "sent by one rank, as a ring sends them") /
                          in("bandwidth", sent / time.transfer, "B/s", "the run's links");
    if (leaning_ == Leaning::fast)
      seconds = at_least_0(seconds - in("Newton–Schulz", step.newton_schulz, "s", "which may hide it"));
    Term term = term_of(kind, std::move(seconds));
    term.bytes_sent = sent;
    add(step, std::move(term));
  }

  // ── Newton–Schulz

  double product_seconds(double flops) const {
    const ProductEfficiency efficiency = product_efficiency(device_, flops);
    return flops /
           (device_.flops_per_second * (leaning_ == Leaning::slow   ? kSlowProducts * efficiency.low
                                        : leaning_ == Leaning::fast ? std::min(1.0, kFastProducts * efficiency.high)
                                                                    : efficiency.value));
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
      const double begins = steps > 2 ? 2 : 1;  // it begins anew after two steps
      product(half * 2 * m * m * n, begins);
      product(2 * m * m * n, begins);
      product(half * 2 * m * m * m, 3 * steps - 1);
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
      if (each.muon && each.expert == experts) all.push_back({&each, stage_count(each), newton_schulz(each.shape)});
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

  void add_muon(RunStep& step) {
    MatrixTime time;
    double owned = 0;  // elements whose momentum this rank keeps
    std::vector<std::function<void()>> transfers;
    if (run_.who == Orthogonalizers::strategy)
      by_strategy(time, owned, transfers, step);
    else
      for (const bool experts : {false, true})
        if (const std::vector<StageClass> all = classes(experts); !all.empty())
          by_group(all, experts ? run_.layout.ep : 1, time, owned, transfers, step);
    add_newton_schulz(time, step);
    KernelTime update;
    const double kernels = muon_kernels(), held = muon_ / (shards_all() ? run_.shard : 1);
    update.add(kMomentumTraffic * owned / read_, 0, kMomentumTraffic * owned, 1);
    update.add(kUpdateTraffic * held / read_, 0, kUpdateTraffic * held, 1);
    const double waits = std::max(0.0, kernels * kEagerLaunches * launch_ - update.work);
    add(step, term_of(terms::muon_elementwise,
                      in("bytes", update.flops_or_bytes, "B", "momentum of what it owns, weights of what it holds") /
                              in("memory", read_, "B/s", kRead) +
                          in("waiting for launches", waits, "s", "beyond that")));
    momentum_bytes_ = 4 * owned;
    for (const auto& transfer : transfers) transfer();
  }

  // Of momenta and new weights. Experts lie in stacks; of a strategy of lesson 16, an owner has what it owns.
  double muon_kernels() const {
    double count = 0;
    for (const RunMatrices& each : run_.matrices)
      if (each.muon) count += std::ceil(stage_count(each) / (each.expert ? experts_of_a_rank() : 1));
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

  void by_group(const std::vector<StageClass>& all, int ep, MatrixTime& time, double& owned,
                std::vector<std::function<void()>>& transfers, RunStep& step) {
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
      time.products.add(one.products, here);
      time.elementwise.add(one.elementwise, here);
      owned += here * elements / tp / (deals ? 1 : shards_all() ? shard : 1);
      bytes += each.count * slice;
      count += each.count;
      if (tp > 1 && each.of->tp_split_dim != SplitDim::none) gathered += here * slice * tp, gathers += here;
      largest = std::max(largest, elements * element_);
      const double m = static_cast<double>(std::min(each.of->shape.rows, each.of->shape.cols));
      products += each.count * run_.ns_steps * (2 * elements + m * m) * element_ / (shards_all() ? 1 : tp);
    }
    transient_ = std::max(transient_, 3 * largest + (deals && !shards_all() ? bytes : 0));
    const auto move = [this, &transfers, &step](const TermKind& kind, double of_all, int ranks, int stride,
                                                double calls) {
      transfers.push_back([this, &step, &kind, of_all, ranks, stride, calls] {
        add_transfer(kind, of_all, ranks, stride, calls, step);
      });
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
  void by_strategy(MatrixTime& time, double& owned, std::vector<std::function<void()>>& transfers, RunStep& step) {
    MuonSetup setup;
    setup.strategy = run_.strategy;
    setup.ns_steps = run_.ns_steps;
    setup.precision = run_.precision;
    for (const bool experts : {false, true}) {
      std::vector<Parameter> matrices;
      for (const RunMatrices& each : run_.matrices)
        for (double n = 0; each.muon && each.expert == experts && n < stage_count(each); ++n)
          matrices.push_back({each.name + "." + std::to_string(matrices.size()), each.shape, each.tp_split_dim});
      if (matrices.empty()) continue;
      const int dp = run_.layout.dp / (experts ? run_.layout.ep : 1), tp = run_.layout.tp;
      const MuonCost cost = muon_cost(
          matrices, dp, tp, tp * (run_.layout.dp / dp), megatron_bucket(dp), setup, run_.cluster,
          [&](const Work& work) {
            const double part = work.flops / newton_schulz_flops(work.shape.rows, work.shape.cols, run_.ns_steps);
            const MatrixTime one = newton_schulz(work.shape, std::min(1.0, part));
            time.products.add(one.products, 1.0 / run_.strategy.period);
            time.elementwise.add(one.elementwise, 1.0 / run_.strategy.period);
          });
      for (const Term& term : cost.terms)
        if (term.kind != &terms::newton_schulz) transfers.push_back([this, term, &step] { add(step, term); });
      transient_ = std::max(transient_, cost.transient_bytes);
    }
    owned += muon_ / run_.layout.dp;
  }

  // ── Memory

  std::vector<Term> memory(double muons, double transient) const {
    const double all = dense_ + experts_ + tables_, shares = shards_all() ? run_.shard : 1;
    const double state = kMomentBytes * (all - muons) / state_shares() + (muons > 0 ? momentum_bytes_ : 0);
    std::vector<Term> bytes = {
        term_of(terms::parameters_and_state,
                in("parameters", all, "", "of one rank, whole") *
                        in("bytes", run_.weight_bytes + run_.gradient_bytes, "B", "weight and gradient") /
                        in("shards", shares, "", kRun) +
                    in("parameters", all, "", "") * in("masters", run_.master_bytes, "B", kRun) /
                        in("shares", state_shares(), "", "of the optimizer's state") +
                    in("state", state, "B", muons > 0 ? "AdamW's two moments, Muon's momentum" : "two moments"))};
    double gone = 0;
    for (Term& term : stage_bytes(run_.model, run_.layout, run_.software, 0))
      if (term.kind->when == TermKind::transient && term.amount > 0) {
        gone += term.amount;
        bytes.push_back(std::move(term));
      }
    if (transient > gone)
      bytes.push_back(term_of(terms::gathered_matrices, in("the most at one time", transient, "B", "Newton–Schulz") -
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
      prediction.matrices += each.count;
      if (newton_schulz(each.shape).products.waits) prediction.waiting_matrices += each.count;
      weighed += each.count * each.elements() * static_cast<double>(std::min(each.shape.rows, each.shape.cols));
      elements += each.count * each.elements();
    }
    if (elements > 0) prediction.jordan = run_.ns_steps * weighed / elements / run_.tokens;
  }

  const TrainingRun& run_;
  Leaning leaning_;
  Accelerator device_;  // whose peak is that of Newton–Schulz
  double launch_ = 0, link_ = 1, element_ = 2, read_ = 0;
  double dense_ = 0, experts_ = 0, tables_ = 0, muon_ = 0;  // elements of one rank, whole
  double transient_ = 0, momentum_bytes_ = 0;
  std::map<std::string, double> sent_;
};

}  // namespace

RunAnswer predict_run(const TrainingRun& run, Leaning leaning) { return RunModel(run, leaning).predict(); }

std::pair<RunBand, RunBand> band_of(const TrainingRun& run) {
  const double step = predict_run(run).adamw.step();
  const double least = predict_run(run, Leaning::fast).extra() - kRunNoise * step,
               most = predict_run(run, Leaning::slow).extra() + kRunNoise * step;
  // A step that is longer than predicted makes the share smaller.
  const auto share = [step](double extra, double error) { return extra / (step * (1 + (extra > 0 ? error : -error))); };
  return {{least, share(least, kStepError)}, {most, share(most, -kStepError)}};
}

}  // namespace muonwalk::sim
