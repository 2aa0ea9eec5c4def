// # Lesson 22 · NCCL
//
// The journey of lessons 04 to 08 and the main job of lesson 09 once more: the same steps, the same checks, the same
// bits. With `--transport nccl` every rank has a GPU: its arrays lie in the GPU's memory, kernels compute on them
// there, and NCCL, NVIDIA's library of collectives, takes them from GPU to GPU without a detour over the host.
//
// Without that option no GPU takes part, as the first line says. The lesson then takes the very same steps on the host,
// on any laptop, and works out what would have to cross between host and GPU. What only a GPU can show is printed where
// there is one: in whose memory the driver sees an array, what was queued, and who waited. No GPU has run this lesson
// yet. What its page shows of `--transport nccl` was printed by stand-ins for CUDA's driver and for NCCL, on a
// processor.
//
// You need to know the full step (lesson 09) and its stages (lesson 04 and so on).

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lessons/lesson_22_nccl/processor.hpp"
#include "lessons/lesson_22_nccl/tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/optim/buckets.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A rank is a process on the host that gives orders to a GPU. Between the two memories lies a bus, over which nothing
// should go that need not. So the arrays stay with the GPU, and of them the host has no more than the addresses:
//
//     rank 0   host   orders and addresses                        host   rank 1
//                │     "momentum of 20 at 0x…"                      │
//                ▼                                                  ▼
//              queue   copy · kernel · kernel · ▒▒▒▒ · kernel …   queue
//                │                              ▒▒▒▒                │
//              GPU 0   weights, momentum  ◀══ NCCL ══▶  weights   GPU 1
//
// An order is *queued*: the call returns at once, and the GPU works its queue off in order (CUDA says *stream*). So a
// call that has returned need not be done. NCCL has queues of its own, one per group here, which know nothing of the
// rank's. That is where GPU programs go wrong, and the planted bugs are of that kind.

// What you asked for with an option of this lesson, and whether ranks have GPUs.
bool real_sizes = false, on_gpus = false;
constexpr int kSteps = 3;  // optimizer steps

// What one rank holds. A `Processor` is what it computes with: the host, or its GPU, with
// the same functions and the same bits. An `Array` lies in the memory of one: on a GPU, `data()` is an address that the
// host must not look into.
struct Local {
  std::unique_ptr<Processor> processor;  // goes last, after all that lies with it
  Layout layout;                         // who owns what
  Array weights, gradients;              // of my TP slices: the whole bucket
  Array momentum;                        // my DP shard
  Array update;                          // my DP shard, and after the DP gather the whole bucket
  std::vector<DistMeta> now;             // the matrices that are on their way: all of mine, or one
  std::vector<Array> matrices;           // those of them that are whole
  int step = 0;                          // optimizer steps done
  Matrix crossed;                        // 1 × 2: elements that came from the host, norms that went there
};

// Random numbers for the matrices of lesson 09, at an eighth of their size unless asked otherwise; one bucket.
std::unique_ptr<Training> data;  // made before the ranks are started
Layout layout_of(const RankInfo& rank) { return plan_layout(data->parameters(), rank.grid); }
MuonSettings settings_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }

// ## The reference
//
// That of lesson 09: one process, whole matrices, plain loops, on the host. A GPU has to come to the same bits. So
// Newton–Schulz multiplies with the *chain*, on both: of each element it says in which order its products are added.
// Eigen has an order of its own, and cuBLAS one per kind of GPU.
std::unique_ptr<ReferenceRun> reference;  // in the parent

// What a rank holds lies with its processor. To be compared it comes to the host, which waits for it.
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  Buckets buckets(1);
  buckets[0].push_back(local.processor->on_host(local.weights));
  return unpack_buckets(local.layout, buckets, rank.place.tp);
}

// ## The steps
//
// Lay out the parameters, and bring my weights to where I compute. Momentum starts at zero there, and the host never
// sees it. Look at the ends of the lines: with a GPU, CUDA's driver was asked in whose memory the address lies.
void show(Rank& rank, const Local& local, const std::string& name, const Array& array) {
  const Buffer& buffer = local.layout.buffers[0];
  const Range all{0, buffer.size}, own = local.layout.dp_slice(0, 0, rank.place.dp);
  Shown& shown = rank.show(name, array.size()).note(local.processor->memory_of(array.data()));
  shown.spans(array.size() == all.size() ? all : own, buffer);
}
void start(Rank& rank, Local& local) {
  local.processor = processor_of(rank.gpu());  // a GPU with --transport nccl, else the host
  local.layout = layout_of(rank);
  local.weights = local.processor->from_host(first_buckets(local.layout, *data, rank.place.tp)[0][0]);
  local.momentum = local.processor->array(local.layout.shard_elements(rank.place.dp));
  local.processor->set_to_zero(local.momentum);  // queued, like all work
  show(rank, local, "weights", local.weights);
}

// Names what a rank does next, for timings and traces, and notes what is queued meanwhile, on whichever queue.
void during(Rank& rank, Local& local, Phase phase, const std::function<void()>& work) {
  rank.phase(std::string(phase));
  local.processor->watch(std::string(phase), work);
}

// My own gradients. The host makes them here, of random numbers, so they have to cross. A model makes them on the GPU,
// in its backward pass. The copy is queued like all else, and until it is done the host must leave alone what is copied
// from; `from_host` waits for that. The planted bug `early_reuse` does not: the host has written the next step's
// gradients over them before the GPU came to read.
void bring_gradients(Rank& rank, Local& local) {
  const int step = rank.bug("early_reuse") ? local.step + 1 : local.step;
  const auto slices = data->own_gradients(step, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  const Buckets made = pack_slices(local.layout, slices);
  during(rank, local, "gradients", [&] { local.gradients = local.processor->from_host(made[0][0]); });
  if (local.step > 0) show(rank, local, "my gradients", local.gradients);  // for the player; the first screen is full
}

// ### The same call
//
// Sum up the gradients of all DP ranks, for my DP shard. The call is that of lesson 09; only the addresses are others.
// They are a GPU's, so NCCL moves the pieces from GPU to GPU. NCCL can add them as well (`ncclReduceScatter`), but in
// an order of its own. Between two ranks there is one order alone, a + b, so there it does. Among more of them a kernel
// of Muonwalk's does it, as a tree over ranks. New is the line before: NCCL's queue knows nothing of the rank's. What
// the rank has queued must be done before NCCL may read it, so the host waits.
//
// Then momentum, element by element: a kernel, queued and not waited for. The planted bug `early_gather` is the classic
// one. What comes next does not wait for this kernel, and finds what lay there before: on a GPU now and then, here
// always. In the first step that is worth one last bit, as Newton–Schulz cares for no factor. Later it is worth more.
void sum_gradients(Rank& rank, Local& local) {
  bring_gradients(rank, local);
  rank.memory().restart_peak();             // what is counted from here on is the step itself
  const Index own = local.momentum.size();  // elements of my DP shard
  during(rank, local, phases::reduce_gradients, [&] {
    local.update = local.processor->array(own);
    local.processor->wait();  // the line that is new
    rank.dp().reduce_scatter_v(local.gradients.data(), local.layout.dp_counts(0, 0), local.update.data());
  });
  const Array late = local.processor->array(rank.bug("early_gather") ? own : 0);
  float* const result = late.size() > 0 ? late.data() : local.update.data();
  during(rank, local, phases::momentum, [&] {
    local.processor->momentum(local.update.data(), local.momentum.data(), own, settings_of(rank), result);
  });
}

// ### The gathers
//
// The shards of all ranks of a group, in rank order. In bf16 a kernel rounds what travels, elements of two bytes
// travel, and another kernel widens what has come. Before a call, the rank waits for what it has queued.
Array gather(Communicator& group, Processor& processor, const Array& shard, const std::vector<Index>& counts,
             Precision precision) {
  Array all = processor.array(std::accumulate(counts.begin(), counts.end(), Index{0}));
  if (precision == Precision::fp32) {
    processor.wait();
    group.all_gather_v(static_cast<const float*>(shard.data()), counts, all.data());
    return all;
  }
  const ArrayOf<bfloat16> travelling = processor.array_of_bf16(all.size());
  bfloat16* const own = travelling.data() + std::accumulate(counts.begin(), counts.begin() + group.rank(), Index{0});
  processor.to_bf16(shard.data(), shard.size(), own);
  processor.wait();
  group.all_gather_v(static_cast<const bfloat16*>(own), counts, travelling.data());
  processor.from_bf16(travelling.data(), all.size(), all.data());
  return all;
}

// DP gather (lesson 04): from my DP shard of the update to the whole bucket.
void gather_bucket(Rank& rank, Local& local) {
  during(rank, local, phases::dp_gather, [&, counts = local.layout.dp_counts(0, 0)] {
    local.update = gather(rank.dp(), *local.processor, local.update, counts, rank.precision);
  });
  show(rank, local, "bucket", local.update);
}

// Mine are the matrices of which I own an element, in the one bucket that there is.
std::vector<DistMeta> owned_matrices(const Layout& layout, int dp_rank) {
  std::vector<DistMeta> owned;
  for (const DistMeta& meta : layout.buffers.at(0).parameters)
    if (!layout.owned_range(meta, dp_rank).empty()) owned.push_back(meta);
  return owned;
}

// TP gather (lesson 05): my slice out of the bucket, and those of the others, as the whole matrix. Slices of rows
// already lie as they should. Slices of columns have to be laid side by side, and on a GPU no kernel does that: its
// engines for copies can move what doesn't lie together, row by row with a stride.
Array tp_gather(Communicator& tp, Processor& processor, const Array& bucket, const DistMeta& meta,
                Precision precision) {
  const Array slice = processor.array(meta.shape.size());
  processor.copy(slice.data(), bucket.data() + meta.global_range.begin, slice.size());
  if (meta.tp_split_dim == SplitDim::none || tp.size() == 1) {
    Array matrix = processor.array(slice.size());
    processor.copy(matrix.data(), slice.data(), slice.size());
    return matrix;
  }
  const auto ranks = static_cast<std::size_t>(tp.size());
  Array slices = gather(tp, processor, slice, std::vector<Index>(ranks, slice.size()), precision);
  if (meta.tp_split_dim == SplitDim::rows) return slices;
  Array matrix = processor.array(slices.size());
  const Index rows = meta.shape.rows, cols = meta.shape.cols;
  for (Index r = 0; r < tp.size(); ++r)
    processor.copy_rows(matrix.data() + r * cols, tp.size() * cols, slices.data() + r * slice.size(), cols, rows, cols);
  return matrix;
}

// In the first step all my matrices go through a stage before the next one begins, so that we can look at them.
void gather_matrices(Rank& rank, Local& local) {
  if (local.step == 0) local.now = owned_matrices(local.layout, rank.place.dp);
  for (const DistMeta& meta : local.now) {
    during(rank, local, phases::tp_gather, [&] {
      local.matrices.push_back(tp_gather(rank.tp(), *local.processor, local.update, meta, rank.precision));
    });
    rank.show(meta.name, meta.full_shape).note(local.processor->memory_of(local.matrices.back().data()));
  }
}

// Newton–Schulz (lesson 06), where the matrix lies: its norm, and five times three products, all of them kernels. The
// host asks for the norm alone, and refuses what is not finite.
void orthogonalize_mine(Rank& rank, Local& local) {
  for (std::size_t i = 0; i < local.now.size(); ++i)
    during(rank, local, phases::orthogonalize, [&, &meta = local.now[i]] {
      local.processor->orthogonalize(local.matrices[i].data(), meta.full_shape, settings_of(rank), meta.name);
    });
  rank.say(fmt::format("{} orthogonal, by {}", local.now.size() == 1 ? local.now[0].name + " is" : "all are",
                       local.processor->name()));
}

// ### Nothing travels
//
// TP shard (lesson 07): my slice of a matrix. A row of the matrix begins `stride` elements after the one before.
Array tp_shard(Processor& processor, const Array& matrix, Index stride, const DistMeta& meta, int tp_rank) {
  const Index rows = meta.shape.rows, cols = meta.shape.cols;
  Index begin = 0;
  if (meta.tp_split_dim == SplitDim::rows) begin = tp_rank * rows * cols;
  if (meta.tp_split_dim == SplitDim::columns) begin = tp_rank * cols;
  Array slice = processor.array(rows * cols);
  processor.copy_rows(slice.data(), cols, matrix.data() + begin, stride, rows, cols);
  return slice;
}

// DP shard (lesson 08): what I own of that slice.
Array dp_shard(Processor& processor, const Array& slice, const Layout& layout, const DistMeta& meta, int dp_rank) {
  const Range owned = layout.owned_range(meta, dp_rank);
  Array shard = processor.array(owned.size());
  processor.copy(shard.data(), slice.data() + (owned.begin - meta.global_range.begin), owned.size());
  return shard;
}

// And with it my weights change. Nothing travels, and nobody waits: three orders in a queue. The planted bug
// `slice_pitch` steps from row to row by the width of the slice and not of the matrix, as when the two strides of a
// copy are mixed up.
void update_weights(Rank& rank, Local& local) {
  const int dp = rank.place.dp;
  for (std::size_t i = 0; i < local.now.size(); ++i)
    during(rank, local, phases::apply, [&, &meta = local.now[i], &processor = *local.processor] {
      const Index stride = rank.bug("slice_pitch") ? meta.shape.cols : meta.full_shape.cols;
      const Array slice = tp_shard(processor, local.matrices[i], stride, meta, rank.place.tp);
      local.matrices[i] = Array();  // still in use; its memory goes when the queue is done with it
      const Array orthogonal = dp_shard(processor, slice, local.layout, meta, dp);
      processor.apply(local.weights.data() + local.layout.owned_range(meta, dp).begin, orthogonal.data(),
                      orthogonal.size(), meta.full_shape, settings_of(rank));
    });
  local.matrices.clear();  // for the next ones
}

// All-gather of weights: from my own place in the bucket into all of it.
void gather_weights(Rank& rank, Local& local) {
  const Index own = local.layout.dp_slice(0, 0, rank.place.dp).begin;
  during(rank, local, phases::gather_weights, [&] {
    local.processor->wait();  // for the kernels that have changed the weights
    rank.dp().all_gather_v(local.weights.data() + own, local.layout.dp_counts(0, 0), local.weights.data());
  });
  local.update = Array();  // the step needs no more of it
  if (++local.step == kSteps) local.crossed = elements_of(crossed_in(local.processor->noted()));
  show(rank, local, "new weights", local.weights);
}

// ### Who waited for whom
//
// What was seen of rank 0 where orders are handed to CUDA's driver. "mine" is the rank's own queue; NCCL has one per
// group. Count the waits: the host waits before each call of NCCL's, in it, and for norms; for no kernel by itself.
void say_what_was_queued(Rank& rank, Local& local) {
  if (rank.rank() == 0)
    for (const std::string& line : work_lines(local.processor->noted())) rank.say(line);
}

// ## The main job
//
// The journey was the first step. The next ones are the same functions in the order of lesson 09: one matrix at a time
// goes through the stages, and is gone before the next one comes. The first check is about the journey.
void optimizer_step(Rank& rank, Local& local) {
  sum_gradients(rank, local);
  gather_bucket(rank, local);
  for (const DistMeta& meta : owned_matrices(local.layout, rank.place.dp)) {
    local.now = {meta};  // one at a time
    gather_matrices(rank, local);
    orthogonalize_mine(rank, local);
    update_weights(rank, local);
  }
  gather_weights(rank, local);
}
void take_steps(Lesson<Local>& lesson) {
  for (int step = 1; step <= kSteps; ++step) {
    if (step > 1) lesson.quiet_step(fmt::format("optimizer step {}", step), optimizer_step);  // 1: the journey
    lesson.quiet_check(fmt::format("weights after step {}", step), held_slices,
                       [step](const RankInfo& rank) { return reference->slices_after(step, rank.grid, rank.place); });
  }
  lesson.sum_up_checks(fmt::format("weights after steps 1–{}", kSteps));
}

// ## The cost
//
// The plan of lesson 09 ([muon_plan]) knows nothing of GPUs: what is sent and held is the same, wherever it lies. What
// crosses between host and GPU is another sum over it. Either arrays lie on the host, as in all other lessons, also
// with `--transport nccl`, and each call takes what it needs to the GPU and back; or they lie on the GPU, as here.
Plan plan_of(const RankInfo& rank) { return muon_plan(layout_of(rank), rank.place, settings_of(rank)); }
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  prediction.ledger.add(ledger_of(plan_of(rank)), kSteps);
  prediction.peak_elements = peak_elements(plan_of(rank));
  return prediction;
}

// So for each phase: a call takes its elements to the GPU and its result back, and so does each product of
// Newton–Schulz with its matrix, where arrays lie on the host. Where they lie on the GPU, only the gradients come,
// which the host has made, and the norms go: a double for each matrix, and in bf16 another one for the rounded matrix.
std::vector<PhaseCrossing> crossing(const RankInfo& rank) {
  const Index norms = Index{sizeof(double)} * (rank.precision == Precision::bf16 ? 2 : 1);
  const Plan plan = plan_of(rank);
  std::vector<PhaseCrossing> phases = {{"gradients"}};
  for (const Operation& operation : plan.operations) {
    if (const Memory* memory = std::get_if<Memory>(&operation)) {
      if (memory->what == "gradients") phases[0].resident.to_device += memory->elements * Index{sizeof(float)};
    } else if (const Work* work = std::get_if<Work>(&operation)) {
      phases.push_back({work->phase});
      if (work->phase != phases::orthogonalize) continue;
      const Index matrix = work->shape.size() * Index{sizeof(float)};
      phases.back().staged = {matrix, matrix + norms};
      phases.back().resident = {0, norms};
    } else {
      const Call& call = std::get<Call>(operation);
      const Index size = element_size(call.type);
      phases.push_back({phases.back().phase});
      phases.back().staged = {call.elements_in * size, call.elements_out * size};
      phases.back().sent = ledger_of(Plan{plan.grid, plan.place, {operation}}).total().bytes_sent;
    }
  }
  return summed_by_phase(phases);
}

// What did cross in all steps is compared with the second column: the gradients came, the norms went, and nothing else.
Matrix should_cross(const RankInfo& rank) {
  return elements_of(on_gpus ? total(crossing(rank)).resident : Crossed(), kSteps);
}

// Before any rank is started: refuse what can't work, and make what all ranks share.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(
        fmt::format("--pp {} has no place in this lesson, where all ranks hold slices of all matrices; try lesson 09",
                    rank.grid.pp()));
  if (on_gpus && rank.products != Products::chain)
    throw UsageError(
        fmt::format("--products {} has bits that no GPU has; leave it out, and host and GPU multiply with the chain",
                    products_name(rank.products)));
  const std::vector<Parameter> matrices = real_sizes ? proof_of_concept_parameters() : small_parameters();
  data = std::make_unique<RandomTraining>(matrices, kSteps + 1, rank.seed);  // one step more, for `early_reuse`
  layout_of(rank);  // which refuses a size of TP that does not divide a matrix
  reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(settings_of(rank)));
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_22_nccl";
  info.title = "NCCL";
  info.question = "what changes when the arrays of a rank move to a GPU, and what stays as it was?";
  info.bugs = {{"early_reuse", "the host writes over gradients that the GPU has still to read"},
               {"early_gather", "the gather does not wait for the kernel that makes what it sends"},
               {"slice_pitch", "a copy of columns steps from row to row by the width of the slice"}};
  info.also_try = {"--transport nccl", "--real-sizes"};  // the first needs a GPU for each rank
  info.options = {{"--real-sizes", "the matrices of lesson 09 at their real sizes", &real_sizes}};
  info.products = Products::chain;  // the same bits on both
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  on_gpus = lesson.options().transport == TransportKind::nccl;  // else the host computes
  lesson.require(prepare);

  // The journey of all my matrices, a stage at a time; what rank 0 had queued for it; and then the main job.
  lesson.say(who_computes(on_gpus));
  lesson.step("lay out the parameters, and bring the weights to where I compute", start);  // whose memory?
  lesson.step("my gradients, reduce-scatter over dp, and momentum", sum_gradients);        // lessons 02 and 09
  lesson.step("DP gather: all_gather over dp", gather_bucket);                             // lesson 04
  lesson.step("TP gather: all_gather over tp", gather_matrices);                           // lesson 05
  lesson.step("Newton–Schulz", orthogonalize_mine);                                        // lesson 06
  lesson.step("TP shard, DP shard, apply: nothing travels", update_weights);               // lessons 07 and 08
  lesson.step("all-gather of weights over dp", gather_weights);                            // lesson 08
  lesson.step("what rank 0 had queued", say_what_was_queued);                              // on the host, nothing
  take_steps(lesson);                                                              // and what came of the journey
  lesson.check("elements and norms that crossed", &Local::crossed, should_cross);  // on the host, none
  lesson.cost(predict);                                                            // as without a GPU
  lesson.say("\n" + crossing_text(crossing(lesson.rank_info())));
  lesson.timings();  // on standard error

  // ## Exercises
  //
  // 1. Lesson 09 runs with `--transport nccl` too, and its arrays lie on the host. The table says what then crosses for
  //    one step. Which phase crosses most, though not a byte of it goes to another rank, and what happens to that with
  //    `--real-sizes`? Hint: what does Newton–Schulz need, and of how many matrices? Answer: Newton–Schulz. Each rank
  //    takes every whole matrix of which it owns an element to its GPU and back, as nearly every rank does with every
  //    matrix. With real sizes it stays the largest part: all phases cross in proportion to the matrices.
  // 2. Which of the waits in the table of `--transport nccl` could go? Hint: who needs to know that something is done,
  //    the host or a queue? Answer: Those around the calls of NCCL's. One queue can wait for another (CUDA's events do
  //    that), as PyTorch has it, so the host could hand in a whole step and wait once. Muonwalk's host waits so that
  //    ranks can tell each other before each call what they are about to call, and a mismatch is a sentence and not a
  //    hang. The wait for a norm could go if a kernel took the norm from the GPU's memory, and told later that it was
  //    not finite.
  // 3. What becomes of both columns with `--precision bf16`? Hint: which numbers are made in float32, whatever is
  //    rounded later? Answer: In the first, the gathers shrink, as elements of two bytes travel and are staged, and
  //    gradients and weights stay as they are. In the second nothing shrinks: gradients cross in float32, and of each
  //    matrix two norms go to the host, one before and one after it was rounded.
  return lesson.answer(
      "no bit changes, no byte of what ranks send, and no line of the journey. What changes is where arrays lie and "
      "who waits: of all that a step needs, only gradients that the host has made and a few norms cross between host "
      "and GPU; calls queue work and return before it is done; and where one queue needs what another has made, "
      "somebody has to wait.");
}
