// # Lesson 15 · Sharding layouts
//
// Which rank keeps which elements of the optimizer's state? Every framework that trains with Muon has to decide that,
// and Megatron-LM has done so several times. It used to cut the flat list of all parameters into one part per rank; now
// it cuts every bucket. When somebody missed throughput there, the author of the proof of concept named this as the
// probable reason (pull request 1428, February 2025). A newer optimizer deals out whole matrices: at first by their
// elements, since August 2026 by the cost of Newton–Schulz (pull request 6379). This lesson takes one step in each of
// these layouts, and prints the figures to decide by; `--model qwen3-30b --dp 64` prints them for a real model, and
// with `--ep 8` for one whose experts are dealt out.
//
// You need to know how a buffer is cut (lesson 03), what Newton–Schulz costs (lesson 06), and the whole step
// (lesson 09).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lessons/lesson_15_sharding_layouts/layout_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A bucket of gradients travels as soon as it is full, so it is handy to cut each bucket into equal parts: every rank
// owns a bit of everything. Or one cuts the buffer as a whole, through the few matrices that happen to lie there. Or
// one deals out whole matrices, and cuts nothing. Each letter is a piece of a matrix, each digit the rank that owns it:
//
//     a bucket per four letters   qqqq kkvv oooo uuuu dddd
//     per bucket                  0123 0123 0123 0123 0123     nearly every matrix has several owners
//     contiguous                  0000 0111 1122 2223 3333     dp − 1 cuts in all
//     whole matrices              0000 1133 1111 2222 3333     no cut
//
// Newton–Schulz needs the whole matrix. So each owner of a part gets all the other parts, and then each of them does
// the same Newton–Schulz. A cut is paid for twice: in bytes, and in work that others do as well. And where nothing is
// cut, there is still the question who gets which matrix, because all wait for the rank that has most to do.

// Two layers of a toy: attention, which TP cuts, and an expert with its router, which it leaves whole.
const std::vector<Parameter> kMatrices = expert_layers();
constexpr Index kBucket = 400;  // elements at which a bucket is full

// Three ways to deal out whole matrices. *In turn* is called round robin elsewhere.
std::vector<int> in_turn(const std::vector<Parameter>& matrices, const Grid& grid) {
  return round_robin_owners(matrices, grid.dp());
}

// The other two take the largest matrix first, and give it to the rank that has least so far. Elements are counted as a
// rank keeps them, in TP slices. That balances memory.
std::vector<int> by_elements(const std::vector<Parameter>& matrices, const Grid& grid) {
  return balanced_owners(tp_slices(matrices, grid.tp()), grid.dp(), Load::elements);
}

// Work is counted on whole matrices, as Newton–Schulz does it: with m ≤ n, five steps are 20 m² n + 10 m³ operations.
// That is 20 m + 10 m² / n per element, so a square matrix is more work than a flat one of as many elements.
std::vector<int> by_work(const std::vector<Parameter>& matrices, const Grid& grid) {
  return balanced_owners(matrices, grid.dp(), Load::work);
}

// The five layouts. The collectives are the same in all of them; only the sizes of the ranks' parts differ.
const std::vector<OwnershipPolicy> kWays = {
    {"per bucket", Ownership::buckets},         // an equal part of each bucket
    {"contiguous", Ownership::buffer},          // an equal part of all
    {"in turn", Ownership::matrices, in_turn},  // and three times whole matrices
    {"by elements", Ownership::matrices, by_elements},
    {"by work", Ownership::matrices, by_work}};
Layout layout_of(const RankInfo& rank, const OwnershipPolicy& way) {
  return lay_out(kMatrices, rank.grid, way, kBucket);
}

// What one rank holds.
struct Local {
  std::vector<Matrix> gradients;         // my TP slices of the gradients that I computed, in the order of the matrices
  std::vector<NamedMatrix> new_weights;  // my TP slices after the step, one layout after the other
  std::vector<NamedMatrix> counted;      // for each layout 1 × 2: elements gathered, and FLOPs of Newton–Schulz
};

// The step gathers nothing but what is cut, each matrix on its owners alone. The proof of concept gathers every bucket,
// so it pays for bytes as if all were cut, and gains nothing from the second layout but work.
MuonSettings settings_of(const RankInfo& rank) {
  MuonSettings settings = muon_settings(rank.precision, rank.threads, rank.products);
  settings.gather = Gather::cut_matrices;
  return settings;
}

// ## The reference
//
// One process that takes the step with whole matrices. It knows nothing of layouts, so it is the same for all five: a
// layout may change who does what, and no bit of the result.
std::unique_ptr<Training> data;
std::unique_ptr<ReferenceRun> reference;

// What each rank should hold, once for each layout: always the same.
std::vector<NamedMatrix> new_weights(const RankInfo& rank) {
  std::vector<NamedMatrix> all;
  for (const OwnershipPolicy& way : kWays) append_of(way.name, reference->slices_after(1, rank.grid, rank.place), all);
  return all;
}

// What each rank should gather and orthogonalize, from the places of the cuts alone ([sharding_of]).
std::vector<NamedMatrix> planned_counts(const RankInfo& rank) {
  std::vector<NamedMatrix> counts;
  for (const OwnershipPolicy& way : kWays) {
    const Sharding sharding = sharding_of(layout_of(rank, way));
    const std::size_t dp = static_cast<std::size_t>(rank.place.dp);
    counts.push_back({way.name, Matrix(1, 2, {float(sharding.gathered[dp]), float(sharding.flops[dp])})});
  }
  return counts;
}

// ## The steps
//
// Start with gradients of my own. Memory is counted from here on.
void start(Rank& rank, Local& local) {
  const Layout layout = layout_of(rank, kWays[0]);  // any of them will do
  const Buckets weights = first_buckets(layout, *data, rank.place.tp);
  local.gradients =
      data->own_gradients(0, rank.grid.dp(), rank.place.dp, unpack_buckets(layout, weights, rank.place.tp));
  rank.memory().restart_peak();
}

// Every rank works out the layout by itself, so all of them have to come to the same one.
//
// Two planted bugs. With `ties`, DP rank 1 has `wk` and `wv` the other way round: they are equally large, and a rank
// that sorts by size alone may find either one first. All counts fit, so no call fails, and only the bits tell. With
// `slice_work` the cost of Newton–Schulz is worked out for TP slices, and the experts, which TP does not cut, weigh too
// much. Megatron-LM has this bug in November 2026: before, it counted the elements of local shards; now
// `_ns_compute_cost` (layer_wise_optimizer.py, commit d98e8a6) takes the shape that a TP rank holds, and puts together
// again only what GTP, its second cut of the rows, has cut. Pull request 6683, still open, counts TP as well.
Layout my_layout(const Rank& rank, const OwnershipPolicy& way) {
  LayoutOptions options = layout_of(rank, way).options;
  if (rank.bug("ties") && rank.place.dp == 1 && way.owners != nullptr)
    std::swap(options.owners[1], options.owners[2]);  // of 0.wk and 0.wv
  if (rank.bug("slice_work") && way.owners == by_work)
    options.owners = by_work(tp_slices(kMatrices, rank.grid.tp()), rank.grid);
  return plan_layout(kMatrices, rank.grid, options);
}

// My TP slice of a matrix in which I own something. Where I own all of it, it lies in my shard, and nothing travels.
// Where it is cut, its owners send each other their parts, and the other ranks have nothing to do with it.
//
// The planted bug `own_part` leaves that out: an owner orthogonalizes what it has, with zeros for the rest. That is a
// matrix of the right shape, and no message is missed by anybody, because nobody sends one.
Matrix slice_of(Rank& rank, const Layout& layout, const DistMeta& meta, const Flat& shard, Index& gathered) {
  const Range owned = layout.owned_range(meta, rank.place.dp);                   // counted in the buffer
  const Index begin = layout.dp_slice(0, meta.bucket_idx, rank.place.dp).begin;  // of my shard, likewise
  if (owned == meta.global_range) return view_parameter(shard, begin, meta);     // all of it is mine
  if (rank.bug("own_part")) {
    Matrix part(meta.shape.rows, meta.shape.cols);
    const float* mine = shard.data() + (owned.begin - begin);
    std::copy(mine, mine + owned.size(), part.data() + (owned.begin - meta.global_range.begin));
    return part;
  }
  gathered += meta.shape.size() - owned.size();
  return gather_from_owners(rank.dp(), shard, layout, meta, settings_of(rank).gathered());
}

// One step in one layout, from the same weights and gradients. It is the step of lesson 09 but for one thing: there,
// each bucket is gathered as a whole, and every rank gets all of it. Here a rank gathers only matrices that are cut,
// and of these only its own.
//
// What it gathers and computes is counted on the way, from the matrices that it really has in hand.
void take_step(Rank& rank, Local& local, const OwnershipPolicy& way) {
  const Layout layout = my_layout(rank, way);
  const MuonSettings settings = settings_of(rank);
  // What it starts from: my TP slices in whole buckets, and momentum for what I own.
  MuonState state = {first_buckets(layout, *data, rank.place.tp), zero_shards(layout, rank.place.dp)};
  Buckets gradients = pack_slices(layout, local.gradients);
  Index gathered = 0;  // elements that came in
  double work = 0;     // FLOPs of Newton–Schulz
  for (int b = 0; b < int(layout.buffers[0].buckets.size()); ++b) {
    // The sum of all gradients, for my shard of this bucket, and the update from it.
    const Bucket& bucket = layout.buffers[0].buckets[b];
    const std::vector<Index> counts = layout.dp_counts(0, b);  // what each DP rank owns of it, perhaps nothing
    Flat update = reduce_gradients(rank.dp(), gradients[0][b], counts);
    momentum(update.data(), state.momentum[0][b].data(), Index(update.size()), settings, update.data());

    // Each matrix of which I own an element: whole, orthogonal, and back to my part of it.
    for (const int index : bucket.parameters) {
      const DistMeta& meta = layout.buffers[0].parameters[index];
      const Range owned = layout.owned_range(meta, rank.place.dp);
      if (owned.empty()) continue;                                                    // others do it
      Matrix matrix = slice_of(rank, layout, meta, update, gathered);                 // my TP slice
      matrix = tp_gather(rank.tp(), matrix, meta.tp_split_dim, settings.gathered());  // all of it
      matrix = orthogonalize(matrix, settings, meta.name);
      work += newton_schulz_flops(matrix.rows(), matrix.cols());
      matrix = tp_shard(matrix, meta.tp_split_dim, rank.grid.tp(), rank.place.tp);  // my TP slice again
      const Flat mine = dp_shard(matrix, layout, meta, rank.place.dp);              // what I own of it
      apply(state.weights[0][b].data() + (owned.begin - bucket.range.begin), mine.data(), owned.size(), meta.full_shape,
            settings);
    }

    // New weights for everybody, from their owners.
    all_gather_weights(rank.dp(), state.weights[0][b], counts);
  }
  gradients.clear();  // what follows is for the checks
  append_of(way.name, unpack_buckets(layout, state.weights, rank.place.tp), local.new_weights);
  local.counted.push_back({way.name, Matrix(1, 2, {float(gathered), float(work)})});
}

// All five, one after the other. Each rank says how much it had to compute, a column per layout. Look for the largest
// number in each column: everybody waits for that rank. With buckets cut, all ranks have the most that there is to do.
// Dealt out by elements, two ranks have more than three times as much to do as the two others.
void take_steps(Rank& rank, Local& local) {
  for (const OwnershipPolicy& way : kWays) take_step(rank, local, way);
  std::string numbers;
  for (const NamedMatrix& each : local.counted) numbers += pad_left(fmt::format("{:.2f}", each.matrix(0, 1) / 1e6), 13);
  if (rank.place.tp == 0) rank.say(numbers);  // the ranks of a TP group do the same
}

// ## The figures
//
// They follow from the places of the cuts, so no rank has to run. `cut` are the matrices with several owners. `gathers`
// is what comes in for them at the rank that gets most. `× the work` is all Newton–Schulz of a DP group over that of
// one process. The next two compare the rank that has most with the mean. The last one is how long the slowest rank
// needs, where 1 is an equal share of the work done once: redundancy and imbalance together.
//
// The two lines at the end are bounds: every rank owns a part of everything, and whole matrices dealt out as evenly as
// the largest one allows. `--model` asks for a published model, in buckets of the size that Megatron-LM gives them. Try
// gpt2, llama-7b, moonlight-16b and qwen3-30b with `--dp 256 --tp 8`. The first two have fewer matrices than DP ranks.
// The two others show why to count work: TP leaves their experts whole here, so counted in slices they weigh more than
// the work that they are.
//
// Where a model has experts, `--ep` deals them out as well (*expert parallelism*): the ranks of an EP group, which lie
// in dp one after the other, hold different experts, and send each other tokens in place of weights. As a layout that
// means two lists of matrices: one that all dp ranks share out, and for the experts of each EP rank a shorter one,
// which only dp / ep ranks share out. Megatron-LM keeps two sets of buffers for that. Buckets are full at about as many
// elements as before, so a rank's part of a bucket of experts is larger and far fewer of them are cut: compare
// `--model qwen3-30b --dp 64 --tp 8` with the same and `--ep 8`. Dealt out whole, each list is fair by itself, and
// both together a little less so.
std::string model;    // as --model names it; empty: the toy
int ep = 1;           // as --ep says
std::string figures;  // the first table, made before any rank is started

// ## The cost
//
// Bytes and messages are the sums over the plans of five steps. The peak is that of one of them, beside what a rank
// keeps for the checks: its gradients, and the new weights and counts of the layouts before. Where shards are small, it
// may be at the end of a step, when its own new weights and counts have come beside its buckets.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  Index slices = 0;  // elements of my TP slices
  for (const Parameter& each : tp_slices(kMatrices, rank.grid.tp())) slices += each.shape.size();
  Index kept = slices;  // first the gradients
  for (const OwnershipPolicy& way : kWays) {
    const Layout layout = layout_of(rank, way);
    const Plan plan = muon_plan(layout, rank.place, settings_of(rank));
    prediction.ledger.add(ledger_of(plan), 1);
    Index held = layout.shard_elements(rank.place.dp);                                   // momentum
    for (const Bucket& bucket : layout.buffers[0].buckets) held += bucket.range.size();  // and weights, after the step
    prediction.peak_elements =
        std::max({prediction.peak_elements, kept + peak_elements(plan), kept + held + slices + 2});
    kept += slices + 2;  // new weights, and two counts
  }
  return prediction;
}

// Before any rank is started: refuse what can't work, and make what all ranks share.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(fmt::format(
        "--pp {} changes nothing here: each stage of a pipeline is laid out for itself; try --pp 1", rank.grid.pp()));
  if (model.empty() && ep != 1)
    throw UsageError(
        fmt::format("--ep {} deals out experts, and the toy has one in each layer; add --model qwen3-30b", ep));
  const Index bucket = model.empty() ? kBucket : megatron_bucket(rank.grid.dp());
  std::vector<Parameter> matrices = model.empty() ? kMatrices : with_whole_experts(model);
  std::vector<NamedLayout> experts;
  if (ep != 1) {  // two lists: what dp shares out, and what dp / ep does
    auto [others, dealt] = with_dealt_experts(model, ep, rank.grid.dp());
    matrices = std::move(others);
    const Grid sharers = Grid().dp(rank.grid.dp() / ep).tp(rank.grid.tp());
    experts = layouts_of(dealt, sharers, kWays, megatron_bucket(sharers.dp()));
  }
  figures = sharding_table(layouts_of(matrices, rank.grid, kWays, bucket), settings_of(rank).gathered(), experts);
  // Random weights, and random gradients for one step; the same for all ranks and layouts.
  data = std::make_unique<RandomTraining>(kMatrices, 1, rank.seed);
  reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(settings_of(rank)));
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_15_sharding_layouts";
  info.title = "Sharding layouts";
  info.question = "why does Muon lose throughput where every bucket is cut, and which ranks should own what instead?";
  info.bugs = {{"ties", "DP rank 1 deals two equally large matrices the other way round"},
               {"own_part", "an owner of a cut matrix orthogonalizes its own part, with zeros for the rest"},
               {"slice_work", "matrices are dealt out by the work of their TP slices"}};
  info.also_try = {"--model qwen3-30b --dp 64 --tp 8 --ep 8", "--dp 8 --tp 1"};
  info.options = {{"--model", "a published model, for example gpt2: its figures, and no rank", &model},
                  {"--ep", "with --model: so many DP ranks share out the experts (default 1)", &ep}};
  info.plans_of = &model;

  // The figures first, from the layouts alone.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  if (!model.empty()) lesson.plan(figures);
  const std::vector<NamedLayout> layouts = layouts_of(kMatrices, lesson.rank_info().grid, kWays, kBucket);
  lesson.say(
      "who owns some of a matrix, as DP ranks, in five layouts: equal parts of each bucket, or of all\n"
      "(contiguous); whole matrices, dealt out in turn, by elements, or by Newton–Schulz's work, in kFLOP");
  lesson.say(owners_table(layouts) + "\n");
  lesson.say(
      "cut: matrices of several owners; gathers: what one rank gets of them; × the work: of one process;\n"
      "most: of one rank over the mean; slowest: its time over an equal share; the last two are bounds");
  lesson.say(figures + "\n");

  // Then the step, in each of them.
  lesson.step("gradients of my own", start);
  lesson.step("the step in each layout: MFLOP of Newton–Schulz, in the order above", take_steps);
  lesson.check("new weights, five layouts", &Local::new_weights, new_weights);
  lesson.check("gathered and computed, as planned", &Local::counted, planned_counts);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With Megatron-LM's own buckets and 64 ranks or more, on how many of them does a matrix of 4096 × 4096 lie? Does
  //    that change with the number of ranks? Hint: `megatron_bucket` says when a bucket is full; how large is a rank's
  //    part of it? Answer: a part has a million elements or somewhat more, whatever dp is. So the matrix lies on about
  //    16 ranks, and each of them gathers it and orthogonalizes all of it. Compare `--model llama-7b --tp 1 --dp 64`
  //    and the same with `--dp 256`: there are four times as many ranks, and `× the work` changes little. It depends on
  //    the size of a matrix beside a part.
  // 2. `--model gpt2 --dp 64`: why is dealing out whole matrices not good enough here? Hint: how many matrices are
  // there?
  //    Answer: fewer than ranks. Some ranks get none, and one with a large matrix has more than an equal share, as the
  //    line "whole, at best" says. To do better, ranks would have to share the work on one matrix. Lesson 16 looks at
  //    such ways.
  // 3. Dealt out by work, some ranks of the toy own more elements than others. What does that cost them besides
  //    memory? Hint: the bytes of which collectives follow the elements that a rank owns? Answer: in the all-gather of
  //    weights they send more than the others, as they have more new weights, and in the reduce-scatter they receive
  //    more. Megatron-LM pads the parts of a bucket to equal sizes, so there it is paid for in padding, and the
  //    elements that a rank may get of a bucket are bounded (pull request 6379).
  return lesson.answer(
      "each owner of a part of a matrix gathers all of it and does all of its Newton–Schulz. Cut every bucket, and "
      "nearly every matrix has several owners; cut the buffer, and dp − 1 cuts are left; deal out whole matrices, and "
      "nothing is done twice. Then all wait for the slowest rank, and balanced elements are not balanced work. So deal "
      "by the cost of Newton–Schulz on full shapes, as long as there are more matrices than ranks.");
}
