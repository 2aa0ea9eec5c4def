// # Lesson 09 · The full step
//
// The main job: everything that lessons 03 to 08 did with toys, in the order in which an optimizer does it, on real
// sizes, ten steps in a row; and after every step each rank's weights are compared, byte for byte, with those of one
// process that knows nothing of ranks. First on dp 4 × tp 2, then on dp 2 × tp 4.
//
// You need to know the steps of the journey, one a lesson: \ref lesson_04_dp_gather, \ref lesson_05_tp_gather,
// \ref lesson_06_newton_schulz, \ref lesson_07_tp_shard and \ref lesson_08_dp_shard.

#include <fmt/format.h>

#include "sim/cluster/interrupt.hpp"
#include "sim/cluster/lesson.hpp"
#include "sim/cluster/shown_phases.hpp"
#include "src/errors.hpp"
#include "src/layout/ownership_table.hpp"
#include "src/text/names.hpp"
#include "src/train/models.hpp"
#include "src/train/reference_run.hpp"
#include "src/train/requested_training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// One bucket at a time goes through the nine phases of \ref full_step. Its columns are the ranks of one DP group:
//
//     my gradients       ▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒   everybody's own, whole bucket
//       │ reduce-scatter
//     my DP shard        ██······  ··██····   the sum of all gradients, then momentum, then the update
//       │ DP gather
//     the bucket         ████████  ████████
//       │ TP gather, Newton–Schulz, TP shard, for each matrix of which I own an element
//     my DP shard        ██······  ··██····   of the orthogonal update, applied to my DP shard of the weights
//       │ all-gather of weights
//     new weights        ████████  ████████

// What was asked for, beyond the options of every lesson. The defaults are those of the proof of concept's own test.
struct Request {
  MuonSettings muon;
  bool no_nesterov = false;
  int bucket_capacity = 0, alignment = 1;  // one bucket, no padding
  std::string ownership = "buckets";       // who owns what of a bucket
  TrainingRequest training;
};
Request request;

// Where weights and gradients come from: random numbers, or the reader's own files. Made before the ranks are forked,
// so that all of them see it.
std::unique_ptr<Training> data;

// What one rank holds.
struct Local {
  Layout layout;    // who owns what of the parameters of this rank's pipeline stage
  MuonState state;  // weights: whole buckets; momentum: my DP shards
  int step = 0;     // optimizer steps done
};

// With pipeline parallelism a stage has parameters of its own; without it, everybody has all.
Range parameters_of(const Seat& seat) {
  return stage_parameters(int(data->parameters().size()), seat.grid.pp(), seat.place.pp);
}

// The master plan of lesson 03. By default one bucket and no padding, as in the proof of concept's test. With
// `--ownership` it deals out the bucket in another way; a rank owns one run of it in any case.
Layout layout_of(const Seat& seat) {
  std::vector<Parameter> parameters;
  const Range mine = parameters_of(seat);
  for (Index p = mine.begin; p < mine.end; ++p) parameters.push_back(data->parameters()[p]);
  if (parameters.empty())
    throw UsageError(fmt::format("--pp {} asks for more stages than there are matrices; try --pp {}", seat.grid.pp(),
                                 data->parameters().size()));
  LayoutOptions options;
  options.bucket_capacity = request.bucket_capacity;
  options.parameter_alignment = request.alignment;
  options.ownership = parse_ownership(request.ownership);
  return plan_layout(parameters, seat.grid, options);
}

// ## The reference
//
// One process, full matrices, plain loops over them (\ref SerialMuon), run by the process that prints. What it computes
// does not depend on the layout as long as the same gradients are added in the same tree, so one run of it serves both
// layouts.
std::unique_ptr<ReferenceRun> reference;

// What a rank should hold after a step: its TP slices, cut out of the whole matrices of the reference.
std::vector<NamedMatrix> expected_slices(const Seat& seat, int step) {
  return reference->slices_after(step, seat.grid, seat.place);
}

// What the rank does hold: the same slices, taken out of its buckets.
std::vector<NamedMatrix> held_slices(const Seat& seat, const Local& local) {
  return unpack_buckets(local.layout, local.state.weights, seat.place.tp);
}

// ## The steps
//
// Plan the layout and pack my TP slices of the weights into buckets. The momentum starts at zero, for my DP shard only.
//
// The planted bug `slice_shape` will scale updates with the shape of the TP slice in place of that of the full matrix.
void start(Rank& rank, Local& local) {
  local.layout = layout_of(rank);
  local.state = {first_buckets(local.layout, *data, rank.place.tp), zero_shards(local.layout, rank.place.dp)};
  if (rank.bug("slice_shape"))
    for (DistMeta& meta : local.layout.buffers[0].parameters) meta.full_shape = meta.shape;
  show_state(rank, local.layout, local.state);
}

// The gradients that this rank computed itself: of its own data, and for its own TP slices alone. A real model would
// run its forward and backward pass here, with the weights that the rank holds.
//
// The planted bug `dropped_gradient` loses what DP rank 1 has computed.
Buckets own_gradients(const Rank& rank, const Local& local) {
  std::vector<Matrix> slices = data->own_gradients(local.step, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  if (rank.bug("dropped_gradient") && rank.place.dp == 1)
    for (Matrix& slice : slices) slice = Matrix(slice.rows(), slice.cols());
  return pack_slices(local.layout, slices);
}

// One optimizer step: the nine phases of \ref full_step, which is the next thing to read. The observer takes their
// times and, with `--record` or `--svg`, shows what the rank holds after each.
//
// The planted bug `forgotten_momentum` starts every step without a memory of the last one. The planted bug
// `stale_weights` lets DP rank 0 go on with the weights from before the step, as if the all-gather had missed it.
void optimizer_step(Rank& rank, Local& local) {
  rank.phase("gradients (random numbers)");
  const Buckets gradients = own_gradients(rank, local);
  const Buckets before = rank.bug("stale_weights") && rank.place.dp == 0 ? local.state.weights : Buckets();
  if (rank.bug("forgotten_momentum"))
    for (auto& buffer : local.state.momentum)
      for (Flat& shard : buffer) std::fill(shard.begin(), shard.end(), 0.0f);

  MuonSettings settings = request.muon;
  settings.threads = rank.threads;
  rank.memory().restart_peak();  // what is counted from here on is the step itself
  full_step({local.layout, rank.place, rank.dp(), rank.tp(), ShownPhases(rank, local.layout)}, settings, gradients,
            local.state);

  if (!before.empty()) local.state.weights = before;
  ++local.step;
}

// ## The plan
//
// What a rank will do in a step is settled by the layout: \ref muon_plan lists it, call by call, with the memory that
// is taken and given back. `--plan` prints that list for one rank of each kind and starts none, so it can be asked
// about more ranks than this machine could bear: try `--plan --model llama-3-70b --dp 512 --tp 8`.
std::vector<Layout> layouts_of(Seat seat) {
  std::vector<Layout> stages;
  for (int stage = 0; stage < seat.grid.pp(); ++stage) {
    seat.place = seat.grid.place(seat.grid.rank(0, 0, stage));
    stages.push_back(layout_of(seat));
  }
  return stages;
}
Plan plan_of(const Layout& layout, const Place& place) { return muon_plan(layout, place, request.muon); }

// ## The cost
//
// Bytes, messages and memory are sums over that list, as often as there are steps. The peak is reached while a rank
// orthogonalizes the largest matrix of which it owns an element.
Prediction predict(const Seat& seat) {
  const Plan plan = plan_of(layout_of(seat), seat.place);
  Prediction prediction;
  prediction.ledger.add(ledger_of(plan), data->steps());
  prediction.peak_elements = peak_elements(plan);
  return prediction;
}

// ## Redundant work
//
// Newton–Schulz needs the whole matrix, so *every* rank that owns an element of a matrix orthogonalizes all of it: the
// big matrix spans all DP ranks, and all its TP ranks repeat the work as well. A matrix that fits into one DP shard is
// done by the ranks of one TP group alone. That is why the factor is a little below the number of ranks. With
// `--ownership matrices` each has one owner in dp, and the factor is tp. Lesson 16 looks at layouts that divide the
// work further.
//
// Both sums: what one process does in a step, and what all ranks do.
std::string redundant_work(const Seat& seat) {
  const double serial =
      flops(muon_plan(plan_layout(data->parameters(), Grid()), Place(), request.muon), phases::orthogonalize);
  const double all = flops(plan_kinds(layouts_of(seat), plan_of), phases::orthogonalize);
  if (serial == 0) return "work    no Newton–Schulz step was asked for";
  return fmt::format(
      "work    Newton–Schulz a step: {:.2f} GFLOP in one process, {:.2f} GFLOP in all ranks: {:.2f} × the work\n"
      "        each matrix is done by every rank that owns an element: {}",
      serial / 1e9, all / 1e9, all / serial, holders_text(layout_of(seat), 45));
}

// ## Your own weights
//
// With `--params`, `--grads` and `--out` the same steps run on your files. At the end the whole matrices are put
// together from the slices of DP rank 0, which have just been compared with the reference, and written in their type.
void write_result(Lesson<Local>& lesson, const FileTraining& files) {
  const auto held = lesson.collect(held_slices);  // [rank][parameter of its stage]; no rank knows how its check went
  lesson.in_parent([&] {
    if (!lesson.all_equal()) return;
    const std::vector<Matrix> whole = join_held_slices(files.parameters(), lesson.options().grid, held);
    {
      const InterruptHold hold;  // Ctrl-C waits until the file is whole
      files.write(whole);
    }
    lesson.say(fmt::format("wrote   {} new matrices to {}", files.parameters().size(),
                           visible_name(request.training.files.out)));
    if (!files.left_to_adamw().empty())
      lesson.say(fmt::format("        left to AdamW and written unchanged: {}", visible_names(files.left_to_adamw())));
  });
}

// Before any rank is started: refuse what can't work, read the files, and see that every stage has a layout. `require`
// calls this once for each layout; both use the same data and the same reference.
void prepare(const Seat& seat) {
  MuonSettings& muon = request.muon;
  require_sensible(muon);
  muon.nesterov = !request.no_nesterov;
  muon.precision = seat.precision;
  muon.products = seat.products;
  if (data == nullptr) data = requested_training(request.training, seat.grid.tp(), seat.seed);
  layouts_of(seat);  // one that works for a stage may not work for another
  // One thread: this program forks again for its second layout, and a process that forks must not have started threads.
  if (reference == nullptr) reference = std::make_unique<ReferenceRun>(*data, std::make_unique<Muon>(muon));
}

// ## One layout, all steps
//
// Each optimizer step is followed by its check. The ranks do not wait for it: they go on while the parent computes.
void check_step(Lesson<Local>& lesson, int step) {
  lesson.check(fmt::format("weights after step {}", step), held_slices,
               [step](const Seat& seat) { return expected_slices(seat, step); });
}

// The steps from number `first` on.
void take_steps(Lesson<Local>& lesson, int first) {
  for (int step = first; step <= data->steps(); ++step) {
    lesson.quiet_step(fmt::format("optimizer step {}", step), optimizer_step);
    check_step(lesson, step);
  }
}

// What it cost, and what to do with the result. The answer comes after the last layout.
int finish(Lesson<Local>& lesson, bool last_layout) {
  lesson.cost(predict);
  lesson.say(redundant_work(lesson.seat()));
  lesson.timings();
  const auto* files = dynamic_cast<const FileTraining*>(data.get());
  if (files != nullptr) write_result(lesson, *files);
  if (!last_layout) return lesson.answer("");
  return lesson.answer(
      "ten steps on eight ranks leave the same bits as ten steps in one process, because whatever rounds is done in an "
      "order that does not depend on the ranks: sums of gradients are trees, Newton–Schulz always sees the whole "
      "matrix, and all else is done element by element. The price is on the table: the bytes of three collectives a "
      "bucket and of one gather a matrix, and nearly every rank doing nearly all of Newton–Schulz.");
}

// Both layouts, or the one that was asked for.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_09_full_step";
  info.title = "The full step";
  info.question =
      "can eight ranks, none of which holds the whole model, take the step that one process would take, bit for bit?";
  info.bugs = {{"dropped_gradient", "the gradient that DP rank 1 computed never arrives"},
               {"forgotten_momentum", "every step starts with zero momentum"},
               {"slice_shape", "the update is scaled with the shape of the TP slice, not of the full matrix"},
               {"stale_weights", "DP rank 0 goes on with the weights from before the step"}};
  info.also_try = {"--precision bf16", "--dp 3 --tp 1", "--bucket-capacity 50000 --alignment 64",
                   "--pp 2 --dp 2 --tp 2"};
  // What can be asked for on top of the options of every lesson. `--help` lists both.
  info.options = {
      {"--plan", "print what a rank of each kind does in a step, and start none", &request.training.plan},
      {"--model", "with --plan: the matrices of llama-3-70b", &request.training.model},
      {"--steps", "optimizer steps on random numbers (default 10)", &request.training.steps},
      {"--small", "matrices of an eighth of the size, for a quick look", &request.training.small},
      {"--lr", "learning rate (default 0.1)", &request.muon.lr},
      {"--momentum", "momentum (default 0.9)", &request.muon.momentum},
      {"--weight-decay", "decoupled weight decay (default 0.1)", &request.muon.weight_decay},
      {"--rms", "root mean square that updates are brought to (default 0.2)", &request.muon.rms},
      {"--ns-steps", "Newton–Schulz steps (default 5)", &request.muon.ns_steps},
      {"--no-nesterov", "plain momentum", &request.no_nesterov},
      {"--bucket-capacity", "elements at which a bucket is closed (default 0: one bucket)", &request.bucket_capacity},
      {"--alignment", "elements to whose multiples parameters are padded (default 1)", &request.alignment},
      {"--ownership", "buckets (default), buffer or matrices: of what each rank owns a run", &request.ownership},
      {"--params", "your weights, a safetensors file", &request.training.files.params, PathUse::reads},
      {"--grads", "your gradients, one safetensors file per step", &request.training.files.grads, PathUse::reads},
      {"--out", "the safetensors file that the new weights are written to", &request.training.files.out,
       PathUse::writes},
      {"--tp-dim", "NAME=rows, columns or none: how TP cuts a matrix of yours", &request.training.tp_dims}};
  info.plans_only = &request.training.plan;  // then more ranks than a run can have are no mistake

  // The first layout: ten steps, each with its check.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  lesson.plan(plan_text(plan_kinds(layouts_of(lesson.seat()), plan_of), layouts_of(lesson.seat())));
  lesson.trains(data->parameters());
  lesson.say(layout_of(lesson.seat()).text());
  lesson.quiet_step("lay out the parameters", start);
  lesson.quiet_step("optimizer step 1", optimizer_step);
  check_step(lesson, 1);
  take_steps(lesson, 2);
  bool one_layout = lesson.options().grid_given || !request.training.files.params.empty();
  int code = finish(lesson, one_layout);

  // The second one, unless the reader asked for a layout.
  if (!one_layout) {
    info.question.clear();  // it was asked
    Lesson<Local> other(info, Grid().dp(2).tp(4), argc, argv);
    other.require(prepare);
    other.say(layout_of(other.seat()).text());
    other.quiet_step("lay out the parameters", start);
    take_steps(other, 1);
    code = std::max(code, finish(other, true));
  }

  // ## Exercises
  //
  // 1. Run with `--dp 8 --tp 1` and then with `--dp 1 --tp 8` and compare the bytes. Which matrices make the second
  //    refuse to start? Hint: TP cuts w0 by rows, and w1 and w3 by columns.
  // 2. Which phase takes most of the time, and how would the table on standard error change if only one rank of every
  //    group did the Newton–Schulz of a matrix? Hint: somebody would have to send the result.
  // 3. `--precision bf16` halves the bytes of two rows of the table. Why not of all? Hint: what must not be rounded?
  return code;
}
