// # Lesson 17 · Overlap
//
// A rank that waits for a gather computes nothing, and a rank that orthogonalizes a matrix leaves its link idle. Both
// could be busy at once: while a rank works on the matrices of one bucket, the next bucket travels. This lesson takes
// the same step four times, with the same bytes posted at different moments, and asks when that saves time. On your
// machine messages arrive at once, so there is little to hide; `--link 0.02,200` makes every rank's link as slow as
// 0.02 GB/s, with 200 µs from end to end.
//
// You need to know the DP gather (lesson 04), why a rank works on whole matrices (lesson 09), what small buckets cost
// (lesson 15), and how to read a trace (lesson 18).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lessons/lesson_17_overlap/overlap.hpp"
#include "lessons/lesson_17_overlap/overlap_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/optim/steps.hpp"
#include "src/text/names.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A call like all_gather returns when everything is there. A posted message (isend, irecv) returns at once, and
// somebody has to *wait* for it later. What happens between post and wait is overlap. With three buckets, on one rank:
//
//     in sequence    link       000     111     222
//                    processor     00000   11111   22222
//     all at once    link       000111222
//                    processor           000001111122222
//     pipelined      link       000111  222
//                    processor     000001111122222
//
// In a *pipeline*, bucket k + 1 is posted before bucket k is waited for. It costs memory: two buckets are held at a
// time in place of one. Starting all of them at once takes room for all.

// Four layers of two matrices. A bucket holds a layer or, where it is full at one element, a single matrix. Each DP
// rank owns an equal part of every bucket. TP ranks have slices, so their buckets are full at fewer elements.
std::vector<Parameter> layers(int count) {
  std::vector<Parameter> matrices;
  for (int layer = 0; layer < count; ++layer) {
    matrices.push_back({fmt::format("{}.up", layer), {256, 128}, SplitDim::rows});
    matrices.push_back({fmt::format("{}.down", layer), {128, 256}, SplitDim::columns});
  }
  return matrices;
}
const std::vector<Parameter> kMatrices = layers(4);
constexpr Index kLayer = 2 * 256 * 128;

struct ScheduledStep {
  std::string name;
  Schedule schedule;  // when its gathers are posted and waited for
  Index bucket;       // full at this number of elements, before TP
};
const std::vector<ScheduledStep> kWays = {{"in sequence", Schedule::in_sequence, kLayer},
                                          {"all at once", Schedule::all_at_once, kLayer},
                                          {"pipelined", Schedule::pipelined, kLayer},
                                          {"tiny buckets", Schedule::pipelined, 1}};
Layout layout_of(const RankInfo& rank, const ScheduledStep& way) {
  LayoutOptions options;
  options.bucket_capacity = std::max<Index>(1, way.bucket / rank.grid.tp());
  return plan_layout(kMatrices, rank.grid, options);
}
MuonSettings settings_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }
std::string own_link, own_way;  // what you asked for: the speed of the link, and perhaps one way alone
bool asked_for(const ScheduledStep& way) { return own_way.empty() || own_way == way.name; }

// What every rank's plan says of a way, and what plans are played on: a link, and 20 GFLOP/s for Newton–Schulz on one
// rank, a core that it shares with others.
std::vector<PlannedStep> planned;  // all ways, for all ranks
const PlannedStep& plan_of(const ScheduledStep& way) { return planned[std::size_t(&way - kWays.data())]; }
PlayedMachine machine() { return {parse_link_speed("--link", own_link.empty() ? "0.02,200" : own_link), 20}; }

// What one rank holds.
struct Local {
  std::vector<Matrix> gradients;         // my TP slices of the gradients that I computed, in the order of the matrices
  std::vector<NamedMatrix> new_weights;  // my TP slices after the step, one way after the other
  Layout layout;                         // of the way that is being taken, as all that follows: who owns what
  Plan plan;                             // and how long things take in virtual time
  MuonState state;                       // weights: whole buckets; momentum: my DP shards
  Buckets packed;                        // my gradients in buckets
  std::vector<Flat> updates;             // my DP shard of each bucket's update, until it is posted
  std::string moves;                     // what I did, in order
};

// ## The reference
//
// One process that takes the step with whole matrices. It sends nothing and waits for nothing, so it is the same for
// all ways: when a message travels must not change a bit.
std::unique_ptr<Training> data;
std::unique_ptr<ReferenceRun> reference;
std::vector<NamedMatrix> new_weights(const RankInfo& rank) {
  std::vector<NamedMatrix> all;
  for (const ScheduledStep& way : kWays)
    if (asked_for(way)) append_of(way.name, reference->slices_after(1, rank.grid, rank.place), all);
  return all;
}

// ## The steps
//
// Gradients of my own. Memory is counted from here on.
void start(Rank& rank, Local& local) {
  const Layout layout = layout_of(rank, kWays[0]);  // any of them will do
  const Buckets weights = first_buckets(layout, *data, rank.place.tp);
  local.gradients =
      data->own_gradients(0, rank.grid.dp(), rank.place.dp, unpack_buckets(layout, weights, rank.place.tp));
  rank.memory().restart_peak();
}

// Every way begins alike: the reduce-scatter of all gradients, and the momentum of my shards. In training this follows
// the backward pass, which has an overlap of its own: a bucket of gradients travels as soon as it is full.
StepContext context_of(Rank& rank, const Local& local) { return {local.layout, rank.place, rank.dp(), rank.tp()}; }
void begin_way(Rank& rank, Local& local, const ScheduledStep& way) {
  rank.phase("gradients and momentum");
  local.layout = layout_of(rank, way);
  local.plan = plan_of(way).plans[rank.rank()];
  local.state = {first_buckets(local.layout, *data, rank.place.tp), zero_shards(local.layout, rank.place.dp)};
  local.packed = pack_slices(local.layout, local.gradients);
  local.updates.clear();  // of the way before
  for (const BucketNumber bucket : local.layout.all_buckets())
    local.updates.push_back(own_update(context_of(rank, local), settings_of(rank), local.packed, local.state, bucket));
}

// ### Three moves
//
// *Post*: room for the bucket, my shard in its place, and messages to and from each other rank. It returns while they
// are under way (`PostedGather`, in overlap.hpp beside this file). What is sent must stay as it is until the wait,
// because nobody knows when the transport comes to read it.
//
// The planted bug `reused_buffer` needs that memory for something else at once. A message may be fast, and then nobody
// would notice; so with the bug all ranks meet before they get ready to receive. A long message is read when its
// receive has been posted, and no earlier, so by then its memory holds zeros.
PostedGather post(Rank& rank, Local& local, int k) {
  rank.phase("post a bucket");
  PostedGather gather(rank.dp(), local.layout.dp_counts(0, k), settings_of(rank).gathered());
  gather.fill(local.updates[k]);
  gather.send();
  if (rank.bug("reused_buffer")) gather.fill(Flat(local.updates[k].size()));
  if (rank.bug("reused_buffer")) rank.dp().barrier();
  gather.receive();
  local.updates[k] = Flat();  // my shard lies in the bucket now
  local.moves += fmt::format("↑{} ", k);
  return gather;
}

// *Wait*: until the bucket is whole, and my shard was taken by everybody.
//
// The planted bug `no_wait` works with what lay there when the bucket was posted. How much of it arrives by then
// differs from run to run, so the bug takes the worst case: nothing but the zeros that the memory began with.
Flat wait(Rank& rank, Local& local, int k, PostedGather& gather) {
  rank.phase("wait for a bucket");
  Flat bucket = gather.wait();
  local.moves += fmt::format("↓{} ", k);
  if (rank.bug("no_wait")) std::fill(bucket.begin(), bucket.end(), 0.0f);
  return bucket;
}

// *Work*: each matrix of which I own an element, from the bucket to my part of the new weights, as in lesson 09. Where
// ranks are fibers and the link is slow, time is virtual, and passes by the FLOPs of the plan.
void work(Rank& rank, Local& local, int k, const Flat& bucket) {
  rank.phase("work on a bucket");
  const Index begin = local.layout.bucket({0, k}).range.begin;
  for (const int index : local.layout.bucket({0, k}).parameters)
    matrix_step(context_of(rank, local), settings_of(rank), local.layout.buffers[0].parameters[index], bucket, begin,
                local.state);
  rank.let_pass(work_ns(local.plan, local.layout, k, machine()));
  local.moves += fmt::format("■{} ", k);
}

// Every way ends alike: the new weights go to everybody. Rank 0 says what it did.
void end_way(Rank& rank, Local& local, const ScheduledStep& way) {
  rank.phase("all-gather of weights");
  for (const auto& [b, k] : local.layout.all_buckets())
    all_gather_weights(rank.dp(), local.state.weights[b][k], local.layout.dp_counts(b, k));
  local.packed.clear();  // what follows is for the checks
  append_of(way.name, unpack_buckets(local.layout, local.state.weights, rank.place.tp), local.new_weights);
  local.state = {};
  if (way.schedule == Schedule::in_sequence) local.moves += " ↑ start a gather, ↓ wait, ■ orthogonalize";
  if (rank.rank() == 0) rank.say(std::exchange(local.moves, ""));
}

// ### Four ways
//
// The same moves in another order, and nothing else. Rank 0 prints its moves: ↑ is a post, ↓ a wait, ■ the work on a
// bucket. In sequence, each bucket is waited for as soon as it is posted: that is the all-gather of lesson 09, taken
// apart.
void in_sequence(Rank& rank, Local& local) {
  begin_way(rank, local, kWays[0]);
  for (int k = 0; k < int(local.updates.size()); ++k) {
    PostedGather gather = post(rank, local, k);
    work(rank, local, k, wait(rank, local, k, gather));
  }
  end_way(rank, local, kWays[0]);
}

// All at once, latency is paid once. But the processor has nothing to do until all is there, and all buckets are held.
void all_at_once(Rank& rank, Local& local) {
  begin_way(rank, local, kWays[1]);
  std::vector<PostedGather> gathers;  // all of them under way
  std::vector<Flat> buckets;          // all of them held
  for (int k = 0; k < int(local.updates.size()); ++k) gathers.push_back(post(rank, local, k));
  for (int k = 0; k < int(local.updates.size()); ++k) buckets.push_back(wait(rank, local, k, gathers[k]));
  for (int k = 0; k < int(local.updates.size()); ++k) work(rank, local, k, std::exchange(buckets[k], Flat()));
  end_way(rank, local, kWays[1]);
}

// The pipeline. Look at the order of its moves: the next bucket is posted *before* the current one is waited for, and
// so it travels while the current one is worked on.
//
// The planted bug `wrong_bucket` mixes up the two: it waits for the bucket that was just posted, and takes it for the
// current one. Its size is right, so nothing fails.
void pipeline(Rank& rank, Local& local, const ScheduledStep& way) {
  begin_way(rank, local, way);
  PostedGather next = post(rank, local, 0);
  for (int k = 0; k < int(local.updates.size()); ++k) {
    PostedGather current = std::move(next);
    if (k + 1 < int(local.updates.size())) next = post(rank, local, k + 1);
    if (rank.bug("wrong_bucket") && k + 1 < int(local.updates.size())) std::swap(current, next);
    work(rank, local, k, wait(rank, local, k, current));
  }
  end_way(rank, local, way);
}

// Once with a bucket per layer, and once with a bucket per matrix. The smaller the buckets are, the sooner the first of
// them is there. But each has its own latency, and is cut among all ranks, so they orthogonalize all matrices.
void pipelined(Rank& rank, Local& local) { pipeline(rank, local, kWays[2]); }
void tiny_buckets(Rank& rank, Local& local) { pipeline(rank, local, kWays[3]); }

// ## What a plan takes
//
// How long is that? A clock would say something else in every run, so the tables come from the plans. `play` (in
// lessons/lesson_17_overlap) walks through the plan of a rank (`overlapped_plan`) with two things that can be busy:
// its processor, to which FLOPs take time, and its link, to which bytes take time, one message after the other, plus
// the latency. A wait ends when its message has come. The slowest rank is shown.
//
// `waiting` is what the processor does besides computing. `under way, added up` is the time from post to wait of all
// messages, as somebody gets it who adds up their times in a trace; `hidden` is how much of the time under way the rank
// was also computing.
//
// The last table asks when overlap pays. On a fast link nothing has to be hidden, and on a slow one the little work
// doesn't cover the long journey. It pays most where both take about as long. On a long link the latency decides: a
// pipeline that is one bucket ahead pays it for each bucket, and starting all at once pays it once.
// ## What was measured
//
// The same figures from the clock, on standard error. With `--link 0.02,200` the four ways come apart as the tables
// say, more or less, because the machine has other things to do. With `--world fibers` as well, the clock is virtual:
// then the figures are those of the tables, to the nanosecond, on every machine. Compare `in sequence` and `pipelined`:
// the span gets shorter, and the times of the messages, added up, get *longer*. A message is under way while the rank
// computes, and while it queues behind the one before, and all that counts as its time. Whoever adds up would say that
// the pipeline communicates more slowly.
//
// That has been published: "asynchronous is 2.1× slower". It adds up what overlapped kernels wait for, while the whole
// range got shorter, from 388.9 to 349.8 ms on the host and from 407.0 to 366.3 ms on the device, with 76.9 % of the
// communication overlapped (counted by us in the traces that were published with it, see lesson 18). `--way pipelined
// --trace run.json` writes a trace of one way alone, and `muonwalk-trace summary` adds it up.
void print_measured(Lesson<Local>& lesson) {
  if (lesson.options().verbose == 0) return;
  lesson.in_parent([&lesson] {
    print_error_line(measured_table(measured_steps(lesson.trace(), "post a bucket", "all-gather of weights")));
  });
}

// ## The cost
//
// The sums over the plans: the four ways send the same bytes, in more or fewer messages, and hold one bucket, all, or
// two. Beside a step, a rank keeps its gradients, and the new weights of the ways before.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  int kept = 0;                                      // times the slices: first the gradients
  const Index slices = 4 * kLayer / rank.grid.tp();  // elements of my TP slices
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    const Plan& plan = planned[i].plans[std::size_t(rank.place.rank)];
    if (!asked_for(kWays[i])) continue;
    prediction.ledger.add(ledger_of(plan), 1);
    prediction.peak_elements = std::max(prediction.peak_elements, ++kept * slices + peak_elements(plan));
  }
  return prediction;
}

// Before any rank is started: refuse what can't work, and make what all ranks share.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(
        fmt::format("--pp {} has no place here, where one step is looked at by itself; try --pp 1", rank.grid.pp()));
  if (std::none_of(kWays.begin(), kWays.end(), asked_for))
    throw UsageError(
        fmt::format("--way {} is not known; it takes one of: in sequence, all at once, pipelined, tiny "
                    "buckets",
                    as_typed(own_way)));
  machine();  // which refuses what is not a link
  planned.clear();
  for (const ScheduledStep& way : kWays)
    planned.push_back(planned_step(way.name, layout_of(rank, way), settings_of(rank), way.schedule));
  data = std::make_unique<RandomTraining>(kMatrices, 1, rank.seed);
  reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(settings_of(rank)));
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_17_overlap";
  info.title = "Overlap";
  info.question = "when does it save time to gather one bucket while the matrices of another are orthogonalized?";
  info.bugs = {{"reused_buffer", "the memory of a shard is used again while the shard still travels"},
               {"no_wait", "a bucket is worked on before it has arrived"},
               {"wrong_bucket", "the pipeline takes the bucket that it has just posted for the current one"}};
  info.also_try = {"--link 0.02,200", "--link 1,40000", "--way pipelined --link 0.02,200 --trace run.json"};
  info.options = {
      {"--link", "GB/s and microseconds: makes every rank's link as slow, for example\n0.02,200", &own_link},
      {"--way", "only one of them: in sequence, all at once, pipelined, tiny buckets", &own_way}};
  info.traced = true;  // for what was measured

  // What the plans say, as tables; and the steps, each a way.
  Lesson<Local> lesson(info, Grid().dp(4), argc, argv);
  lesson.require(prepare);
  if (!own_link.empty()) lesson.set_up().link = machine().link;
  lesson.say("all at once: start all gathers first; pipelined: the next before each work; tiny: one matrix each");
  lesson.say(overlap_tables(planned, machine()) + "\n");
  lesson.step("gradients of my own", start);
  if (asked_for(kWays[0])) lesson.step("optimizer step, in sequence", in_sequence);
  if (asked_for(kWays[1])) lesson.step("optimizer step, all at once", all_at_once);
  if (asked_for(kWays[2])) lesson.step("optimizer step, pipelined", pipelined);
  if (asked_for(kWays[3])) lesson.step("optimizer step, in tiny buckets", tiny_buckets);
  lesson.check("new weights, every way", &Local::new_weights, new_weights);
  lesson.cost(predict);
  lesson.timings();
  print_measured(lesson);

  // ## Exercises
  //
  // 1. On which links of the last table does `all at once` beat the pipeline, and what would a pipeline need to be as
  //    good there? Hint: how many buckets are under way at a time? Answer: where the latency is longer than the work on
  //    a bucket. The pipeline has one bucket under way while it works, so it waits for the rest of a latency with every
  //    bucket. If it posted several buckets ahead, their latencies would overlap, and all of them would be hidden once
  //    there are enough; the price is room for as many buckets.
  // 2. Why do tiny buckets have more to compute, on any link? Hint: how many ranks own a part of one matrix? Answer:
  //    each bucket is cut into equal parts, one for each rank. With a layer in a bucket, a rank's part lies in one of
  //    the two matrices; with one matrix in a bucket, all ranks have a part of it, and each needs and orthogonalizes
  //    the whole of it (lesson 15).
  // 3. `--way pipelined --link 0.02,200 --trace a.json`, the same with `--way "in sequence"` and b.json, and then
  //    `muonwalk-trace summary` of each: which figure gets shorter and which longer? Hint: one of them is a sum.
  //    Answer: the span gets shorter. The communication, as a sum, gets longer: messages were under way at the same
  //    time, and while the rank computed.
  return lesson.answer(
      "where bytes take about as long to travel as matrices take to be orthogonalized. There a pipeline hides most of "
      "the shorter one behind the longer. On a fast link there is nothing to hide, and on a slow one little to hide it "
      "behind. On a long one it loses to starting all at once, which pays the latency once and holds all buckets. "
      "Buckets must be small enough that there is a next one, and no smaller: each has its latency, and the more ranks "
      "own a part of a matrix, the more of them orthogonalize it.");
}
