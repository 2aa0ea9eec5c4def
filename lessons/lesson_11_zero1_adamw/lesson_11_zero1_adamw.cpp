// # Lesson 11 · ZeRO-1 AdamW
//
// Muon is made for the matrices inside of a model. Whoever uses it also runs AdamW: for the embedding, for the output
// layer, and for all that is not a matrix. So there are two optimizers, and somebody decides which of them steps what.
// This lesson distributes AdamW, bit for bit, and then looks at that decision, which can go wrong in silence.
//
// You need to know how a rank gets the sum of its own piece (lesson 02), that it owns a range of each bucket
// (lesson 08), and the whole step of Muon (lesson 09).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/steps.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Every line of AdamW is elementwise: what becomes of a weight depends on its own gradient and its own two moments, and
// on no other element. Muon has to bring a whole matrix together; AdamW is content with any range of elements. So each
// rank of a DP group updates the range that it owns, and keeps the moments of that range alone. That is *ZeRO-1*: the
// moments are most of what an optimizer keeps, and dp ranks share them out.
//
//     my gradients     ▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒   everybody's own, the whole bucket
//       │ reduce-scatter
//     my DP shard      ████····  ····████   the sum of all gradients
//       │ AdamW                             with the moments m and v of this shard, which no other rank has
//     my DP shard      ████····  ····████   new weights
//       │ all-gather of weights
//     new weights      ████████  ████████

// ## Groups
//
// A model with one layer. `embed` and `lm_head` are matrices by their shape, but what they hold are rows, one per
// token, so people leave such tables to AdamW. `norm` is a vector of gains, which do not decay: decay pulls towards 0,
// and a gain of 0 would shut its channel off. Each group has settings of its own, like the `param_groups` of PyTorch.
const std::vector<Parameter> kParameters = tiny_gpt_parameters();
constexpr int kHidden = 0, kTables = 1, kGains = 2;
MuonSettings muon_of(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }
const AdamWSettings kAdamW[] = {{},                                 // by group; the first one is Muon's
                                {0.02f, 0.9f, 0.95f, 1e-8f, 0.1f},  // lr, β₁, β₂, ε, decay
                                {0.01f, 0.9f, 0.999f, 1e-8f, 0.0f}};

// A group claims a parameter for two reasons: how many dimensions the *whole* tensor has, and what it is called.
std::vector<ParameterGroup> groups_of(const RankInfo& rank) {
  const std::vector<std::string> tables = {"*embed*", "lm_head"};
  const auto adamw = [](int group) { return [group] { return std::make_unique<Zero1AdamW>(kAdamW[group]); }; };
  // Its name; its claim: the dimensions, which names, and which names not; and what makes its optimizer.
  return {{"hidden matrices", {2, {}, tables}, [muon = muon_of(rank)] { return std::make_unique<Muon>(muon); }},
          {"tables", {2, tables, {}}, adamw(kTables)},
          {"gains", {1, {}, {}}, adamw(kGains)}};
}

// ### Who steps what
//
// `route` asks all groups about each parameter, and exactly one has to claim it. What it says where none does, or two,
// stands below the table of parameters.
std::string refusal(const std::string& what, const std::vector<ParameterGroup>& groups) {
  std::string sentence = "nothing is refused";
  try {
    route(kParameters, groups);
  } catch (const UsageError& error) {
    sentence = error.what();
  }
  std::string text;
  for (const std::string& line : paragraph(what + ": " + sentence, 0, 2)) text += line + "\n";
  return text;
}
std::string routing_table(const RankInfo& rank) {
  const std::vector<ParameterGroup> groups = groups_of(rank);
  const MuonSettings muon = muon_of(rank);
  Table table({{"parameter"}, {"shape"}, {"group"}, {"optimizer"}, {"lr, decay, momentum or betas"}});
  for (const Parameter& each : route(kParameters, groups)) {
    const AdamWSettings& adamw = kAdamW[each.group];
    const std::string knobs =
        each.group == kHidden
            ? fmt::format("{:g}, {:g}, {:g}", muon.lr, muon.weight_decay, muon.momentum)
            : fmt::format("{:g}, {:g}, {:g} and {:g}", adamw.lr, adamw.weight_decay, adamw.beta1, adamw.beta2);
    table.row({visible_name(each.name),
               each.dims == 1 ? number_text(each.shape.size()) : shape_text(each.shape.rows, each.shape.cols),
               groups[each.group].name, groups[each.group].make()->name(), knobs});
  }
  std::vector<ParameterGroup> fewer = groups, twice = groups;
  fewer.pop_back();
  twice.front().claim.except.clear();
  return table.text() + "\n" + refusal("refused, without the last group", fewer) +
         refusal("refused, without the exceptions of the first", twice);
}

// The layout has a buffer per group, of one bucket and without padding. TP cuts a table by its rows, so that each TP
// rank has the rows of some tokens; of the gains it has all.
Layout layout_of(const RankInfo& rank, const std::vector<Parameter>& parameters = kParameters) {
  return plan_layout(route(parameters, groups_of(rank)), rank.grid, {0, 1});  // one bucket, aligned to 1 element
}

// What one rank holds: first for a step of AdamW by hand, then for steps of the whole model.
struct Local {
  Layout layout;                        // who owns what; its buffers have the numbers of the groups
  Buckets weights, gradients;           // [b][0]: whole buckets of my TP slices; the gradients are of my own data
  Buckets sums;                         // [b][0]: the sum of all ranks' gradients, my DP shard
  Buckets first_moment, second_moment;  // [b][0]: m and v, my DP shard
  std::unique_ptr<GroupedOptimizer> optimizer;  // with all weights, moments and momentum
  int step = 0;                                 // optimizer steps done
  int newton_schulz = 0;                        // its calls, counted as they begin
};

// ## The reference
//
// AdamW in plain loops, on whole matrices: its first step, before which both moments are 0. Moments that begin at 0 are
// too small for a while, by the factors 1 − β₁ᵗ and 1 − β₂ᵗ in step t; the size of a step makes up for that (*bias
// correction*). What is Muon's stays as it is. Weights and gradients are random numbers.
constexpr int kSteps = 5;        // of the whole model
std::unique_ptr<Training> data;  // its weights and gradients
std::vector<NamedMatrix> after_one_step(const RankInfo& rank) {
  const auto leaves = data->all_leaves(0, rank.grid.dp(), data->first_weights());  // of the gradient of step 1
  std::vector<NamedMatrix> slices;                                                 // of this rank
  for (const Parameter& each : route(kParameters, groups_of(rank))) {
    const AdamWSettings s = kAdamW[each.group];
    const float keep = 1.0f - s.lr * s.weight_decay;                                   // what decay leaves
    const float step_size = float(s.lr * std::sqrt(1.0 - s.beta2) / (1.0 - s.beta1));  // t = 1
    Matrix w = data->weights(int(slices.size()));
    const Matrix g = summed_gradient(leaves, slices.size());  // as a balanced tree
    for (Index i = 0; i < w.size() && each.group != kHidden; ++i) {
      const float m = (1.0f - s.beta1) * g.flat()[i];  // β₁ m is 0
      const float v = (1.0f - s.beta2) * (g.flat()[i] * g.flat()[i]);
      w.flat()[i] = w.flat()[i] * keep - step_size * m / (std::sqrt(v) + s.epsilon);
    }
    slices.push_back(named_slice(each, w, rank.grid.tp(), rank.place.tp));
  }
  return slices;
}

// For the whole model it is [SerialMuon] and [SerialAdamW], each for its groups. All pipeline stages hold the whole
// model here, whatever `--pp` says.
std::unique_ptr<ReferenceRun> reference;
std::vector<NamedMatrix> expected_slices(const RankInfo& rank, int step) {
  return reference->slices_after(step, Grid().dp(rank.grid.dp()).tp(rank.grid.tp()), {0, rank.place.dp, rank.place.tp});
}
std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer ? local.optimizer->weights() : local.weights, rank.place.tp);
}

// ## The steps
//
// What is shown are the tables. The gains go the same way beside them.
Shown& show_tables(Rank& rank, const Local& local, const std::string& name, const Flat& values) {
  const Range all{0, local.layout.buffers[kTables].size}, own = local.layout.dp_slice(kTables, 0, rank.place.dp);
  return rank.show(name, values).elements(Index(values.size()) < all.size() ? own : all, local.layout.buffers[kTables]);
}

// The gradients of my own data, for all of my TP slices.
Buckets own_gradients(const Rank& rank, const Local& local) {
  return pack_slices(local.layout,
                     data->own_gradients(local.step, rank.grid.dp(), rank.place.dp, held_slices(rank, local)));
}

// Start with the weights, with moments of 0 for what I own, and with the gradients of my own data: the ranks of a DP
// group have the same weights, and different gradients.
void start(Rank& rank, Local& local) {
  local.layout = layout_of(rank);
  local.weights = first_buckets(local.layout, *data, rank.place.tp);  // all DP ranks have these
  local.first_moment = local.second_moment = local.sums = zero_shards(local.layout, rank.place.dp);  // mine alone
  local.gradients = own_gradients(rank, local);
  show_tables(rank, local, "weights", local.weights[kTables][0]);
  show_tables(rank, local, "my gradients", local.gradients[kTables][0]);
}

// Reduce-scatter, bucket by bucket: I get the sum of all gradients for what I own alone (`dist.reduce_scatter_tensor`).
void reduce_scatter(Rank& rank, Local& local) {
  for (const int b : {kTables, kGains})
    local.sums[b][0] = reduce_gradients(rank.dp(), local.gradients[b][0], local.layout.dp_counts(b, 0));
  show_tables(rank, local, "my gradients", local.sums[kTables][0]).note("summed");
}

// AdamW on what I own, in place, each bucket as its group says. In PyTorch, with ε as in the proof of concept:
//
//     p.mul_(1 - lr * weight_decay)
//     m.lerp_(g, 1 - beta1)
//     v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
//     p.addcdiv_(m, v.sqrt().add_(eps), value=-lr * math.sqrt(1 - beta2**t) / (1 - beta1**t))
//
// You should see three things of the same range: new weights, and both moments, which nobody else has. Two planted
// bugs: `step_per_bucket` counts t up for every bucket instead of every step, so the second one is corrected as in step
// 2; `decayed_gains` takes the decay of the tables for the gains as well.
void update_my_shard(Rank& rank, Local& local) {
  int t = 1;  // the first step
  for (const int b : {kTables, kGains}) {
    const Range own = local.layout.dp_slice(b, 0, rank.place.dp);  // counted in the bucket
    AdamWSettings settings = kAdamW[b];
    if (rank.bug("decayed_gains")) settings.weight_decay = kAdamW[kTables].weight_decay;
    adamw(local.weights[b][0].data() + own.begin, local.sums[b][0].data(), local.first_moment[b][0].data(),
          local.second_moment[b][0].data(), own.size(), t, settings);  // all but the weights are my shard alone
    if (rank.bug("step_per_bucket")) ++t;
  }
  // What came of it; and the numbers of one weight, the first that rank 0 owns.
  const Flat &w = local.weights[kTables][0], &m = local.first_moment[kTables][0], &v = local.second_moment[kTables][0];
  const Range own = local.layout.dp_slice(kTables, 0, rank.place.dp);
  show_tables(rank, local, "weights", Flat(w.begin() + own.begin, w.begin() + own.end)).note("new");
  show_tables(rank, local, "m", m).from("my gradients");  // as far as the player is concerned
  show_tables(rank, local, "v", v).from("my gradients");
  if (rank.rank() == 0)
    rank.say(fmt::format("embed[0,0] {:.4f} → {:.4f}, gradient {:.4f}, m {:.4f}, v {:.4f}", data->weights(0)(0, 0),
                         w[0], local.sums[kTables][0][0], m[0], v[0]));
}

// All-gather of weights, as in lesson 08. The moments stay where they are.
void gather_weights(Rank& rank, Local& local) {
  for (const int b : {kTables, kGains})
    all_gather_weights(rank.dp(), local.weights[b][0], local.layout.dp_counts(b, 0));
  show_tables(rank, local, "weights", local.weights[kTables][0]).note("new");
}

// ## The whole model
//
// [GroupedOptimizer] steps one group after the other, each with its own optimizer on its own buffer. Which group a
// parameter is in was settled before, by its whole tensor.
//
// The planted bug `silently_adamw` lets each rank decide by what it has in hand. A shard is a range of elements, and
// has one dimension, so every parameter is taken for a vector. All ranks agree, and the loss falls. DeepSpeed had it:
// of 84 calls of Newton–Schulz in a small test none was made (its pull request 8438 says so, and repairs it).
void start_model(Rank& rank, Local& local) {
  local = Local();                                  // the step by hand is over, and what it held is given back
  std::vector<Parameter> parameters = kParameters;  // whole tensors
  if (rank.bug("silently_adamw"))
    for (Parameter& each : parameters) each.dims = 1;  // as my shard has
  local.layout = layout_of(rank, parameters);
  local.optimizer = std::make_unique<GroupedOptimizer>(groups_of(rank), route(parameters, groups_of(rank)));
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, *data, rank.place.tp));
  for (const Buffer& all : local.layout.buffers)  // for the player
    rank.show(groups_of(rank)[static_cast<std::size_t>(all.group)].name, all.size).spans({0, all.size}, all);
}

// One step. The optimizer tells of each phase as it begins, and those of Newton–Schulz are counted.
void optimizer_step(Rank& rank, Local& local) {
  const Buckets gradients = own_gradients(rank, local);  // from the weights that I hold now
  const StepObserver observer = [&](Phase phase, const DistMeta*) {
    rank.phase(std::string(phase));
    local.newton_schulz += phase == phases::orthogonalize;  // this is all the counting
  };
  rank.memory().restart_peak();  // what is counted from here on is the step itself
  local.optimizer->step({local.layout, rank.place, rank.dp(), rank.tp(), observer}, gradients);
  ++local.step;
}

// The plan of a step says how often Newton–Schulz runs on this rank, and the check compares. That is all it takes to
// catch `silently_adamw`, and no test that merely sees weights change would.
std::unique_ptr<GroupedOptimizer> optimizer_of(const RankInfo& rank) {
  return std::make_unique<GroupedOptimizer>(groups_of(rank), route(kParameters, groups_of(rank)));
}
Plan model_plan(const RankInfo& rank) { return optimizer_of(rank)->plan(layout_of(rank), rank.place); }
// The check takes a matrix or a flat array; this is one of a single number.
Flat planned_calls(const RankInfo& rank) { return {float(kSteps * count(model_plan(rank), phases::orthogonalize))}; }
std::vector<NamedMatrix> calls(const RankInfo&, const Local& local) { return named(Flat{float(local.newton_schulz)}); }

// ## The cost
//
// AdamW sends each element twice over dp, once as a gradient and once as a weight, and nothing over tp. What goes over
// tp is Muon's, and so is the peak.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;                     // sums over plans
  for (const int group : {kTables, kGains})  // the step by hand
    prediction.ledger.add(ledger_of(Zero1AdamW(kAdamW[group]).plan(layout_of(rank).of_group(group), rank.place)), 1);
  prediction.ledger.add(ledger_of(model_plan(rank)), kSteps);  // and those of the whole model
  prediction.peak_elements = peak_elements(model_plan(rank));  // which needs more than the one by hand
  return prediction;
}

// Before any rank starts: refuse what can't work, and make what all of them share.
void prepare(const RankInfo& rank) {
  layout_of(rank);  // throws for a TP that does not divide
  data = std::make_unique<RandomTraining>(kParameters, kSteps, rank.seed);
  reference = std::make_unique<ReferenceRun>(*data, optimizer_of(rank));
}

// Each step is compared by itself, and prints nothing unless it is wrong.
void take_steps(Lesson<Local>& lesson) {
  for (int step = 1; step <= kSteps; ++step) {
    lesson.quiet_step(fmt::format("optimizer step {}", step), optimizer_step);
    lesson.quiet_check(fmt::format("all weights after step {}", step), held_slices,
                       [step](const RankInfo& rank) { return expected_slices(rank, step); });
  }
  lesson.sum_up_checks(fmt::format("all weights after steps 1–{}", kSteps));
}

// ## Where ε stands
//
// Two programs that both say AdamW may differ in one line. The proof of concept has √v + ε, with the corrections in
// the size of the step; `torch.optim.AdamW` corrects first: √(v / (1 − β₂ᵗ)) + ε. So in the first one ε counts
// 1 / √(1 − β₂ᵗ) times as much. How far do two sets of 64 weights get apart that way, at most, that begin at 0 and are
// fed the same random gradients, times `size`? In learning rates: 1 is as far as AdamW goes in a step.
double largest_difference(const Flat& a, const Flat& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

std::vector<double> forms_apart(const AdamWSettings& settings, float size, const std::vector<int>& steps,
                                std::uint64_t seed) {
  AdamWSettings forms[] = {settings, settings};
  forms[0].epsilon_stands = Epsilon::on_uncorrected_root;
  forms[1].epsilon_stands = Epsilon::outside_corrected_root;
  AdamWState states[] = {initial_adamw_state(Flat(64)), initial_adamw_state(Flat(64))};
  std::vector<double> apart;
  int step = 0;
  for (const int last : steps) {
    while (step < last) {
      Flat gradient = random_matrix({seed, std::uint64_t(++step)}, 1, 64).flat();
      for (float& each : gradient) each *= size;
      for (int form = 0; form < 2; ++form) adamw(states[form], gradient, step, forms[form]);
    }
    apart.push_back(largest_difference(states[0].weights, states[1].weights) / double(settings.lr));
  }
  return apart;
}

// That is the last table. Look where gradients are about as small as ε, which is 1e-8.
std::string epsilon_table(const AdamWSettings& settings, const std::vector<float>& sizes, const std::vector<int>& steps,
                          std::uint64_t seed) {
  Table table({{"ε       gradients of about, and how far apart after"}});
  for (const int step : steps) table.column({count_text(step, "step"), Digits{6}});
  for (const float size : sizes) {
    std::vector<Cell> row = {fmt::format("        {:g}", size)};
    for (const double apart : forms_apart(settings, size, steps, seed)) row.emplace_back(apart);
    table.row(row);
  }
  return table.text();
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_11_zero1_adamw";
  info.title = "ZeRO-1 AdamW";
  info.question = "what steps the weights that Muon does not, and who makes sure that Muon steps the others?";
  info.bugs = {{"silently_adamw", "ranks decide by the shape of their shards, and AdamW steps everything"},
               {"step_per_bucket", "the step of the bias correction is counted up with each bucket"},
               {"decayed_gains", "the gains decay as the tables do"}};
  info.also_try = {"--dp 4 --tp 1", "--dp 3 --tp 2", "--precision bf16"};
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(prepare);  // before any rank is started

  lesson.say(routing_table(lesson.rank_info()));

  // A step of AdamW by hand; then steps of the whole model, with both optimizers.
  lesson.step("start from the tables, with gradients of my own", start);
  lesson.step("reduce-scatter of gradients over dp", reduce_scatter);
  lesson.step("AdamW on the elements that I own; ZeRO-1: their moments, m and v, nobody else has", update_my_shard);
  lesson.step("all-gather of weights over dp", gather_weights);
  lesson.check("tables and gains after step 1", held_slices, after_one_step);
  lesson.quiet_step("lay out the whole model", start_model);
  take_steps(lesson);
  lesson.check("calls of Newton–Schulz, as planned", calls, planned_calls);
  lesson.cost(predict);  // of all steps together

  lesson.say("how far AdamW with ε, 1e-8, at √v gets from torch's, at the corrected root, in learning rates");
  lesson.say(epsilon_table(kAdamW[kGains], {1, 1e-6f, 1e-8f, 1e-10f}, {1, 10, 100, 1000}, lesson.rank_info().seed));

  // ## Exercises
  //
  // 1. By how much does step 1 move embed[0,0], decay not counted, and by how much with `--seed 3`? Hint: what
  //    decay leaves of it is w · (1 − 0.02 · 0.1). Answer: by 0.02 both times, the learning rate of its group, against
  //    the sign of its gradient. In step 1, m is (1 − β₁) g, √v is √(1 − β₂) |g|, and the correction takes both factors
  //    away again; so the size of a gradient makes no difference, unless it is as small as ε.
  // 2. How many moments does a rank keep, and which options make them fewer? Hint: which elements of the two buckets
  //    does it own? Answer: two for each that it owns: 2 · (192 / tp + 8) / dp, where dp divides the buckets. With
  //    `--dp 4 --tp 1` they are 100, with `--dp 2 --tp 2` 104: TP does not cut the gains, so each TP rank steps all of
  //    them, and all come to the same bits. AdamW without ZeRO-1 would keep dp times as many.
  // 3. With `--bug silently_adamw`, which lines of the table of costs change, and what would that look like on a
  //    cluster? Hint: who has to see whole matrices? Answer: the gathers over tp are gone, and those over dp are fewer,
  //    as nothing but weights is gathered. The step sends less and computes much less. It looks like a fast Muon.
  return lesson.answer(
      "AdamW steps them, element by element, so a rank needs the gradients and the moments of what it owns and no "
      "others. Which optimizer steps a parameter is decided by the whole tensor, never by a shard, and the plan makes "
      "sure of it: it says how often Newton–Schulz has to run.");
}
