// # Lesson 14 · Memory
//
// "Muon needs half of AdamW's memory", people say, or "half of the optimizer's". What is halved is one line of a table
// that has five, and there is another one that grows: what a rank holds for a moment, while a bucket is gathered and a
// matrix is whole. This lesson fills that table with bytes, as the allocator counts them, under both optimizers, with
// nothing sharded and with ZeRO-1, and then plans it for models of real size.
//
// You need to know the phases of a step (lesson 09), and what a bucket and a DP shard are (lesson 04).

#include <fmt/format.h>

#include "lessons/lesson_14_memory/memory_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/steps.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Training in mixed precision keeps a parameter several times. The layers compute with *weights* in bfloat16. A step is
// too small to be seen in the 8 bits of precision that these have, so the optimizer changes *master weights*, the same
// numbers in float32, which are rounded after each step. The *optimizer state* comes on top: two moments for AdamW, one
// momentum for Muon. What a rank of a DP group of D keeps, in bytes per parameter:
//
//                  whole on every rank       sharded over D by ZeRO-1
//                  weights   gradients       masters  momentum  second moment
//     AdamW           2    +     4       + (    4    +    4    +     4        ) / D   =   6 + 12 / D
//     Muon            2    +     4       + (    4    +    4                   ) / D   =   6 +  8 / D
//
// With D = 1 that is 18 and 14. (Megatron-LM's `theoretical_memory_usage.py` computes with the first line, and has none
// for Muon.) *Transient buffers* are what a step takes and gives back: gathered buckets, whole matrices, and what
// Newton–Schulz multiplies in. AdamW works element by element and hardly needs any.

// A small model: an embedding, two layers, a gain. Hidden matrices go to Muon, the rest to AdamW, as people do it, and
// each of the groups has a buffer of its own.
std::vector<Parameter> small_model() {
  std::vector<Parameter> parameters = {{"embedding", {96, 16}, SplitDim::rows}};
  for (const std::string layer : {"layer0.", "layer1."}) {
    parameters.push_back({layer + "wqkv", {48, 16}, SplitDim::rows});
    parameters.push_back({layer + "wo", {16, 16}, SplitDim::columns});
    parameters.push_back({layer + "up", {64, 16}, SplitDim::rows});
    parameters.push_back({layer + "down", {16, 64}, SplitDim::columns});
  }
  parameters.push_back({"norm", {1, 16}, SplitDim::none, 0, 1});
  return route(std::move(parameters), usual_groups({}, {}));
}
const std::vector<Parameter> kParameters = small_model();
constexpr int kSteps = 2;  // so that the momentum is not zero

// It is trained in four ways: the hidden matrices are stepped by AdamW or by Muon, and every DP rank keeps all of the
// optimizer's state or, with ZeRO-1, what it owns.
struct Way {
  std::string name;
  bool muon = false;
  bool sharded = false;
};
const std::vector<Way> kWays = {
    {"AdamW", false, false}, {"Muon", true, false}, {"ZeRO-1 AdamW", false, true}, {"ZeRO-1 Muon", true, true}};

// What you asked for: the size of buckets, or a model that is planned and not run. A bucket per layer is the default.
int bucket_capacity = 1536;
std::string model, text_of_model;  // its name, and what is printed of it

MuonSettings muon(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }
AdamWSettings adamw_of_group(int group) {
  AdamWSettings settings;
  if (group == 2) settings.weight_decay = 0;  // gains
  return settings;
}
bool is_muons(const Way& way, const Buffer& buffer) { return way.muon && buffer.group == kHiddenMatrices; }

// The layout, without padding between parameters. Where nothing is sharded it is that of a grid without data
// parallelism, whose one DP rank owns whole matrices: then every rank is DP rank 0 of it.
Layout layout(const RankInfo& rank, const Way& way) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.bucket_capacity = bucket_capacity;
  if (way.sharded) return plan_layout(kParameters, rank.grid, options);
  options.ownership = Ownership::matrices;
  return plan_layout(kParameters, Grid().tp(rank.grid.tp()), options);
}
int dp_rank_of(const Way& way, const Place& place) { return way.sharded ? place.dp : 0; }

// What one rank holds.
struct Local {
  const Way* way = nullptr;                   // how it is being trained
  Layout layout;                              // who owns what
  RoundedBuckets weights;                     // whole buckets in bfloat16, the same on every DP rank
  Buckets gradients;                          // whole buckets, as the backward pass leaves them
  Buckets masters;                            // my DP shards
  Buckets first;                              // my DP shards of Muon's momentum, or of AdamW's first moments
  Buckets second;                             // my DP shards of AdamW's second moments
  int steps = 0;                              // that were taken
  PhaseMeter meter;                           // asks the allocator whenever a phase begins
  std::map<std::string, RankMemory> counted;  // what it has said, for each way
};

// ## The reference
//
// One process with whole matrices in float32 ([SerialMuon] and [SerialAdamW]), which knows nothing of shards. A rank's
// masters have to be its own shards of these, and its weights the same numbers rounded, in every bit.
std::unique_ptr<Training> data;               // random weights and gradients
std::unique_ptr<ReferenceRun> references[2];  // of AdamW, of Muon

// What is compared: masters bucket by bucket, as they lie there, and weights as matrices.
std::vector<NamedMatrix> masters_and_weights(const Buckets& masters, const std::vector<NamedMatrix>& weights) {
  std::vector<NamedMatrix> all;
  for (std::size_t b = 0; b < masters.size(); ++b)
    for (std::size_t k = 0; k < masters[b].size(); ++k) {
      const Flat& shard = masters[b][k];
      all.push_back({fmt::format("master weights of bucket {}.{}", b, k), Matrix(1, Index(shard.size()), shard), 0, 0});
    }
  all.insert(all.end(), weights.begin(), weights.end());
  return all;
}

// What a rank should hold after a step, and what it does hold.
std::vector<NamedMatrix> expected(const RankInfo& rank, const Way& way, int step) {
  const std::vector<NamedMatrix>& whole = references[way.muon]->after(step, rank.grid.dp());
  std::vector<Matrix> slices;  // in float32
  std::vector<NamedMatrix> weights;
  for (std::size_t p = 0; p < whole.size(); ++p) {
    weights.push_back(named_slice(kParameters[p], whole[p].matrix, rank.grid.tp(), rank.place.tp));
    slices.push_back(weights.back().matrix);
    round_to_bf16(weights.back().matrix.data(), weights.back().matrix.size());
  }
  const Layout owned = layout(rank, way);
  return masters_and_weights(shards_of(owned, pack_slices(owned, slices), dp_rank_of(way, rank.place)), weights);
}
std::vector<NamedMatrix> held_weights(const RankInfo& rank, const Local& local) {
  return masters_and_weights(local.masters, unpack_buckets(local.layout, widened(local.weights), rank.place.tp));
}

// ## The steps
//
// Take all that is kept from step to step, buffer by buffer. `keep` asks the allocator before and after each how many
// bytes are out: [MemoryMeter] counts those of a rank's matrices and flat buffers. Weights and gradients are whole,
// because the backward pass needs and makes all of them. Masters and state are what ZeRO-1 shards.
//
// Two planted bugs compute the right weights. `second_moment` keeps a second moment for Muon's matrices too, as an
// optimizer does that began its life as AdamW. `whole_state` keeps Muon's momentum for whole buckets.
void start(Rank& rank, Local& local) {
  const Way& way = local.way == nullptr ? kWays[0] : local.way[1];  // the next one
  auto counted = std::move(local.counted);
  local = Local();  // gives back what the last way has kept
  local.counted = std::move(counted);
  local.way = &way;
  local.layout = layout(rank, way);
  const int dp_rank = dp_rank_of(way, rank.place);                          // 0 where nothing is sharded
  const Buckets whole = first_buckets(local.layout, *data, rank.place.tp);  // in float32; not kept
  RankMemory& memory = local.counted[way.name];

  for (std::size_t b = 0; b < whole.size(); ++b) {
    const Buffer& buffer = local.layout.buffers[b];
    const Layout part = local.layout.of_group(buffer.group);
    const bool muons = is_muons(way, buffer);
    const Index before = memory.held();
    // What is whole, and my shard of the masters.
    keep(rank.memory(), memory, "weights", [&] { local.weights.push_back(rounded({whole[b]})[0]); });
    keep(rank.memory(), memory, "gradients", [&] { local.gradients.push_back(zero_buckets(part)[0]); });
    keep(rank.memory(), memory, "master weights",
         [&] { local.masters.push_back(shards_of(part, whole[b], dp_rank)[0]); });

    // My shard of the state, which begins with zeros. Muon's matrices have no second moments.
    const Buckets zeros = muons && rank.bug("whole_state") ? zero_buckets(part) : zero_shards(part, dp_rank);
    keep(rank.memory(), memory, muons ? "momentum" : "first moments", [&] { local.first.push_back(zeros[0]); });
    local.second.emplace_back();  // none
    if (!muons || rank.bug("second_moment"))
      keep(rank.memory(), memory, "second moments", [&] { local.second[b] = zero_shards(part, dp_rank)[0]; });
    if (buffer.group == 0) memory.kept_for_hidden = memory.held() - before;
  }
}

// ### A step
//
// The journey of one matrix is that of lesson 09. Behind each line stands what there is after it. As it puts what it
// makes in the place of what it was made from, that is given back.
void step_matrix(Rank& rank, Local& local, const DistMeta& meta, const Flat& update, Range held, Range own) {
  const MuonSettings settings = muon(rank);
  local.meter.begin(phases::tp_gather, &meta);
  Matrix matrix = view_parameter(update, held.begin, meta);                       // beside the bucket, my TP slice
  matrix = tp_gather(rank.tp(), matrix, meta.tp_split_dim, settings.gathered());  // the whole matrix
  local.meter.begin(phases::orthogonalize, &meta);
  matrix = orthogonalize(matrix, settings, meta.name);  // meanwhile the matrix three times, and two squares
  local.meter.begin(phases::tp_shard, &meta);
  matrix = tp_shard(matrix, meta.tp_split_dim, rank.tp().size(), rank.tp().rank());  // my slice again
  local.meter.begin(phases::dp_shard, &meta);
  const Flat orthogonal = dp_shard(matrix, local.layout, meta, dp_rank_of(*local.way, rank.place));  // and what I own

  // The masters of what I own of the matrix.
  local.meter.begin(phases::apply, &meta);
  const Range mine = intersection(meta.global_range, own);
  float* masters = local.masters[meta.buffer_idx][meta.bucket_idx].data() + (mine.begin - own.begin);
  apply(masters, orthogonal.data(), mine.size(), meta.full_shape, settings);
}

// The update of one bucket: from the gradients to new masters, which a rank has of its own shard alone. Where nothing
// is sharded, an all-reduce gives everybody the whole sum, and there is nothing to gather. AdamW needs its shard of the
// sum and nothing more. Muon gathers the bucket: for a while the rank holds whole what ZeRO-1 has sharded.
Flat step_bucket(Rank& rank, Local& local, const Buffer& buffer, int b, int k) {
  const Bucket& bucket = buffer.buckets[k];
  const std::vector<Index> counts = local.layout.dp_counts(b, k);                     // what each rank owns of it
  const Range own = local.layout.dp_slice(b, k, dp_rank_of(*local.way, rank.place));  // my shard
  float* first = local.first[b][k].data();                                            // momentum, or first moments
  if (rank.bug("whole_state")) first += is_muons(*local.way, buffer) ? own.begin - bucket.range.begin : 0;

  local.meter.begin(phases::reduce_gradients);
  Flat update = local.way->sharded ? reduce_gradients(rank.dp(), local.gradients[b][k], counts)  // my shard of the sum
                                   : rank.dp().all_reduce(local.gradients[b][k]);                // all of it
  if (!is_muons(*local.way, buffer)) {
    local.meter.begin(phases::adamw);
    adamw(local.masters[b][k].data(), update.data(), first, local.second[b][k].data(), own.size(), local.steps,
          adamw_of_group(buffer.group));
    return update;
  }
  // Element by element still, in the place of the sum.
  local.meter.begin(phases::momentum);
  momentum(update.data(), first, own.size(), muon(rank), update.data());
  Range held = own;  // of the bucket, in `update`
  if (local.way->sharded) {
    local.meter.begin(phases::dp_gather);
    update = dp_gather(rank.dp(), update, counts, muon(rank).gathered());  // the whole bucket, in place of my shard
    held = bucket.range;
  }
  // And each matrix of which I own an element.
  for (const int index : bucket.parameters) {
    const DistMeta& meta = buffer.parameters[index];
    if (!intersection(meta.global_range, own).empty()) step_matrix(rank, local, meta, update, held, own);
  }
  return update;  // given back after the weights are gathered
}

// The gradients that a rank computes itself, as the backward pass leaves them.
Buckets own_gradients(const Rank& rank, const Local& local) {
  const std::vector<NamedMatrix> weights = unpack_buckets(local.layout, widened(local.weights), rank.place.tp);
  return pack_slices(local.layout, data->own_gradients(local.steps, rank.grid.dp(), rank.place.dp, weights));
}

// A step: bucket by bucket, new masters, which are then rounded into their place among the weights; and the weights are
// gathered, 2 bytes each. What is counted is the memory from where the gradients are there.
//
// The planted bug `kept_bucket` does not give a gathered bucket back before the next one is gathered, as in code that
// gathers everything first and computes then.
void optimizer_step(Rank& rank, Local& local) {
  local.gradients = own_gradients(rank, local);
  rank.memory().restart_peak();
  local.meter = PhaseMeter(rank.memory());  // from here on, what the step itself takes
  ++local.steps;                            // AdamW counts from 1
  std::vector<Flat> forgotten;              // nothing, but for the bug
  for (int b = 0; b < int(local.layout.buffers.size()); ++b) {
    const Buffer& buffer = local.layout.buffers[b];
    for (int k = 0; k < int(buffer.buckets.size()); ++k) {
      Flat update = step_bucket(rank, local, buffer, b, k);  // masters are new
      const Range own = local.layout.dp_slice(b, k, dp_rank_of(*local.way, rank.place));

      local.meter.begin(phases::round_weights);
      bfloat16* weights = local.weights[b][k].data();                          // all of the bucket
      bfloat16* mine = weights + (own.begin - buffer.buckets[k].range.begin);  // my part of it
      to_bf16(local.masters[b][k].data(), own.size(), mine);
      if (local.way->sharded) {
        local.meter.begin(phases::gather_weights);
        rank.dp().all_gather_v(mine, local.layout.dp_counts(b, k), weights);  // no room but their own is needed
      }
      if (rank.bug("kept_bucket") && is_muons(*local.way, buffer)) forgotten.push_back(std::move(update));
    }
  }
  local.counted[local.way->name].phases = local.meter.finish();  // those of the last step stay
}

// All steps of one way, each compared with the reference.
void train(Lesson<Local>& lesson, const Way& way) {
  lesson.quiet_step(fmt::format("what is kept with {}", way.name), start);
  for (int step = 1; step <= kSteps; ++step) {
    lesson.quiet_step(fmt::format("step {} of {}", step, way.name), optimizer_step);
    lesson.quiet_check(fmt::format("masters and weights after step {} of {}", step, way.name), held_weights,
                       [&way, step](const RankInfo& rank) { return expected(rank, way, step); });
  }
}

// ## The cost
//
// The plan of a step says what is taken and given back, in order and in which type ([Plan]). Two sums over it are
// compared with what the ranks have counted, to the byte: what is kept, by kind; and in each phase what is held as it
// begins, and the most until it ends ([phase_memory]).
//
// You should see that a ratio depends on its line. The state is not quite halved, as the embedding still has two
// moments. Weights, gradients and masters don't know which optimizer there is. And what is held for a moment is many
// times AdamW's: the bars show a gathered bucket, and on it one whole matrix after the other.
GroupedOptimizer optimizer_of(const RankInfo& rank, const Way& way) {
  std::vector<ParameterGroup> groups = usual_groups(muon(rank), adamw_of_group(0));
  if (!way.muon) groups[kHiddenMatrices].make = groups[1].make;  // AdamW, like the outer layers
  return GroupedOptimizer(groups, kParameters);
}
Plan plan_of(const RankInfo& rank, const Way& way, const Layout& owned) {  // of all groups, or of one of them
  const GroupedOptimizer optimizer = optimizer_of(rank, way);
  if (way.sharded) return with_master_weights(optimizer.plan(owned, rank.place), owned);
  const Plan alone = optimizer.plan(owned, owned.grid.place(rank.place.tp));
  return replicated(with_master_weights(alone, owned), rank.grid, rank.place);
}
RankMemory planned(const RankInfo& rank, const Way& way) {
  const Layout all = layout(rank, way);
  return planned_memory(plan_of(rank, way, all), plan_of(rank, way, all.of_group(kHiddenMatrices)));
}

// The ledger is that of all ways, one after the other.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  for (const Way& way : kWays) {
    const Plan plan = plan_of(rank, way, layout(rank, way));
    prediction.ledger.add(ledger_of(plan), kSteps);  // what is sent in all steps
    prediction.peak_elements = peak_elements(plan);  // of the last way
  }
  return prediction;
}

// What is shown is one rank: the first of those that hold the most with ZeRO-1 and Muon, by the plan.
int shown_rank(const Options& options) {
  int shown = 0;
  Index most = -1;
  for (int rank = 0; rank < options.grid.size(); ++rank)
    if (const Index bytes = planned(options.rank_info(rank), kWays.back()).most(); bytes > most)
      most = bytes, shown = rank;
  return shown;
}

// What all ranks have counted against the plan, number by number; and of what that one rank has counted, the table of
// the four ways and the chart of a step in the last of them.
std::vector<NamedMatrix> counted_memory(const RankInfo&, const Local& local) { return as_matrices(local.counted); }
std::string of_rank(int rank, const std::string& what) { return fmt::format("rank {}, {}", rank, what); }

void report_memory(Lesson<Local>& lesson) {
  const auto collected = lesson.collect(counted_memory);  // by all ranks
  lesson.in_parent([&] {
    const Options& options = lesson.options();
    NamedNumbers counted, expected;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
      for (const NamedMatrix& number : collected.at(rank))
        counted[of_rank(rank, number.name)] = std::int64_t(number.matrix(0, 0));
      for (const Way& way : kWays)
        expected.merge(numbers_of(planned(options.rank_info(rank), way), of_rank(rank, way.name)));
    }
    lesson.check_numbers("bytes held, by kind and phase: counted as planned", counted, expected);

    const int rank = shown_rank(options);
    const RankInfo info = options.rank_info(rank);
    std::vector<RankMemory> ways;
    for (const Way& way : kWays) ways.push_back(with_numbers(planned(info, way), of_rank(rank, way.name), counted));
    const Layout owned = layout(info, kWays.back());
    lesson.say(memory_table(fmt::format("bytes that rank {} holds", rank),
                            {{"", ways[0], ways[1]}, {"ZeRO-1", ways[2], ways[3]}}, parameter_count(owned)));
    lesson.say(phase_chart(fmt::format("peaks of {}, ▒: for a moment", kWays.back().name), ways.back(), owned));
  });
}

// ## Models of real size
//
// They need no rank: a plan is made from shapes. `--model kimi-k2 --dp 64 --tp 8` prints the table of the rank that
// holds the most. How much of a model Muon steps was once counted by hand, for somebody who saw little use in it
// (Megatron-LM, pull request 1428): a mixture of experts 768 wide with a vocabulary of 163,840. The last table has it,
// too. All ranks are in one DP group there; expert parallelism and pipeline stages change D, and not the formulas.
void report_models(Lesson<Local>& lesson) {
  lesson.in_parent([&] { lesson.say(models_table(Grid().dp(64))); });
}

void prepare(const RankInfo& rank) {
  if (!model.empty()) text_of_model = model_text(model, rank.grid);  // no rank, so it may take a moment
  data = std::make_unique<RandomTraining>(kParameters, kSteps, rank.seed);
  for (const Way& way : kWays) {
    if (model.empty()) layout(rank, way);  // refuses what can't be laid out
    auto optimizer = std::make_unique<GroupedOptimizer>(optimizer_of(rank, way));
    references[way.muon] = std::make_unique<ReferenceRun>(*data, std::move(optimizer));
  }
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_14_memory";
  info.title = "Memory";
  info.question = "how much memory does Muon save, and when does it need more than AdamW?";
  info.bugs = {{"second_moment", "a rank keeps a second moment for Muon's matrices too"},
               {"whole_state", "Muon's momentum is kept for whole buckets, not for the rank's shards"},
               {"kept_bucket", "a gathered bucket is still held while the next one is gathered"}};
  info.also_try = {"--bucket-capacity 100000", "--precision bf16", "--model kimi-k2 --dp 64 --tp 8"};
  info.options = {{"--bucket-capacity", "elements at which a bucket is closed (default 1536)", &bucket_capacity},
                  {"--model", "plan a published model, for example llama-7b, and start no rank", &model}};
  info.plans_of = &model;  // then there may be more ranks than can be started

  // All of it is one run, unless only a model is asked for.
  Lesson<Local> lesson(info, Grid().dp(4).tp(2), argc, argv);
  lesson.require(prepare);
  if (!model.empty()) lesson.plan(text_of_model);  // and that is all
  lesson.say(layout(lesson.rank_info(), kWays.back()).text());
  for (const Way& way : kWays) train(lesson, way);
  lesson.sum_up_checks("weights of the four below");
  report_memory(lesson);
  lesson.cost(predict);
  report_models(lesson);

  // ## Exercises
  //
  // 1. What is held for a moment with `--bucket-capacity 1`, and with `--bucket-capacity 100000`? Which part of it
  //    can no size of buckets take away? Hint: compare the bars of the DP gathers with those of Newton–Schulz.
  //    Answer: With 1, every matrix is a bucket of its own, and little is gathered at a time; with 100000, both
  //    layers lie in one bucket. What stays is one matrix with the factors of Newton–Schulz. It is whole, so neither
  //    buckets nor dp nor tp make it smaller.
  // 2. Compare `--model llama-7b --tp 1 --dp 2` with the same for `--dp 64`. With which of them does a rank need less
  //    memory at most when Muon steps its matrices, and why? Hint: what is saved between two steps is divided by D,
  //    and what is gathered? Answer: With dp 2. There half a momentum less is kept than with AdamW; with dp 64 it is
  //    a 64th of one, but the bucket that is gathered is no smaller. It is even larger, because Megatron-LM makes
  //    larger buckets for more ranks.
  // 3. A reader of Kimi K2's report took 12 bytes per parameter, divided them by 1,024 DP ranks, and found the result
  //    too much (Moonlight, issue 41). Ask `--model kimi-k2 --dp 1024 --tp 1`: which lines come to 12 / D with AdamW
  //    and to 8 / D with Muon, and which ones should worry the reader more? Hint: D divides three of the lines.
  //    Answer: Masters, momentum and second moments, of which Muon keeps two. Weights and gradients are hundreds of
  //    times more, because no D divides them. Expert parallelism and pipeline stages do, and the rest with them.
  return lesson.answer(
      "half of what the optimizer keeps for a hidden matrix: 4 / dp of the 6 + 12 / dp bytes that AdamW needs for "
      "each of its parameters, and nothing of embeddings, which stay with AdamW. In the middle of a step it needs "
      "more, because it gathers what AdamW leaves sharded: a bucket, and one whole matrix with the factors of "
      "Newton–Schulz. For small models on many ranks that is more than what was saved.");
}
