// # Lesson 09 · The full step
//
// The main job: all of lessons 03 to 08, in the order in which an optimizer does it, with real sizes, many steps in a
// row. After each, every rank's weights are compared, byte for byte, with those of one process that knows no ranks.
//
// You need to know the steps of the journey, one per lesson: lesson 04, lesson 05, lesson 06, lesson 07 and lesson 08.

#include <fmt/format.h>

#include <map>

#include "lessons/lesson_09_full_step/full_step_request.hpp"
#include "lessons/lesson_09_full_step/plan_tables.hpp"
#include "lessons/lesson_09_full_step/training_files.hpp"
#include "sim/classroom/lesson.hpp"
#include "sim/classroom/shown_phases.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// One bucket at a time goes through nine phases. The columns are the ranks of one DP group:
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

// What you asked for: layout, settings, sizes, or your own weights (`--params`, `--grads`, `--out`). `--help` lists it.
FullStepRequest request;

// Weights and gradients: random numbers, or your files. Made before the ranks are forked, so that all of them see it.
std::unique_ptr<Training> data;

// What one rank holds.
struct Local {
  Layout layout;    // who owns what of the parameters of this rank's pipeline stage
  Layout hidden;    // the same of the hidden matrices alone, which Muon steps
  MuonState state;  // of the hidden matrices; weights: whole buckets; momentum: my DP shards
  std::map<int, std::unique_ptr<Optimizer>> others;  // by group: AdamW, with all that is not a hidden matrix
  int step = 0;                                      // optimizer steps done
};

// The blueprint of lesson 03. By default one bucket and no padding, as in the proof of concept's test. With pipeline
// parallelism each stage has parameters of its own; without it, everybody has all.
Layout layout_of(const RankInfo& rank) { return request.layout(data->parameters(), rank.grid, rank.place.pp); }

// ## The reference
//
// One process, full matrices, plain loops over them ([SerialMuon]), in the parent process. What it computes does not
// depend on the layout as long as the same gradients are added in the same tree, so one reference serves both layouts.
std::unique_ptr<ReferenceRun> reference;

// What a rank should hold after a step: its TP slices, cut out of the whole matrices of the reference.
std::vector<NamedMatrix> expected_slices(const RankInfo& rank, int step) {
  return reference->slices_after(step, rank.grid, rank.place);
}

// What the rank does hold: the same slices, taken out of its buckets.
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  BucketsView weights = local.state.weights;
  for (const auto& [group, optimizer] : local.others) weights.append(optimizer->weights());
  return unpack_buckets(local.layout, weights, rank.place.tp);
}

// With `--momentum-out`: what a rank keeps of the momentum, and what it should keep, cut out of the reference's.
std::vector<NamedMatrix> held_momentum(const RankInfo& rank, const Local& local) {
  return kept_parts(local.state, local.hidden, rank.place);
}
std::vector<NamedMatrix> expected_momentum(const RankInfo& rank) {
  const Layout hidden = layout_of(rank).of_group(kHiddenMatrices);
  MuonState state = {{}, zero_shards(hidden, rank.place.dp), zero_second_moments(hidden, rank.place, request.muon)};
  put_kept(reference->kept(), hidden, rank.place, state);
  return kept_parts(state, hidden, rank.place);
}

// ## The steps
//
// Plan the layout and pack my TP slices of the weights into buckets. The momentum starts at zero, for my DP shard only.
void start(Rank& rank, Local& local) {
  local.layout = layout_of(rank);
  local.hidden = local.layout.of_group(kHiddenMatrices);
  local.state = {first_buckets(local.hidden, *data, rank.place.tp), zero_shards(local.hidden, rank.place.dp),
                 zero_second_moments(local.hidden, rank.place, request.muon)};
  put_kept(kept_before(*data), local.hidden, rank.place, local.state);  // nothing, without --momentum-in
  for (const Buffer& buffer : local.layout.buffers) {
    if (buffer.group == kHiddenMatrices) continue;
    const Layout part = local.layout.of_group(buffer.group);
    local.others[buffer.group] = request.groups()[buffer.group].make();
    local.others[buffer.group]->start(part, rank.place, first_buckets(part, *data, rank.place.tp));
  }
  show_state(rank, local.hidden, local.state);
}

// The gradients that this rank computed itself: of its own data, and for its own TP slices alone. A real model would
// compute its forward and backward pass here, with the weights that the rank holds.
//
// The planted bug `dropped_gradient` loses what DP rank 1 has computed.
Buckets own_gradients(const Rank& rank, const Local& local) {
  std::vector<Matrix> slices = data->own_gradients(local.step, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  if (rank.bug("dropped_gradient") && rank.place.dp == 1)
    for (Matrix& slice : slices) slice = Matrix(slice.rows(), slice.cols());
  return pack_slices(local.layout, slices);
}

// ### The loop
//
// This is what the lessons were for. From a gradient of its own to new weights, a rank goes through nine phases: two
// for each bucket, five for each matrix in which it owns an element, and two for the bucket again. (Later lessons call
// the one in src/optim/full_step.cpp. It goes through the same phases, cut into functions, and can do more: gather a
// matrix that is cut by itself, and orthogonalize projections that share a matrix one by one.)
//
// Step 1 of rank 0 is printed as a table: what goes into each phase, what comes out, and what is sent. Look for the
// matrix w3: rank 0 owns a small part of it, and needs the whole of it to update that part.
//
// The planted bug `slice_shape` scales updates with the shape of the TP slice in place of that of the full matrix.
void full_step(Rank& rank, Local& local, const MuonSettings& settings, const Buckets& gradients) {
  const Layout& layout = local.hidden;
  ShownPhases begin(rank, layout, gradients, local.state);  // told of each phase and what it made: times and shards
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
      const Bucket& bucket = buffer.buckets[k];
      const std::vector<Index> counts = layout.dp_counts(int(b), int(k));  // what each DP rank owns of the bucket
      Range held = layout.dp_slice(int(b), int(k), rank.place.dp);         // my DP shard, counted in the buffer
      Flat& weights = local.state.weights[b][k];

      // Each DP rank saw other data. I get the sum of all their gradients, for my DP shard alone.
      begin(phases::reduce_gradients);
      Flat update = reduce_gradients(rank.dp(), gradients[b][k], counts);
      begin.made(update);

      // Elementwise, so a shard is enough.
      begin(phases::momentum);
      momentum(update.data(), local.state.momentum[b][k].data(), held.size(), settings, update.data());
      begin.made(update);

      // Newton–Schulz needs whole matrices. One message gathers all those of the bucket, unless ranks own whole ones.
      if (!layout.whole_matrices()) {
        begin(phases::dp_gather);
        update = dp_gather(rank.dp(), update, counts, settings.gathered());
        begin.made(update);
        held = bucket.range;
      }

      // The matrices in which I own an element, and no others. My TP group has the same layout, so all of its ranks
      // come to the same TP gathers in the same order.
      for (const int index : bucket.parameters) {
        const DistMeta& meta = buffer.parameters[index];
        const Range owned = layout.owned_range(meta, rank.place.dp);
        if (owned.empty()) continue;
        begin(phases::tp_gather, &meta);  // from my TP slice to the whole matrix
        Matrix matrix = view_parameter(update, held.begin, meta);
        matrix = tp_gather(rank.tp(), matrix, meta.tp_split_dim, settings.gathered());
        begin.made(matrix);
        begin(phases::orthogonalize, &meta);
        matrix = orthogonalize(matrix, settings, meta.name);
        if (settings.second_moment.used)  // NorMuon and nanochat divide by a running mean of squares
          divide_by_second_moment(matrix, local.state.second_moments[0][meta.parameter], settings.second_moment);
        begin.made(matrix);
        begin(phases::tp_shard, &meta);  // back to my TP slice, without a message
        matrix = tp_shard(matrix, meta.tp_split_dim, rank.tp().size(), rank.tp().rank());
        begin.made(matrix);
        begin(phases::dp_shard, &meta);  // what I own of it, without a message
        const Flat orthogonal = dp_shard(matrix, layout, meta, rank.place.dp);
        begin.made(orthogonal);
        begin(phases::apply, &meta);
        const Shape scaled_by = rank.bug("slice_shape") ? meta.shape : meta.full_shape;
        apply(weights.data() + (owned.begin - bucket.range.begin), orthogonal.data(), owned.size(), scaled_by,
              settings);
        begin.made(weights);
      }

      // Each rank has new weights for its own DP shard. The next forward pass needs all of them.
      begin(phases::gather_weights);
      all_gather_weights(rank.dp(), weights, counts);
      begin.made(weights);
    }
  }
}

// ### What is not a hidden matrix
//
// The random numbers of this lesson are for hidden matrices. A file of yours has embeddings and vectors as well, which
// AdamW steps in buckets of their own: elementwise, so a DP shard is enough (lesson 11).
void step_others(Rank& rank, Local& local, const Buckets& gradients) {
  std::size_t b = local.hidden.buffers.size();  // their buffers lie behind that of the hidden matrices
  for (const auto& [group, optimizer] : local.others) {
    const Layout part = local.layout.of_group(group);
    const StepObserver begin = [&](Phase phase, const DistMeta*) { rank.phase(std::string(phase)); };
    optimizer->step({part, rank.place, rank.dp(), rank.tp(), begin}, gradients[b++]);
  }
}

// One optimizer step: gradients, and the loop.
//
// The planted bug `forgotten_momentum` starts every step without a memory of the last one. The planted bug
// `stale_weights` lets DP rank 0 go on with the weights from before the step, as if the all-gather had missed it.
void optimizer_step(Rank& rank, Local& local) {
  if (request.own_files())
    rank.phase("gradients (your files)");
  else
    rank.phase("gradients (random numbers)");
  const Buckets gradients = own_gradients(rank, local);
  const Buckets before = rank.bug("stale_weights") && rank.place.dp == 0 ? local.state.weights : Buckets();
  if (rank.bug("forgotten_momentum")) local.state.momentum = zero_shards(local.hidden, rank.place.dp);

  rank.memory().restart_peak();  // what is counted from here on is the step itself
  MuonSettings settings = request.muon;
  settings.newton_schulz.threads = rank.threads;
  full_step(rank, local, settings, gradients);
  step_others(rank, local, gradients);
  if (!before.empty()) local.state.weights = before;
  ++local.step;
}

// ## The plan
//
// What a rank will do in a step is settled by the layout: the optimizer's plan lists it, call by call, with the memory
// that is taken and given back. `--plan` prints that list for one rank of each kind and starts none, so you can ask it
// about more ranks than this machine could bear: try `--plan --model llama-3-70b --dp 512 --tp 8`.
std::unique_ptr<GroupedOptimizer> optimizer;
Plan plan_of(const Layout& layout, const Place& place) { return optimizer->plan(layout, place); }
std::vector<Layout> layouts_of(const RankInfo& rank) { return request.layouts(data->parameters(), rank.grid); }

// ## The cost
//
// Bytes, messages and memory are sums over that list, as often as there are steps. The peak is reached while a rank
// orthogonalizes the largest matrix of which it owns an element.
Prediction predict(const RankInfo& rank) {
  const Plan plan = plan_of(layout_of(rank), rank.place);
  Prediction prediction;
  prediction.ledger.add(ledger_of(plan), data->steps());
  prediction.peak_elements = peak_elements(plan);
  return prediction;
}

// ## Redundant work
//
// Newton–Schulz needs the whole matrix, so *every* rank that owns an element of a matrix orthogonalizes all of it. In
// one bucket, a small matrix mostly lies in one DP shard, and the ranks of one TP group do it. With smaller buckets,
// each is dealt out to all DP ranks: nearly every matrix is cut, nearly every rank does nearly every matrix, and the
// work goes to its upper bound. The last table puts both side by side. With `--ownership matrices` each matrix has one
// owner in dp, and the factor is tp. Lesson 16 looks at layouts that divide the work further.
std::string redundant_work(const RankInfo& rank) {
  const Plan alone = plan_of(request.layout(data->parameters(), Grid(), 0), Place());
  std::vector<WorkOfLayout> layouts;
  for (const FullStepRequest& asked : {request, request.with_other_buckets()}) {
    const std::vector<Layout> stages = asked.layouts(data->parameters(), rank.grid);
    layouts.push_back({asked.buckets_text(), stages, plan_kinds(stages, plan_of)});
  }
  return work_table(alone, layouts);
}

// Before any rank is started: refuse what can't work, read the files, and see that every stage has a layout. `require`
// calls this once for each layout; both use the same data and the same reference.
void prepare(const RankInfo& rank) {
  request.settle(rank);
  if (data == nullptr) data = request.data(rank);
  optimizer = request.optimizer(data->parameters());
  layouts_of(rank);  // one that works for a stage may not work for another
  // One thread: this program forks again for its second layout, and a process that forks must not have started threads.
  if (reference == nullptr)
    reference = std::make_unique<ReferenceRun>(*data, request.optimizer(data->parameters()), kKeptReferenceElements,
                                               kept_before(*data));
}

// ## One layout, all steps
//
// Each optimizer step is followed by its check, which speaks only where it fails. The ranks do not wait for it: they go
// on while the parent process computes.
void take_steps(Lesson<Local>& lesson) {
  for (int step = 1; step <= data->steps(); ++step) {
    lesson.quiet_step(fmt::format("optimizer step {}", step), optimizer_step);
    lesson.quiet_check(fmt::format("weights after step {}", step), held_slices,
                       [step](const RankInfo& rank) { return expected_slices(rank, step); });
  }
  lesson.sum_up_checks(data->steps() == 1 ? "weights after step 1"
                                          : fmt::format("weights after steps 1–{}", data->steps()));
  if (!request.training.files.momentum_out.empty())
    lesson.check("momentum after the last step", held_momentum, expected_momentum);
}

// With `--out`, what the steps made of your own weights is put together again and written, where every check has held:
// in the type that each tensor had, and the file is there whole or not at all, also when Ctrl-C comes meanwhile.
void write_weights(Lesson<Local>& lesson, const FileTraining& files) {
  const auto held = lesson.collect(held_slices);
  lesson.in_parent([&] {
    if (!lesson.all_equal()) return;
    const std::vector<Matrix> whole = join_held_slices(files.parameters(), lesson.options().grid, held);
    write_or_fail([&] { files.write(whole); });
    lesson.say(fmt::format("wrote   {} to {}", count_text(std::int64_t(whole.size()), "new tensor"),
                           visible_name(request.training.files.out)));
    if (const std::string& momentum_out = request.training.files.momentum_out; !momentum_out.empty()) {
      write_or_fail([&] { files.write_kept(reference->kept()); });
      lesson.say(fmt::format("        and the momentum to {}", visible_name(momentum_out)));
    }
    if (!files.unchanged().empty())
      lesson.say(fmt::format("        not trained and written unchanged: {}", visible_names(files.unchanged())));
  });
}

// What it cost, of a second layout in one line each. The answer comes after the last layout.
int finish(Lesson<Local>& lesson, bool first_layout, bool last_layout) {
  lesson.cost(predict, !first_layout);
  if (first_layout)
    lesson.say(redundant_work(lesson.rank_info()));
  else
    lesson.detail(redundant_work(lesson.rank_info()));
  lesson.timings();
  const auto* files = dynamic_cast<const FileTraining*>(data.get());
  if (files != nullptr) write_weights(lesson, *files);
  if (!last_layout) return lesson.answer("");
  return lesson.answer(
      "they can: step after step, they leave the same bits as one process, because whatever rounds is done in an "
      "order that does not depend on the ranks: sums of gradients are trees, Newton–Schulz always sees the whole "
      "matrix, and all else is done element by element. The price is on the table: the bytes of three collectives per "
      "bucket and of one gather per matrix, and nearly every rank doing nearly all of Newton–Schulz, the "
      "more so the smaller the buckets are.");
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
                   "--pp 2 --dp 2 --tp 2", "--verbose 2"};
  info.options = request.options();          // on top of the options of every lesson
  info.plans_only = &request.training.plan;  // then there may be more ranks than can be started

  // The first layout: all steps, each with its check.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  lesson.plan(plan_text(plan_kinds(layouts_of(lesson.rank_info()), plan_of), layouts_of(lesson.rank_info())));
  const std::string layout = layout_of(lesson.rank_info()).text();
  request.own_files() ? lesson.say(layout) : lesson.detail(layout);
  if (!request.recipe.empty()) lesson.say(request.recipe_text());
  if (request.own_files()) lesson.say(request.groups_text(data->parameters()));
  lesson.say(step_table(plan_of(layout_of(lesson.rank_info()), lesson.rank_info().place), layout_of(lesson.rank_info()),
                        lesson.options().verbose > 1 ? 5 : 1) +
             "\n");
  lesson.quiet_step("lay out the parameters", start);
  take_steps(lesson);
  const bool one_layout = lesson.options().grid_given || request.own_files();
  int code = finish(lesson, true, one_layout);

  // The second one, unless you asked for a layout.
  if (!one_layout) {
    LessonInfo asked = info;  // a copy, for in a notebook the lesson may begin again
    asked.question.clear();
    Lesson<Local> other(asked, Grid().dp(2).tp(4), argc, argv);
    other.require(prepare);
    other.detail(layout_of(other.rank_info()).text());
    other.quiet_step("lay out the parameters", start);
    take_steps(other);
    code = std::max(code, finish(other, false, true));
  }

  // ## Exercises
  //
  // 1. `--dp 8 --tp 1`, `--dp 4 --tp 2` and `--dp 2 --tp 4` share eight ranks in three ways. Compare what rank 0 sends:
  //    which bytes shrink from one to the next, and which grow? Hint: how large is its bucket, and to how many ranks
  //    does it send a slice? Answer: What goes over dp shrinks, because the bucket holds TP slices: the more ranks cut
  //    a matrix, the smaller it is, and the fewer ranks share it. What goes over tp grows from nothing, because each
  //    rank sends its slice to tp − 1 others. On a cluster that is a good trade, as TP has the fast links.
  // 2. Which phase takes most of the time, and what would change in the table on standard error if only one rank did
  //    the Newton–Schulz of a matrix? Hint: one matrix is much larger than all others together. Answer: Newton–Schulz
  //    takes most of it. Its mean would fall to about an eighth. But the rank that does w3 would have as much to
  //    do as before, while the others wait, and it would have to send them the result. `--ownership matrices` shows
  //    such a step, with one TP group for each matrix: the mean falls far below the most.
  // 3. `--precision bf16` halves some of the bytes in the table of costs. Which, and why not all? Hint: what is rounded
  //    anyway? Answer: Those of the DP gather of updates and of the TP gathers, because Newton–Schulz begins by
  //    rounding its input to bf16, so nothing is lost. Gradients are summed, and weights are kept, in float32: there
  //    each step would lose something. (In fp32 the gathers of updates and of weights share a line.)
  return code;
}
