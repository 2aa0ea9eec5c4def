// # Lesson 16 · Strategies
//
// The decision: a team has chosen Muon, and now has to choose among the ways to distribute it. Megatron-LM alone has
// several of them, and dion, torchtitan and DeepSpeed have others. This lesson puts eight side by side: the same step,
// the same matrices, and one serial program that six of them have to equal in every bit.
// `--model qwen3-30b --dp 64 --tp 8` prints the table that one would decide by.
//
// You need to know the full step (lesson 09) and who may own what (lesson 15).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lessons/lesson_16_strategies/strategy_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/plan.hpp"
#include "src/optim/steps.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Newton–Schulz needs a whole matrix, and two things have cut it: dp cuts the optimizer's state, tp cuts the matrix.
// For either there are a few ways to come to a whole matrix, or to do without. Over dp:
//
//     (a) gather everything     all ranks get all of a bucket, and owners of a part do all of Newton–Schulz
//     (b) boundary matrices     only what is cut is gathered, by its owners
//     (c) (d) whole owners      nothing is cut; dealt out in turn, or by work
//     (e) all-to-all            all is cut; each matrix goes to one worker, and comes back
//
// And over tp, where all of these gather slices, so that the ranks of a TP group do the same work:
//
//     (f) TP duplicated         that, in float32
//     (g) distributed Gram      X Xᵀ is a sum over columns: each rank adds its part, and no slice travels
//     (h) block-wise            each rank takes its slice for a whole matrix, and gathers in every second step only
//
// (h) comes from MuonBP (Khaled et al., 2025, arXiv 2510.16981), which needs a learning rate for each of its two kinds
// of steps. Here both have one rate, so what you see are its bytes and bits, and not how well it trains.
//
// First we do these by hand, with one matrix. TP cuts `gate`, 6 × 4, by rows, and dp cuts what is left, as FSDP does:
// ⌈rows / dp⌉ for each rank, as long as there are some. The last ranks may get fewer, or none. (Where tp does not
// divide 6, `gate` has a few more rows, so that it does.)
Parameter gate = {"gate", {6, 4}, SplitDim::rows};

// The rows of its TP slice that a DP rank holds, and the elements of all DP ranks.
Range rows_of_rank(const Grid& grid, int dp_rank) {
  const Index rows = tp_shape(gate, grid.tp()).rows, chunk = (rows + grid.dp() - 1) / grid.dp();
  return {std::min(rows, dp_rank * chunk), std::min(rows, (dp_rank + 1) * chunk)};
}
std::vector<Index> parts_of_slice(const Grid& grid) {
  std::vector<Index> counts;
  for (int rank = 0; rank < grid.dp(); ++rank) counts.push_back(rows_of_rank(grid, rank).size() * gate.shape.cols);
  return counts;
}

// Its gradient, as one DP rank computes it: random numbers, of a tensor that the model below does not have.
Matrix gate_gradient(std::uint64_t seed, int dp_rank) {
  return random_matrix({seed, (std::uint64_t{1} << 40) + dp_rank}, gate.shape.rows, gate.shape.cols);
}

// What one rank holds.
struct Local {
  Matrix gradient;                       // what I computed: my TP slice of gate's gradient, 6 / tp × 4
  Matrix rows;                           // my rows of my slice of the update, from a worker; perhaps none
  Matrix owned;                          // all of my slice of the summed gradient, where I own it; else nothing
  Matrix summed;                         // my slice of the orthogonal matrix, from a Gram matrix in pieces
  std::vector<NamedMatrix> new_weights;  // my TP slices after each step of each strategy
  std::vector<NamedMatrix> counted;      // what I sent, did and held in each strategy: Counts, 1 × 5
};

// By hand, float32 will do.
MuonSettings by_hand(const RankInfo& rank) { return muon_settings(Precision::fp32, rank.threads, rank.products); }

// The rank that works on gate, or owns it, counted in its DP group.
constexpr int kWorker = 0;

// ## The reference
//
// One process that adds all gradients, in the tree in which ranks add them, and orthogonalizes the whole matrix. What a
// rank takes from the weights, apart from the learning rate, are its rows of 0.2 · √max(6, 4) · O.
Matrix summed_gate(std::uint64_t seed, int dp) {
  std::vector<Flat> leaves;
  for (int rank = 0; rank < dp; ++rank) leaves.push_back(gate_gradient(seed, rank).flat());
  return Matrix(gate.shape.rows, gate.shape.cols, tree_sum(leaves));
}
void scale(Matrix& matrix, float factor) {
  for (float& value : matrix.flat()) value *= factor;
}
Matrix expected_rows(const RankInfo& rank) {
  Matrix update = newton_schulz(summed_gate(rank.seed, rank.grid.dp()), by_hand(rank).newton_schulz, "gate");
  scale(update, 0.2f * std::sqrt(float(gate.shape.rows)));
  return row_slice(tp_slice(update, gate.tp_split_dim, rank.grid.tp(), rank.place.tp),
                   rows_of_rank(rank.grid, rank.place.dp));
}

// One step of Newton–Schulz on a piece of a wide matrix whose columns lie in several pieces: X ← a X + B X with
// B = b A + c (A A), where `gram` is A = X Xᵀ of the whole.
Matrix next_piece(const Matrix& piece, const Matrix& gram) {
  const Quintic q;
  Matrix polynomial, next;
  multiply(gram, gram, polynomial);
  for (Index i = 0; i < gram.size(); ++i) polynomial.data()[i] = q.b * gram.data()[i] + q.c * polynomial.data()[i];
  multiply(polynomial, piece, next);
  for (Index i = 0; i < piece.size(); ++i) next.data()[i] = q.a * piece.data()[i] + next.data()[i];
  return next;
}

// The Gram matrix in pieces cannot have the bits of the whole: it is another order of additions. So its reference adds
// the same pieces in the same tree. It has all of them, and knows nothing of ranks.
std::vector<Matrix> gram_in_pieces(const Matrix& sum, int tp) {
  std::vector<Matrix> pieces;  // 4 × 6 / tp: the side that TP does not cut comes first
  std::vector<float> squares;
  for (int t = 0; t < tp; ++t) {
    pieces.push_back(tp_slice(sum, gate.tp_split_dim, tp, t).transposed());
    squares.push_back(float(pairwise_sum_of_squares(pieces.back().data(), pieces.back().size())));
  }
  const float norm = std::sqrt(tree_sum(squares.data(), Index(squares.size())));
  for (Matrix& piece : pieces) scale(piece, 1 / norm);
  for (int step = 0; step < 5; ++step) {
    std::vector<Flat> products;
    for (const Matrix& piece : pieces) {
      Matrix product;
      symmetric_product(piece, piece, product);
      products.push_back(product.flat());
    }
    const Matrix gram(4, 4, tree_sum(products));
    for (Matrix& piece : pieces) piece = next_piece(piece, gram);
  }
  for (Matrix& piece : pieces) piece = piece.transposed();
  return pieces;
}
Matrix expected_pieces(const RankInfo& rank) {
  if (rank.place.dp != kWorker) return {};
  return gram_in_pieces(summed_gate(rank.seed, rank.grid.dp()), rank.grid.tp())[rank.place.tp];
}

// ## The steps
//
// A gradient of my own, of my TP slice.
void my_gradient(Rank& rank, Local& local) {
  local.gradient = tp_slice(gate_gradient(rank.seed, rank.place.dp), gate.tp_split_dim, rank.grid.tp(), rank.place.tp);
}

// ### To a worker and back
//
// (e): dp has cut my slice by rows. All send their rows to one rank, the worker, and get them back when they are
// orthogonal. Nobody else has anything to do for gate, and other matrices have other workers. (a) and (b) send all
// parts to all owners instead, as in lesson 15, and nothing has to come back.
//
// Here are five planted bugs, as three projects had them. With dp 4 and tp 2 a slice has 3 rows, and DP rank 3 has
// none. `empty_shard`: who has no rows leaves, and the others wait (microsoft/dion, issue 83). `padded_shards`: there
// is a matrix for every rank to work on, of zeros where need be, and all of them travel. (Zeros travelled in dion, too:
// Dion2 takes a fraction of the rows, by default a quarter, and sent all of them, zeros for the others, so it sent
// 1 / fraction, four times the bytes: issue 96.) `partly_reduced`: the worker has the sum of its own rows, and for the
// others' its own gradient (DeepSpeed, issue 7807, whose tests asked only whether weights had changed). `padded_scale`:
// the scale is that of a matrix with padding, √8 in place of √6, as where Megatron-LM's GTP fills up rows so that all
// its ranks have equally many (pull requests 6740, which takes the padding away before Newton–Schulz, and 7236, which
// scales by what is left). `clip_after`: a gradient's norm is clipped to 1 when it is orthogonal already, so the update
// shrinks by the norm of O, the more the larger it is (DeepSpeed, issue 7713).
void to_a_worker(Rank& rank, Local& local) {
  const int dp = rank.grid.dp();
  const std::vector<Index> counts = parts_of_slice(rank.grid);  // elements of my slice, by DP rank
  const Index mine = counts[rank.place.dp];
  Flat part = reduce_gradients(rank.dp(), local.gradient.flat(), counts);
  if (rank.bug("empty_shard") && mine == 0) return;  // nothing to send
  // What goes to each rank, and what comes from each.
  std::vector<Index> out(dp, 0), in(dp, 0);
  out[kWorker] = mine;
  if (rank.place.dp == kWorker) in = counts;
  if (rank.bug("padded_shards")) {
    out.assign(dp, mine);  // as much to everybody
    in = counts;
    part.resize(mine * dp);  // zeros behind what is mine
  }
  Flat slice(std::accumulate(in.begin(), in.end(), Index{0}));
  rank.dp().all_to_all_v(part.data(), out, slice.data(), in);  // there
  if (rank.place.dp == kWorker) {
    if (rank.bug("partly_reduced"))
      std::copy(local.gradient.data() + mine, local.gradient.data() + slice.size(), slice.data() + mine);
    const Matrix sum(local.gradient.rows(), 4, slice);
    Matrix whole = tp_gather(rank.tp(), sum, gate.tp_split_dim, Precision::fp32);
    whole = orthogonalize(whole, by_hand(rank), "gate");  // once over dp, and on each TP rank
    if (rank.bug("clip_after")) scale(whole, float(1 / frobenius_norm(whole)));
    slice = tp_shard(whole, gate.tp_split_dim, rank.grid.tp(), rank.place.tp).flat();
  }
  rank.dp().all_to_all_v(slice.data(), in, part.data(), out);  // and back
  part.resize(mine);
  const Index side = rank.bug("padded_scale") ? counts[0] / 4 * rank.grid.size() : gate.shape.rows;
  local.rows = Matrix(mine / 4, 4, part);
  scale(local.rows, 0.2f * std::sqrt(float(side)));
}

// ### To an owner
//
// (c) and (d): the sum of all gradients is needed by one rank alone, the owner. So let it be made there. Nothing has to
// be gathered over dp then: a rank that owns a matrix owns all of its TP slice, and its momentum. For the collective
// that is an ordinary case, because a reduce-scatter may be as uneven as you like. What it costs is balance: matrices
// are of different sizes, and somebody has to deal them out (lesson 15).
void to_the_owner(Rank& rank, Local& local) {
  std::vector<Index> counts(rank.grid.dp(), 0);  // of elements, by DP rank
  counts[kWorker] = local.gradient.size();       // all of them
  const Flat sum = reduce_gradients(rank.dp(), local.gradient.flat(), counts);
  if (rank.place.dp == kWorker) local.owned = Matrix(local.gradient.rows(), 4, sum);
}

// ### Gram matrices, added over TP
//
// (g): the owner's TP group still has gate in slices. But Newton–Schulz needs X only in A = X Xᵀ, and that is a sum
// over the columns of X: each rank adds up its own, and an all-reduce of 4 × 4 numbers adds the rest. B follows from A,
// so all ranks have it, and X ← a X + B X works on columns as they are.
void sum_grams(Rank& rank, Local& local) {
  if (local.owned.empty()) return;      // its TP group is another one
  Matrix x = local.owned.transposed();  // 4 × 6 / tp: TP has cut columns now
  const float squares = rank.tp().all_reduce(Flat{float(pairwise_sum_of_squares(x.data(), x.size()))})[0];
  scale(x, 1 / std::sqrt(squares));  // the norm of all of it
  for (int step = 0; step < 5; ++step) {
    Matrix gram;
    symmetric_product(x, x, gram);  // my part of the sum
    x = next_piece(x, Matrix(4, 4, rank.tp().all_reduce(gram.flat())));
  }
  local.summed = x.transposed();
}

// ## All eight
//
// Now a model of 14 matrices, and each strategy from its own file (src/optim/strategies). A strategy is a layout and an
// optimizer that knows what to do there: it has a step, and a plan of it. Each takes two steps, of which (h) gathers in
// the first alone.
//
// Gradients are sums of four micro-batches. The planted bug `every_micro_batch` takes a step after each of them, so
// that Newton–Schulz is called four times as often (DeepSpeed, issue 8443: 16 calls in place of 4). And with
// `always_gathers`, (b) has a condition that is always true and gathers everything, as (a) does (VeOmni, issue 1011).
// That changes no bit.
const std::vector<Parameter> kMatrices = expert_layers();
constexpr Index kBucket = 1000;  // elements at which a bucket is full

constexpr int kSteps = 2;

// Random weights and gradients, of which each DP rank's are the sum of four micro-batches.
struct MicroBatches : RandomTraining {
  using RandomTraining::RandomTraining;
  int leaves_per_rank(int) const override { return 4; }
};
std::unique_ptr<MicroBatches> data;

// The gradients that a rank computes in a step, for all its TP slices: one set, or, `apart`, one for each micro-batch.
std::vector<std::vector<Matrix>> own_gradients(int step, const RankInfo& rank, const std::vector<NamedMatrix>& held,
                                               bool apart) {
  if (!apart) return {data->own_gradients(step, rank.grid.dp(), rank.place.dp, held)};
  std::vector<std::vector<Matrix>> each;
  for (int leaf = 0; leaf < 4; ++leaf) each.push_back(data->gradients(step, 4 * rank.place.dp + leaf, held));
  return each;
}

MuonSettings settings_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }
Layout layout_of(const Strategy& strategy, const Grid& grid) { return strategy.lay_out(kMatrices, grid, kBucket); }

// What is counted in a step, or in several: what a rank sends; how often it calls Newton–Schulz; the elements that it
// keeps from step to step besides weights; and the most that it holds for a moment, besides what it keeps.
struct Counts {
  std::int64_t bytes = 0, messages = 0;
  Index calls = 0, kept = 0, transient = 0;

  void add(const Counts& step) {
    bytes += step.bytes, messages += step.messages, calls += step.calls;
    kept = step.kept;  // as it is after the last one
    transient = std::max(transient, step.transient);
  }
  Matrix row() const {
    return Matrix(1, 5, {float(bytes), float(messages), float(calls), float(kept), float(transient)});
  }
};

void two_steps(Rank& rank, Local& local) {
  const Strategy strategy = strategies()[local.counted.size()];
  const Layout layout = layout_of(strategy, rank.grid);
  const bool gathers = rank.bug("always_gathers") && strategy.letter == 'b';
  const auto optimizer = (gathers ? gather_everything() : strategy).optimizer(layout, settings_of(rank), 0);
  optimizer->start(layout, rank.place, first_buckets(layout, *data, rank.place.tp));
  Counts counts;  // of both steps
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<NamedMatrix> held = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
    for (const std::vector<Matrix>& gradients : own_gradients(step, rank, held, rank.bug("every_micro_batch"))) {
      const Buckets buckets = pack_slices(layout, gradients);  // as this layout has them
      const Traffic sent_before = rank.ledger().total();
      const Index held_before = rank.memory().live();
      rank.memory().restart_peak();
      Counts counted;
      const auto observer = [&](Phase phase, const DistMeta*) { counted.calls += phase == phases::orthogonalize; };
      optimizer->step({layout, rank.place, rank.dp(), rank.tp(), observer}, buckets);
      const Traffic sent = rank.ledger().total() - sent_before;
      counted.bytes = sent.bytes_sent, counted.messages = sent.messages_sent;
      counted.kept = optimizer->kept_elements();
      counted.transient = rank.memory().peak() - held_before;
      counts.add(counted);
    }
    append_of(title(strategy, step), unpack_buckets(layout, optimizer->weights(), rank.place.tp), local.new_weights);
  }
  local.counted.push_back({title(strategy), counts.row()});
}

// (a) to (f) are held to Muon on one process. (g) is held to a serial step that adds the same pieces in the same tree,
// and (h) to one that works on the same blocks.
std::vector<std::shared_ptr<ReferenceRun>> references;  // of each strategy; one for all that are Muon
void make_references(const RankInfo& rank) {
  MuonSettings settings = settings_of(rank);
  settings.newton_schulz.threads = 1;  // they run in a process that forks
  const auto muon = std::make_shared<ReferenceRun>(*data, std::make_unique<Muon>(settings));
  for (const Strategy& strategy : strategies())
    references.push_back(
        strategy.is_muon
            ? muon
            : std::make_shared<ReferenceRun>(*data, strategy.optimizer(layout_of(strategy, rank.grid), settings, 0)));
}
std::vector<NamedMatrix> expected_weights(const RankInfo& rank) {
  std::vector<NamedMatrix> all;
  for (std::size_t i = 0; i < references.size(); ++i)
    for (int step = 0; step < kSteps; ++step)
      append_of(title(strategies()[i], step), references[i]->slices_after(step + 1, rank.grid, rank.place), all);
  return all;
}

// What a rank counts is held to the plans of its two steps.
std::vector<Plan> plans_of(const Strategy& strategy, const RankInfo& rank) {
  const Layout layout = layout_of(strategy, rank.grid);
  std::vector<Plan> plans;
  for (int step = 0; step < kSteps; ++step)
    plans.push_back(strategy.optimizer(layout, settings_of(rank), step)->plan(layout, rank.place));
  return plans;
}
Counts counts_of(const Plan& plan) {
  const Traffic sent = ledger_of(plan).total();
  Counts counts{sent.bytes_sent, sent.messages_sent, count(plan, phases::orthogonalize)};
  Index held = 0;
  for (const Memory& each : held_between_steps(plan)) {
    held += each.elements;
    if (each.what != "weights" && each.what != "gradients") counts.kept += each.elements;
  }
  counts.transient = peak_elements(plan) - held;
  return counts;
}
std::vector<NamedMatrix> expected_counts(const RankInfo& rank) {
  std::vector<NamedMatrix> all;
  for (const Strategy& strategy : strategies()) {
    Counts counts;
    for (const Plan& plan : plans_of(strategy, rank)) counts.add(counts_of(plan));
    all.push_back({title(strategy), counts.row()});
  }
  return all;
}

// ## The table
//
// One line for each strategy, per step, from the plans of all ranks. `sent` and `messages` are those of the rank that
// has most of them. Then come the operations of the rank that has most, and the mean. `× the work` is all Newton–Schulz
// of all ranks over doing each matrix once. `kept` is momentum, and `passing` the most that a rank holds for a moment
// beside what it keeps. The last column is a price: the time of a rank that has the most of everything, at a bandwidth,
// a latency and a speed that `--price` sets, alike over dp and tp. `--cluster` takes them from a cluster instead, by a
// name of `muonwalk-scale list` or from a file (docs/cost-model.md): there tp often lies within a node, whose links are
// ten times as fast, and dp does not. A price is not a measurement, and hides nothing behind anything. With matrices as
// small as these the messages decide, so ask for a model before you believe the line below the table.
//
// Of a model you get more: which of the inputs decides between the two best, and between (g) and the best, and where
// they break even; and what the price is of the model's own products. That depends on the batch, so its tokens are an
// input, `--batch-tokens`, and the first line says how many they are and who trains with this many.
std::string model;                // as --model names it; empty: the toy
std::string price = "50,10,400";  // GB/s, µs for each message, TFLOP/s
std::string cluster;              // as --cluster names it: its links and its speed instead
int batch_tokens = 0;             // as --batch-tokens says; 0: those of somebody who trained such a model
StrategyCosts costs;              // of all strategies, planned before any rank is started
std::string table;                // of these

void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1) throw UsageError("--pp 2 or more changes nothing in the step of a stage; try --pp 1");
  costs = model.empty() ? costs_of(kMatrices, rank.grid, kBucket, settings_of(rank))
                        : costs_of_model(model, rank.grid, settings_of(rank));
  const Price at = cluster.empty() ? parse_price(price)
                                   : price_on(cluster, rank.grid, model.empty() ? kMatrices : model_parameters(model));
  if (batch_tokens < 0 || (batch_tokens > 0 && model.empty()))
    throw UsageError("--batch-tokens takes tokens of a step of a --model; try --model llama-7b --batch-tokens 4194304");
  table = model.empty() ? strategy_table(costs, rank.grid, at) : model_table(model, costs, rank.grid, at, batch_tokens);
  if (!model.empty()) return;
  const int tp = rank.grid.tp();
  gate.shape.rows = (6 + tp - 1) / tp * tp;
  data = std::make_unique<MicroBatches>(kMatrices, kSteps, rank.seed);
  make_references(rank);
}

// ## The cost
//
// By hand: two reduce-scatters, to all and to the owner; an all-to-all to the worker and one back; and in the worker's
// TP group a gather of slices, a sum of squares, and five Gram matrices. Then the plans of all strategies.
Prediction predict(const RankInfo& rank) {
  constexpr ElementType kType = ElementType::float32;
  const int me = rank.place.dp, tp = rank.grid.tp();
  const Index slice = tp_shape(gate, tp).size();
  const std::vector<Index> parts = parts_of_slice(rank.grid), none(parts.size(), 0);
  std::vector<Index> to_worker = none, whole = none;
  to_worker[kWorker] = parts[me];
  whole[kWorker] = slice;
  const std::vector<Index>& from = me == kWorker ? parts : none;

  Prediction prediction;
  prediction.peak_elements = -1;  // not said
  Ledger& ledger = prediction.ledger;
  for (const std::vector<Index>& counts : {parts, whole})
    ledger.add("dp", CollectiveKind::reduce_scatter, kType, 1, reduce_scatter_v_traffic(me, counts, kType));
  ledger.add("dp", CollectiveKind::all_to_all, kType, 1, all_to_all_v_traffic(me, to_worker, from, kType));
  ledger.add("dp", CollectiveKind::all_to_all, kType, 1, all_to_all_v_traffic(me, from, to_worker, kType));
  if (me == kWorker) {
    if (tp > 1) ledger.add("tp", CollectiveKind::all_gather, kType, 1, all_gather_traffic(tp, slice, kType));
    ledger.add("tp", CollectiveKind::all_reduce, kType, 1, all_reduce_traffic(rank.place.tp, tp, 1, kType));
    for (int step = 0; step < 5; ++step)
      ledger.add("tp", CollectiveKind::all_reduce, kType, 1, all_reduce_traffic(rank.place.tp, tp, 4 * 4, kType));
  }
  for (const Strategy& strategy : strategies())
    for (const Plan& plan : plans_of(strategy, rank)) ledger.add(ledger_of(plan), 1);
  return prediction;
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_16_strategies";
  info.title = "Strategies";
  info.question = "which of the ways to distribute Muon should I take, and are they all Muon?";
  info.bugs = {{"partly_reduced", "owners of a cut matrix put their own gradient in the others' places"},
               {"empty_shard", "a rank without rows leaves before the all-to-all"},
               {"padded_shards", "the all-to-all moves a matrix of zeros for every rank but one"},
               {"padded_scale", "the scale is that of the padded matrix"},
               {"clip_after", "updates are clipped when they are orthogonal already"},
               {"every_micro_batch", "a step for each micro-batch in place of one for all"},
               {"always_gathers", "(b) gathers everything: right bits, more bytes"}};
  info.also_try = {"--model llama-7b --dp 64 --tp 8 --precision bf16 --cluster h100-ndr", "--dp 2 --tp 2"};
  info.options = {
      {"--model", "a published model, for example gpt2: its table, and no rank", &model},
      {"--price", "GB/s, µs for each message and TFLOP/s:\n50,10,400", &price},
      {"--cluster", "in place of a price: a name of muonwalk-scale list,\nor FILE.json with links for dp and tp",
       &cluster},
      {"--batch-tokens", "of a step of the model (default: as somebody trained it)", &batch_tokens}};
  info.plans_of = &model;
  info.products = Products::chain;  // the distances below have the same digits on all processors
  // What can't work is refused before any rank is started.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  if (!model.empty()) lesson.plan(table);  // and that is all

  // One matrix by hand.
  lesson.say("(a) to (h): strategies, by name in the table below; first some of them by hand, with one matrix");
  lesson.step("a gradient of my own", my_gradient);
  lesson.step("(e) all-to-all: to a worker and back", to_a_worker);
  lesson.step("(c), (d) owner: all of it to one rank", to_the_owner);
  lesson.step("(g) distributed Gram: X Xᵀ, added over TP", sum_grams);
  lesson.check("rows of an update, from a worker", &Local::rows, expected_rows);
  lesson.check("from Gram matrices in pieces", &Local::summed, expected_pieces);

  // A model, eight ways.
  for (const Strategy& strategy : strategies())
    lesson.quiet_step(fmt::format("two steps of {}", title(strategy)), two_steps);
  lesson.check("weights, (a) to (h)", &Local::new_weights, expected_weights);
  lesson.check("sent and held, as planned", &Local::counted, expected_counts);
  lesson.cost(predict);
  lesson.say(
      "\nof the rank that has most: sent, messages, FLOP (mean: of all), bytes kept between two steps, and\n"
      "passing, for a moment; × the work: of one process; price: seconds, as the last line says");
  lesson.say(table);

  // Are they all Muon? (g) has other last bits, and other ones for each size of TP, because it adds up another number
  // of parts. So a run that goes on with another TP has other bits from there on. (h) is another optimizer in every
  // second step: its update lies far from Muon's, and where TP cuts more pieces, farther.
  if (lesson.is_parent())
    lesson.say("\nweights with other bits than Muon's, and how far an update is apart, relative to Muon's\n" +
               distance_table(*data, by_hand(lesson.rank_info()), lesson.rank_info().grid.dp(), kBucket));

  // ## Exercises
  //
  // 1. For which shapes does (g) send less than (f)? Hint: (f) gathers (T − 1) / T of the matrix in float32. What
  //    does an all-reduce of s × s numbers in bf16 send, where s is the side that TP does not cut, and how often?
  //    Answer: five times 2 (T − 1) / T · s² · 2 bytes, against (T − 1) / T · s · l · 4 bytes with the other side l.
  //    So (g) sends less where 5 s < l. No square matrix is like that. A matrix has to be more than five times as
  //    long as wide, and TP has to cut it along its length.
  // 2. `--model qwen3-30b --dp 8 --tp 1 --precision bf16`: how much more than (d) do (a) and (e) send, and what is
  //    the ratio of the two? Hint: (d) sends gradients and weights alone. To how many ranks does a part of the
  //    update go in (a), and to how many in (e)? Answer: in (a) to D − 1 ranks, so a rank sends (D − 1) / D of all
  //    elements. In (e) to one worker, and as much comes back: 2 (D − 1) / D² of all elements, which is D / 2 times
  //    less, about four times here. With `--dp 64` it is so little that you can't see it beside what (d) pays for
  //    uneven parts.
  // 3. `--model qwen3-30b --dp 64 --tp 8 --precision bf16`: who is the cheapest that is Muon, with
  //    `--price 5,50,400` and with `--price 5000,0,0.4`? Hint: which column decides in either? Answer: with dear
  //    bytes and messages (b), which sends little in few of them. Where nothing but work counts, one that shares it
  //    out evenly: by a hair (e), before (d). No strategy is the best as such, so the table says what it was asked.
  return lesson.answer(
      "cut as few matrices as you can. Dealt out whole, by the work of Newton–Schulz (d), none is gathered and none "
      "done twice over dp; cut at dp − 1 places (b), few are. Where each bucket has to be cut, send a matrix to a "
      "worker and back (e): the more ranks, the less that costs. (a) pays in bytes and in work. These are Muon in "
      "every bit. Over tp, sums of Gram matrices (g) send less for long, narrow matrices alone, but share the work, "
      "and so win "
      "time where TP is wide, with bits of their own. Blocks (h) are another optimizer, with two learning rates.");
}
