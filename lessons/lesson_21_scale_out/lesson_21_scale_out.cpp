// # Lesson 21 · Scale out
//
// The decision: an engineer has a model, a budget of GPUs, and three promises that somebody measured on four of them:
// 0.57 times the communication, 1.1 % of overhead, half the optimizer's state. What is left of these on 32 GPUs, on
// 4,096, on 100,000? Nobody rents a cluster to find out. So a model has to say it; and most models of this kind say
// something at once, with three digits, and are never compared with anything.
//
// This lesson builds such a model from what is there already, a plan of every rank, and says at each step how you would
// notice that it is wrong.
//
// You need to know the plan of a step, lesson 09, what its bytes are for, lesson 13, and the strategies, lesson 16.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lessons/lesson_21_scale_out/scale_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/text/units.hpp"
#include "src/train/models.hpp"
#include "src/train/training.hpp"
#include "tools/scale/cluster.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// The plan of a rank lists its calls and its work, so bytes and FLOPs are sums over it. Time is one more sum:
//
//     a call      α · messages + β · bytes        α: a message, however small     β: a byte
//     a work      FLOPs / rate                    rate: FLOPs per second
//
//     rank 0   ├ RS ┤├ TP ┤├── Newton–Schulz ──┤├ AG ┤
//     rank 1   ├ RS ┤├ TP ┤├ Newton–Schulz ┤······├ AG ┤      a step takes as long as its slowest rank
//
// α, β and the rate are three numbers of a machine. Everything else is counted. What such a sum leaves out is what can
// go wrong with it: links that are shared, ranks that wait for each other, products too small to keep a GPU busy. Each
// of these is a term of its own in tools/scale, with its source.
//
// Any machine can be asked for its three numbers. α is what a message of four bytes costs between two ranks, β what
// each further byte does, and the rate is that of Newton–Schulz on matrices of the size at hand: small ones keep a core
// less busy than large ones.

// What a rank does in a step, added up.
struct Counts {
  double messages = 0;  // empty ones included
  double bytes = 0;     // without headers
  double flops = 0;     // of Newton–Schulz
};
// What each of these takes on some machine.
struct Machine {
  double seconds_per_message = 0;  // α
  double seconds_per_byte = 0;     // β
  double seconds_per_flop = 0;     // of Newton–Schulz
};

// One after the other: nothing happens at the same time.
double seconds_of(const Counts& counts, const Machine& machine) {
  return counts.messages * machine.seconds_per_message + counts.bytes * machine.seconds_per_byte +
         counts.flops * machine.seconds_per_flop;
}

// A virtual machine with two cores of an EPYC, whose ranks talk over Gloo. It was measured once, and its numbers are
// part of the program (tools/scale/clusters/epyc-vm.json), as output has to be the same everywhere.
Machine epyc_vm() {
  const Cluster cluster = cluster_of("epyc-vm");
  const NetworkLevel& loopback = cluster.levels.front();  // α and β: between two ranks of the machine
  // The products of the largest matrix of the lesson, 32 × 32: three in each of five steps.
  const double share = product_efficiency(cluster.accelerator, newton_schulz_flops(32, 32) / 15).value;
  // Given as bandwidths and rates, wanted as the time of one.
  return {loopback.latency_seconds, 1 / loopback.bytes_per_second, 1 / (cluster.accelerator.flops_per_second * share)};
}

// Counts as a matrix of one row, which ranks can hand over and a check can compare, and back.
Matrix row_of(const Counts& counts) {
  return Matrix(1, 3, Flat{float(counts.messages), float(counts.bytes), float(counts.flops)});
}

// Numbers of this size come back exactly: below 2^24, float32 holds every whole number.
Counts counts_from(const Matrix& row) { return {row(0, 0), row(0, 1), row(0, 2)}; }

// The matrices: two layers of a toy, dealt out whole, by work: strategy (d) of lesson 16.
const std::vector<Parameter>& matrices() {
  static const std::vector<Parameter> all = expert_layers();
  return all;
}

// What one rank holds.
struct Local {
  Layout layout;                         // who owns what
  std::unique_ptr<Optimizer> optimizer;  // Muon
  Matrix counts;                         // 1 × 3: messages and bytes that my plan sends, and FLOPs
  Matrix step_seconds;                   // 1 × 1: of the slowest rank
};

// Weights and gradients: random numbers, the same for everybody.
std::unique_ptr<Training> data;

MuonSettings settings_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }

std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), rank.place.tp);
}

// ## The reference
//
// A model of time is a program like any other: it has a reference, and it has to be able to fail. What can be compared
// bit for bit here are the weights after the step (so the plan is of a step that was right), the counts, and what
// becomes of them. Whether a machine really takes so long is another question: `--trace run.json` writes down how long
// each call took on yours.
//
// For the weights: one process, whole matrices, and the sum of all gradients.
std::unique_ptr<ReferenceRun> reference;

std::vector<NamedMatrix> weights_after(const RankInfo& rank) {
  return reference->slices_after(1, rank.grid, rank.place);
}

// For the counts: the same three for a rank, with no plan and no layout: a loop over matrices. Whoever owns a matrix
// gets its gradients from the other DP ranks, gathers its TP slices, orthogonalizes it, and sends the new weights to
// all. So a rank sends each slice that it does not own once, and each that it owns to all others in dp; and to all
// others in tp where TP has cut it. Messages are counted as Muonwalk's ranks send them: directly, one to each other
// rank.
Counts counted_by_loops(const RankInfo& rank, int dp_rank) {
  const int dp = rank.grid.dp(), tp = rank.grid.tp();
  const double in_gather = rank.precision == Precision::bf16 ? 2 : 4;  // bytes per element
  const std::vector<int> owners = balanced_owners(matrices(), dp);
  Counts counts;
  counts.messages = dp > 1 ? 2 * (dp - 1) : 0;  // gradients out, weights out
  for (std::size_t i = 0; i < matrices().size(); ++i) {
    const Parameter& matrix = matrices()[i];
    const bool cut = matrix.tp_split_dim != SplitDim::none && tp > 1;
    const double slice = double(tp_shape(matrix, tp).size());
    if (owners[i] != dp_rank) {
      counts.bytes += 4 * slice;
      continue;
    }
    counts.bytes += 4 * slice * (dp - 1);
    if (cut) counts.messages += tp - 1;
    if (cut) counts.bytes += in_gather * slice * (tp - 1);
    counts.flops += newton_schulz_flops(matrix.shape.rows, matrix.shape.cols);
  }
  return counts;
}

Matrix expected_counts(const RankInfo& rank) { return row_of(counted_by_loops(rank, rank.place.dp)); }

// And the time of the slowest rank.
Matrix expected_seconds(const RankInfo& rank) {
  double slowest = 0;
  for (int dp = 0; dp < rank.grid.dp(); ++dp)
    slowest = std::max(slowest, seconds_of(counted_by_loops(rank, dp), epyc_vm()));
  return Matrix(1, 1, Flat{float(slowest)});
}

// ## The steps
//
// A step of Muon, as it is: the counts below are of something that has happened.
void one_step(Rank& rank, Local& local) {
  const Strategy by_work = owner_by_work();
  local.layout = by_work.lay_out(matrices(), rank.grid, 0);
  local.optimizer = by_work.optimizer(local.layout, settings_of(rank), 0);
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, *data, rank.place.tp));
  const auto slices = data->own_gradients(0, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  local.optimizer->step({local.layout, rank.place, rank.dp(), rank.tp()}, pack_slices(local.layout, slices));
}

// ### My plan, added up
//
// Calls and work in the order of the plan. The planted bug `flat_latency` counts a call as one message, however many
// ranks take part; so do published models, in which the latency of a collective is a constant. On a few ranks you would
// hardly notice it in a time, as bytes and work take longer. The more ranks there are, the more of α is missing.
void add_up(Rank& rank, Local& local) {
  const Plan plan = local.optimizer->plan(local.layout, rank.place);
  Counts counts;
  for (const PlannedCall& call : calls_of(plan)) {
    counts.messages += rank.bug("flat_latency") ? 1.0 : double(call.traffic.messages_sent);
    counts.bytes += double(call.traffic.bytes_sent);
  }
  counts.flops = flops(plan, phases::orthogonalize);
  local.counts = row_of(counts);
  rank.say(fmt::format("{}, {}, {} FLOP", count_text(std::llround(counts.messages), "message"),
                       bytes_text(std::llround(counts.bytes)), number_text(std::llround(counts.flops))));
}

// ### The slowest rank
//
// Each rank turns its counts into seconds, with α, β and the rate of that machine; then all gather all of them, and
// take the largest.
//
// The planted bug `gib_for_gb` reads a bandwidth in GB as one in GiB, 7 % more: the oldest mistake in this trade, and
// too small for anybody to see in a result. `mean_rank` takes the mean over the ranks. It is right where all have the
// same work, and this is what layouts are tested with.
void find_slowest(Rank& rank, Local& local) {
  Machine machine = epyc_vm();
  if (rank.bug("gib_for_gb")) machine.seconds_per_byte /= 1.024 * 1.024 * 1.024;
  const float mine = float(seconds_of(counts_from(local.counts), machine));
  // A step has no clock of its own: whoever is late makes the others wait in the next collective.
  Flat all(rank.group("world").size());
  rank.group("world").all_gather(&mine, 1, all.data());
  float slowest = *std::max_element(all.begin(), all.end());
  if (rank.bug("mean_rank")) slowest = std::accumulate(all.begin(), all.end(), 0.0f) / float(all.size());
  local.step_seconds = Matrix(1, 1, Flat{slowest});
  rank.say(fmt::format("{:.1f} µs by its plan; the slowest rank takes {:.1f} µs", mine * 1e6, slowest * 1e6));
}

// ## The cost
//
// That of the plan, and one number from each rank to all others.
Prediction predict(const RankInfo& rank) {
  const Strategy by_work = owner_by_work();
  const Layout layout = by_work.lay_out(matrices(), rank.grid, 0);
  Prediction prediction;
  prediction.ledger = ledger_of(by_work.optimizer(layout, settings_of(rank), 0)->plan(layout, rank.place));
  prediction.ledger.add("world", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(rank.grid.size(), 1, ElementType::float32));
  return prediction;
}

// ## From one machine to 100,000 ranks
//
// A plan needs no rank to run. So first the same sum for a real model, on as many such machines as you like, for the
// rank that has most of Newton–Schulz. Read the columns downwards. Newton–Schulz falls with the ranks until each of
// them has one matrix, and then no longer. From there on an owner has one matrix and ever more ranks that want it: the
// bytes grow, as a rank sends to each other rank directly. That is what rings and trees are for.
//
// Then a cluster of H100, which has both. Its bandwidths were measured on 1 to 64 nodes, and a figure from outside of
// that range is marked. The three promises: the communication of Muon on dp × tp 2 over that of AdamW with an
// all-reduce, which is what the 0.57 compared, as time and as bytes; what Muon adds to a whole training step, with the
// strategy that adds least; the optimizer's state, and beside it all that a rank holds between two steps. A ratio of
// bytes says little of time: gathers are slower here than an all-reduce of as many bytes.
//
// What Muon adds is first of all a formula (Keller Jordan, 2024). Newton–Schulz takes T steps of 6 m³ FLOPs on an m × m
// matrix, and the model 6 m² B in a step of B tokens. So Muon's work is T · m / B of the model's, times the ranks that
// repeat it, or wait while others do it. The batch decides: at a fixed one the model's part is shared by ever more
// ranks, and a matrix is not. A batch that grows with the GPUs hides that, by construction: the column beside it has
// 1.6 billion tokens in its last row, with which nobody trains. Where the fixed batch has fewer sequences than there
// are DP ranks, there is no such layout. `--batch-tokens` takes another batch.
//
// The overhead is a band. Newton–Schulz was timed on H100s with one matrix after the other, and with many at a time,
// and the two are not alike; the model's own products have a constant that was fitted to runs.
//
// And then the question that such a table has to answer: how far is it off? The model was compared with published
// training runs, with eight constants for all of them, and none for a model, a layout or a run. These constants were
// fitted to the same runs, so what comes out for them proves little. What counts are the columns beside: runs of a
// size, or on a number of nodes, that the constants were not fitted to. And one number that is not a constant,
// `slow_path_nodes`, from which on one stage takes the slow path too, was read off the runs on 64 nodes.
// `muonwalk-scale validate` prints all of that; what stands here is the short form, with what the model misses.
int batch_tokens = 0;  // as --batch-tokens says; 0: those of LLaMA
std::string table;     // of the promises, at that batch
std::string scaled_out() {
  return "a step of one rank, if all machines were like one that was measured, epyc-vm (tools/scale/clusters)\n" +
         machines_table() +
         "\n\nMuon over AdamW on h100-efa: time and bytes of communication; what Muon adds to a step, at a fixed\n"
         "batch and at one that grows, with the strategy that adds least: (b) boundary matrices, (c) owner, in\n"
         "turn, (d) owner, by work (lesson 16); state of the optimizer; all memory between two steps\n" +
         table +
         "\n\nthe model and published runs; its constants fitted to them (in sample), or without those of a size\n" +
         "or of a number of nodes\n" + validation_summary();
}

// Before any rank is started: refuse what can't work, and make what all ranks share.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError("--pp 2 or more has nothing to send here; try --dp 2 --tp 2, or muonwalk-scale plan");
  data = std::make_unique<RandomTraining>(matrices(), 1, rank.seed);
  if (batch_tokens < 0) throw UsageError(fmt::format("--batch-tokens {} is not a batch; try 4194304", batch_tokens));
  table = promises_table({batch_tokens});             // which refuses a batch that can't be
  owner_by_work().lay_out(matrices(), rank.grid, 0);  // which refuses a size of TP that does not divide a matrix
  reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(settings_of(rank)));
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_21_scale_out";
  info.title = "Scale out";
  info.question = "what is left of three promises on 100,000 GPUs, and how would I know that the answer is wrong?";
  info.bugs = {{"flat_latency", "a call costs one message, however many ranks take part"},
               {"gib_for_gb", "a bandwidth in GB per second is read as one in GiB"},
               {"mean_rank", "a step takes as long as the mean rank"}};
  info.also_try = {"--dp 2 --tp 2", "--batch-tokens 1048576"};
  info.options = {{"--batch-tokens", "of a training step of llama-7b (default 4194304, LLaMA's)", &batch_tokens}};
  info.groups = {{"world", {}}};
  info.products = Products::chain;

  // Groups of two would hide one of the bugs: exercise 1.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  lesson.step("a step of Muon", one_step);
  lesson.check("weights", held_slices, weights_after);
  // From here on nothing is trained. What was done is counted, and then turned into time.
  lesson.step("my plan, added up", add_up);
  lesson.check("messages, bytes, FLOPs", &Local::counts, expected_counts);
  lesson.step("the slowest rank", find_slowest);
  lesson.check("seconds of a step", &Local::step_seconds, expected_seconds);
  lesson.cost(predict);

  // What is left needs no ranks, whatever the table's first column says.
  lesson.say(scaled_out());

  // ## Exercises
  //
  // 1. `--bug flat_latency --dp 2 --tp 2`: the lesson says OK. Why? Hint: how many messages has a call there? Answer:
  //    One, as there is one other rank in each group, so to count calls is right. A model that is tested on two ranks
  //    can be wrong on three. This is how a flat latency gets into published models.
  // 2. On which grid does the check not see `mean_rank`? Hint: when does the mean rank take as long as the slowest?
  //    Answer: Where all ranks have the same work: `--dp 1 --tp 2`, and also `--dp 2 --tp 2`, where both owners get the
  //    same matrices. 14 matrices do not go evenly into dp 4, so there it is seen.
  // 3. `build/bin/muonwalk-scale plan --model 80B --gpus 512`: why does the winner beat the runner-up, which needs less
  //    memory and less time for gradients? And does a cluster with other links, `--cluster h100-ndr`, change that?
  //    Hint: the program says where the time goes, and what the runner-up loses. Answer: 80 layers and an output layer
  //    are filled into 32 stages less evenly than into 8, and a step waits for the fullest stage. It also fills and
  //    drains more stages. The other links make transfers cheaper for both, so the winner stays.
  return lesson.answer(
      "with tp 2 on this cluster, nothing is left in time of 0.57 times the communication. The overhead is T · m / B "
      "times who repeats it: half a percent for 7 B parameters at LLaMA's 4 M tokens, tp 2 and (b) to (d) up to 256 "
      "GPUs, twice that on 2,048; it falls only where the batch grows. Half the state stays half, of ever less memory. "
      "Ask for misses first.");
}
