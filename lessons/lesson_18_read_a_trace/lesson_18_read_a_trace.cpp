// # Lesson 18 · Read a trace
//
// A profiler writes down what happened when: a name, a begin, a duration, thousands of times. Every number that is
// read out of such a *trace* is somebody's sum over events, and the same trace gives a small sum or a large one. This
// lesson reads a trace that is made up and small enough to check by eye; then the traces of three runs of its own; and
// then it says what became of figures that were published with their traces, when these were read again.
//
// You need to know the steps of Muon (lesson 09) and the collectives (lesson 02).

#include <fmt/format.h>

#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"
#include "lessons/lesson_18_read_a_trace/made_up_trace.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/products.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// The program runs on the *host*. It only puts work into the queues of a *device*, its streams, and goes on; the device
// comes to it later. So one call of a collective leaves four events in a trace, and one of them is the call itself:
//
//     host range     ▌           named by whoever wrote the program: as long as the host was in it
//     host operator  ▌           the time to put the call into the queue
//     device range       ██████  drawn by the profiler around the kernels that the host range has started
//     kernel             ██████  what the device did: this is the time that the call took
//
// Here is a trace to try it on, in whole milliseconds: rank, kind, name, stream (0 is the host), begin, duration. Each
// rank gathers twice, on two streams, and begins Newton–Schulz when the first gather has ended. Rank 1 is a
// *straggler*. What it has on the host is left out.
const std::vector<MadeUpEvent> kMadeUp = {
    {0, "user_annotation", "training step", 0, 0, 8},             // 8 ms, and the host is done with all of it
    {0, "user_annotation", "Optimizer.step#Muon", 0, 4, 2},       // 2 ms to start the optimizer
    {0, "user_annotation", "nccl:all_gather", 0, 4, 1},           // the first gather: a range on the host,
    {0, "cpu_op", "c10d::all_gather_", 0, 4, 1},                  // the operator,
    {0, "gpu_user_annotation", "nccl:all_gather", 20, 8, 8},      // the same range on the device,
    {0, "kernel", "ncclAllGather", 20, 8, 8},                     // and what took the time
    {0, "user_annotation", "nccl:all_gather", 0, 5, 1},           // the second gather, in four events as well
    {0, "cpu_op", "c10d::all_gather_", 0, 5, 1},                  // 1 ms on the host
    {0, "gpu_user_annotation", "nccl:all_gather", 24, 14, 6},     // and 6 ms on the device, of which
    {0, "kernel", "ncclAllGather", 24, 14, 6},                    // 2 are those of the first gather, too
    {0, "gpu_user_annotation", "Optimizer.step#Muon", 7, 8, 18},  // what those 2 ms on the host have started
    {0, "kernel", "gemm", 7, 2, 6},                               // forward and backward
    {0, "kernel", "gemm", 7, 16, 10},                             // Newton–Schulz
    {1, "kernel", "gemm", 7, 2, 10},                              // rank 1 takes 4 ms longer for its model,
    {1, "kernel", "gemm", 7, 16, 10},                             // as long as rank 0 for Newton–Schulz,
    {1, "kernel", "ncclAllGather", 20, 12, 4},                    // 4 ms late in the first gather
    {1, "kernel", "ncclAllGather", 24, 14, 6}};                   // and in time for the second

// ## The reference
//
// What does a rank do in one millisecond? It computes or it doesn't, it communicates or it doesn't. Ask that of every
// millisecond, and nothing can be counted twice.
bool does(int rank, int now, const std::string& name) {
  for (const MadeUpEvent& event : kMadeUp)
    if (event.rank == rank && event.stream > 0 && event.name == name && event.begin <= now && now < event.end())
      return true;
  return false;
}

// A call that waits looks like one that is slow. The same call on the other rank tells: the shorter one came last and
// waited for nobody, so what the longer one took more was waiting.
int waited(const MadeUpEvent& call) {
  int shortest = call.duration;
  for (const MadeUpEvent& other : kMadeUp)
    if (other.name == call.name && other.stream == call.stream) shortest = std::min(shortest, other.duration);
  return call.duration - shortest;
}

// All figures of both ranks, with plain loops.
NamedNumbers by_the_millisecond() {
  NamedNumbers ms;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string who = fmt::format("rank {}: ", rank);
    for (int now = 0; now < 26; ++now) {
      const bool computes = does(rank, now, "gemm"), communicates = does(rank, now, "ncclAllGather");
      ms[who + "computation"] += computes;
      ms[who + "communication"] += communicates;        // a union: two calls at a time are one millisecond
      ms[who + "overlap"] += computes && communicates;  // waiting that costs nothing
      ms[who + "optimizer"] += does(rank, now, "Optimizer.step#Muon");
    }
    for (const MadeUpEvent& event : kMadeUp) {
      if (event.rank != rank || event.name != "ncclAllGather") continue;
      ms[who + "calls"] += 1;  // one for the kernel, none for its ranges
      ms[who + "waiting"] += waited(event);
    }
  }
  return ms;
}

// The analyser of `muonwalk-trace summary` has to come to the same numbers, with intervals instead of milliseconds.
//
// Four bugs are planted in this reader. Each makes a figure that looks as good as the right one: calls are counted by
// name, times are added up that overlap, the host is taken for the device, and what other ranks did is not looked at.
Summary read(const RankInfo& info, std::vector<TraceFile> files) {
  if (info.bug("one_rank_only")) files.resize(1);
  Summary summary = summarize(files);
  if (info.bug("one_rank_only")) summary.ranks.resize(1);               // nobody knows for whom it waited
  if (info.bug("count_by_name")) take_names_for_calls(files, summary);  // ranges are taken for calls
  for (RankSummary& rank : summary.ranks) {
    if (info.bug("sum_not_union")) rank.communication_ns = rank.communication_sum_ns;
    if (info.bug("host_for_device")) rank.optimizer_device = rank.optimizer_host;
  }
  return summary;
}

// ### The reference of the runs
//
// Three runs follow: AdamW on dp 4, and Muon on dp 4 and on dp 2 × tp 2, each an [Optimizer], all on the same matrices.
// Their weights are compared with those of one process, and what is read out of their traces with the *ledger*, which
// the transport kept while it sent, and which knows nothing of any clock.
const std::vector<Parameter> kParameters = {
    {"w_query", {128, 128}, SplitDim::rows, 0},     // all matrices of a small layer,
    {"w_out", {128, 128}, SplitDim::columns, 0},    // the first and the third cut by rows,
    {"w_up", {256, 128}, SplitDim::rows, 0},        // the others by columns,
    {"w_down", {128, 256}, SplitDim::columns, 0}};  // as tensor parallelism does it
constexpr int kSteps = 2;                           // enough to see that a sum over steps is not a figure per step
bool with_muon = false;  // which optimizer this run has: settled before its ranks start, so all know it
RandomTraining training(const RankInfo& rank) { return RandomTraining(kParameters, kSteps, rank.seed); }
std::unique_ptr<Optimizer> optimizer(const RankInfo& rank) {  // a new one for every rank
  if (with_muon) return std::make_unique<Muon>(muon_settings(rank.precision, rank.threads, rank.products));
  return std::make_unique<AdamW>(AdamWSettings());  // which keeps both moments whole
}
std::vector<NamedMatrix> expected_slices(const RankInfo& rank) {  // by the reference of the same optimizer
  return ReferenceRun(training(rank), optimizer(rank)).slices_after(kSteps, rank.grid, rank.place);
}

// ## The steps
//
// What one rank holds. Muon keeps a DP shard of its momentum; AdamW keeps both of its moments whole, on every DP rank.
struct Local {
  Layout layout;                         // who owns what, the same for both optimizers
  std::unique_ptr<Optimizer> optimizer;  // my weights, and what it keeps besides them
  int step = 0;                          // training steps done
};

// Plan the layout, the same for both optimizers, and pack my slices.
void start(Rank& rank, Local& local) {
  local.layout = plan_layout(kParameters, rank.grid);  // nothing is sent for it
  local.optimizer = optimizer(rank);                   // Muon or AdamW, the lesson does not care
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, training(rank), rank.place.tp));
}

// What I hold in the end: my weights by parameter, and so many elements besides them.
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), rank.place.tp);
}
std::vector<NamedMatrix> kept_elements(const RankInfo&, const Local& local) {  // as a matrix of one element
  return named(Flat{static_cast<float>(local.optimizer->kept_elements())});
}

// One training step. A stand-in for forward and backward takes about the time that they would take. Then every phase of
// [AdamW::step] or [full_step] becomes a range in the trace, every call on a group an event of its own, and all other
// time is computation: on a CPU, host and device are the same. Gradients are random numbers. The planted bug
// `lost_gradient` lets rank 1 train without its own.
void stand_in_for_model(const std::vector<NamedMatrix>& layers, Index tokens, int threads) {
  for (const NamedMatrix& layer : layers) {
    const Matrix inputs = random_matrix({0, 0}, layer.matrix.cols(), tokens);
    Matrix outputs, gradient_of_weights, gradient_of_inputs;
    multiply(layer.matrix, inputs, outputs, threads);
    multiply(outputs, inputs.transposed(), gradient_of_weights, threads);
    multiply(layer.matrix.transposed(), outputs, gradient_of_inputs, threads);
  }
}
void training_step(Rank& rank, Local& local) {
  rank.phase("forward and backward");  // a range in the trace, as long as the next one does not begin
  stand_in_for_model(held_slices(rank, local), 64, rank.threads);  // of 64 tokens
  auto own = training(rank).own_gradients(local.step++, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  if (rank.bug("lost_gradient") && rank.rank() == 1)
    for (Matrix& slice : own) slice = Matrix(slice.rows(), slice.cols());
  // Each phase gets a name that begins with "optimizer", by which its share of the step can be found again.
  const auto observer = [&rank](Phase phase, const DistMeta*) { rank.phase("optimizer: " + std::string(phase)); };
  local.optimizer->step({local.layout, rank.place, rank.dp(), rank.tp(), observer}, pack_slices(local.layout, own));
}

// ### Read what it left behind
//
// The times differ from run to run, so they go to standard error, read in both ways. Look for four things there:
//
// - *Names.* Phases like "all-reduce of gradients" bear the names of collectives: who adds up by name counts twice.
// - *Waiting.* Four ranks share the cores of your machine, so some come late, and most of a call is waiting.
// - *Overlap.* It is 0: a rank that calls computes nothing until the call has returned.
// - *Host and device.* On a CPU they are one, and the optimizer's range is the time that it takes.
//
// The trace is written and read as a file would be, and every rank's calls and bytes are held against the ledger.
std::vector<ComparedRun> runs;  // of all runs, for the table at the end
void read_run(Lesson<Local>& lesson) {
  double kept = 0;  // on all ranks
  for (const auto& of_rank : lesson.collect(kept_elements)) kept += of_rank[0].matrix(0, 0);
  lesson.in_parent([&] {
    const TraceFile file = written_and_read(lesson.trace());   // what a file would hold
    const Summary summary = read(lesson.rank_info(), {file});  // by the reader from above
    lesson.check_numbers("the trace, against the ledger: calls and bytes of every rank", call_counts(summary),
                         ledger_counts(lesson.trace()));
    runs.push_back(compared_run(optimizer(lesson.rank_info())->name(), lesson.options().grid, file, summary,
                                static_cast<std::int64_t>(kept)));
    if (lesson.options().verbose > 0) print_error_line(runs.back().measured);  // other figures in each run
  });
}

// ## The cost
//
// What the ranks send. AdamW adds up whole gradients. Muon adds up each rank's part of them, and then gathers updates
// and weights over dp and matrices over tp. The calls of a group of one rank send nothing, and yet they are calls.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  prediction.ledger.add(ledger_of(optimizer(rank)->plan(plan_layout(kParameters, rank.grid), rank.place)), kSteps);
  return prediction;
}

// ## What was published
//
// [Distributed Muon: Field Notes & Reproducibility
// Artifacts](https://huggingface.co/datasets/bird-of-paradise/muon-distributed-reproducibility) (Jen Wei, 2025) came
// with its traces, so its figures can be read again. That is rare, and it is what makes the second look possible. The
// last table has each claim as it was published, as we have read it again, by which rule, and whether it holds.
// `muonwalk-trace published` reads the traces on your machine, and shows each figure as it was counted, too. Our own
// runs have no GPU: they tell calls, bytes and elements, and no milliseconds there.

// What can't work is refused before any rank starts.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(fmt::format("--pp {}: this lesson has no pipeline; try --pp 1", rank.grid.pp()));
  plan_layout(kParameters, rank.grid);  // throws where TP divides a matrix unevenly
}

// All runs side by side, and the claims.
int compare_runs(Lesson<Local>& lesson) {
  lesson.say(compared_runs_text(runs));
  return lesson.answer(
      "when each event began and how long it took, and not what may be added: one call is several "
      "events, what runs at the same time must be united, the host's time is not the device's, and a call's time is "
      "also waiting for the last rank; a figure is worth as much as the sentence on how it was counted.");
}

// One run of Muon.
int run_muon(const LessonInfo& info, const Grid& grid, bool last, int argc, char** argv) {
  with_muon = true;  // before any rank of this run is started
  Lesson<Local> lesson(info, grid, argc, argv);
  lesson.require(prepare);
  lesson.quiet_step("lay out the parameters", start);
  for (int step = 1; step <= kSteps; ++step) lesson.quiet_step(fmt::format("training step {}", step), training_step);
  lesson.check(fmt::format("Muon: weights after {} steps", kSteps), held_slices, expected_slices);
  lesson.cost(predict);  // bytes by formula, by the ledger, and by the kernel
  read_run(lesson);      // and what its trace says
  return last ? compare_runs(lesson) : lesson.answer("");
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_18_read_a_trace";
  info.title = "Read a trace";
  info.question = "what does a trace say about the time that an optimizer takes, and what does it not say?";
  info.bugs = {{"count_by_name", "every event that bears the name of a collective is taken for a call"},
               {"sum_not_union", "the times of calls that ran at the same time are added up"},
               {"host_for_device", "the time to start the optimizer is taken for the time that it took"},
               {"one_rank_only", "only the trace of rank 0 is read"},
               {"lost_gradient", "rank 1 trains without its own gradient"}};
  info.also_try = {"--precision bf16", "--dp 1 --tp 4", "--trace run.json"};
  info.traced = true;  // its own trace is kept in memory

  // The made-up trace as a picture, and what two readers make of it.
  Lesson<Local> lesson(info, Grid().dp(4), argc, argv);
  lesson.require(prepare);
  std::vector<TraceFile> files = made_up_trace(kMadeUp);  // one per rank
  lesson.say("a trace made up for this lesson: the host of a rank starts work, which its device does, on streams");
  lesson.say(lines_text(drawn(kMadeUp)) + "\n\n" + lines_text(two_readings(files, summarize(files))));
  lesson.check_numbers("the made-up trace, read again: as counted by the millisecond",
                       in_milliseconds(read(lesson.rank_info(), files)), by_the_millisecond());

  // AdamW: the steps, and what is checked of them: weights, bytes, and what the trace says.
  lesson.quiet_step("lay out the parameters", start);
  for (int step = 1; step <= kSteps; ++step) lesson.quiet_step(fmt::format("training step {}", step), training_step);
  lesson.check("AdamW: weights after 2 steps", held_slices, expected_slices);
  lesson.cost(predict);          // bytes by formula, by the ledger, and by the kernel
  read_run(lesson);              // and what its trace says
  int code = lesson.answer("");  // which comes after the last run

  // Then Muon, on two grids or on the reader's own.
  LessonInfo asked = info;  // a copy, for in a notebook the lesson may begin again
  asked.question.clear();   // it was asked
  std::vector<Grid> grids = {Grid().dp(4), Grid().dp(2).tp(2)};
  if (lesson.options().grid_given) grids = {lesson.options().grid};
  for (std::size_t i = 0; i < grids.size(); ++i)
    code = std::max(code, run_muon(asked, grids[i], i + 1 == grids.size(), argc, argv));

  // ## Exercises
  //
  // 1. In the made-up trace, let the second gather begin at 16 on both ranks. Which figures of rank 0 change, and what
  //    does the reader see of it who adds up? Hint: two calls at the same time are one stretch of time. Answer: The
  //    gathers no longer run at the same time, so the communication grows from 12 to 14 ms, and 6 ms of it in place of
  //    4 overlap with Newton–Schulz. Calls, waiting and optimizer stay. The sums stay as well: who adds up sees
  //    nothing.
  // 2. Rank 0 spends 8 ms in its first gather and rank 1 spends 4. Which rank would you have to make faster? Hint: not
  //    the one whose figure is larger. Answer: Rank 1. Its model takes 4 ms longer, so it comes 4 ms late, and half of
  //    the 8 ms of rank 0 are waiting for it.
  // 3. Look at the optimizer's share on the host. What would make it nearly all, without a change on the device? Hint:
  //    the host may ask the device for a number. Answer: A line in the optimizer that waits for the device, for example
  //    to log a norm. Then the host's range ends when the device is done, and the rest of the step is short beside it.
  return code;
}
