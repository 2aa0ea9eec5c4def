// # Lesson 24 · Is this Muon?
//
// Somebody has built Muon into a training program. Its loss falls and its tests pass. Is it Muon? Here are six
// programs, each of which says that it is. Five of them are not, each for a reason that people had in earnest. You get
// what ranks held before and after one step, a *dump*, and may look at it in four ways. Then `muonwalk-check`, a tool
// for dumps of other people's programs, has to say of each what you found, and what was done to it.
//
// You need to know the full step (lesson 09), how to hunt with evidence (lesson 10), what sets the size of an update
// (lesson 12), and that there are several ways to distribute it (lesson 16).
//
// Hunt before you read on, because the text below names the culprits: run the lesson, look at the first table alone,
// and write down which program is right, and what the others do.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lessons/lesson_24_is_this_muon/dump_of_ranks.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Nobody can see from a loss which optimizer made it fall. But one step leaves tensors behind, and they can be asked:
//
//     before ─┐
//     grad   ─┼─→ the step ─→ after = (1 − α) · before − β · O
//     moments─┘
//
// O is what Newton–Schulz makes of gradient and momentum, and it follows from the dump. So α, β and how far the rest is
// from O can be worked out without a word from whoever wrote the program:
//
// - *The direction.* Take the decay off, scale what is left and O to norm 1, and see how far apart they are. A right
//   program is at 0 but for rounding.
// - *Where it is off.* If only matrices that TP cuts are off, whoever cuts them is to blame.
// - *The size*, and how it depends on the shape: here β should be lr · 0.2 · √max(rows, columns).
// - *The decay.* α should be lr · decay.
// - *The ranks.* Those that hold the same weights should hold the same bits.
//
// Four matrices are enough, as long as their shapes differ, and TP cuts some and leaves others whole.
const std::vector<Parameter> kParameters = {{"qkv", {48, 16}, SplitDim::rows, 0},
                                            {"out", {16, 16}, SplitDim::columns, 0},
                                            {"down", {16, 32}, SplitDim::columns, 0},
                                            {"router", {8, 16}, SplitDim::none, 0}};
constexpr int kSteps = 2;  // the second is dumped: in the first there is no momentum yet

// ### Six programs
//
// Each shares out the work in another way (lesson 16), with every matrix in a bucket of its own. That must not show in
// any bit: who looks at tensors can't tell how they were sent. What shows is a fault, if there is one: settings other
// than those that the program was told, or something that goes wrong on the way.
struct Program {
  const char* name;
  Strategy (*strategy)();                             // how the step is distributed
  void (*set)(MuonSettings& settings);                // what it makes of its settings
  const char *kind = "", *axis = "";                  // the fault, as the catalogue of muonwalk-check calls it
  const char* parameters = "down, out, qkv, router";  // where
};
void as_told(MuonSettings&) {}
void without_look_ahead(MuonSettings& settings) { settings.nesterov = false; }
void decayed_twice(MuonSettings& settings) { settings.weight_decay *= 2; }
void at_half_the_rate(MuonSettings& settings) { settings.lr *= 0.5f; }

// A leaves out Nesterov's look-ahead: it orthogonalizes the momentum alone. B takes slices of TP for matrices in every
// second step, as MuonBP does on purpose. C decays twice, once in the optimizer and once more outside of it. E has a
// schedule that halves the learning rate, of which its configuration knows nothing. In F, the last DP rank does not
// wait for the weights that others send: where it isn't the owner, it goes on with those from before the step.
const std::vector<Program> kPrograms = {{"A", boundary_matrices, without_look_ahead, "nesterov_mismatch"},
                                        {"B", block_wise, as_told, "tp_slices", "tp", "down, out, qkv"},
                                        {"C", owner_by_work, decayed_twice, "decay_twice"},
                                        {"D", all_to_all, as_told},
                                        {"E", tp_duplicated, at_half_the_rate, "lr_mismatch"},
                                        {"F", gather_everything, as_told, "stale_shard", "dp"}};
bool is(const Program& program, const char* name) { return std::string(program.name) == name; }

MuonSettings told(const RankInfo& rank) { return muon_settings(rank.precision, rank.threads, rank.products); }
Layout layout_of(const Program& program, const Grid& grid) { return program.strategy().lay_out(kParameters, grid, 1); }
RandomTraining training(const RankInfo& rank) { return RandomTraining(kParameters, kSteps, rank.seed); }

// What one rank holds.
struct Local {
  int programs = 0;                  // how many it has run
  std::vector<NamedMatrix> dump;     // of the last one's last step: tensors by name, "before/qkv", 48 / tp × 16
  std::vector<NamedMatrix> weights;  // the TP slices that D ends with
};

// ## The reference
//
// One process that takes the same two steps ([SerialMuon]). The right program has to have its bits.
std::vector<NamedMatrix> trained(const RankInfo& rank) {
  MuonSettings settings = told(rank);
  settings.newton_schulz.threads = 1;  // it runs in a process that forks
  const RandomTraining data = training(rank);
  return ReferenceRun(data, std::make_unique<Muon>(settings)).slices_after(kSteps, rank.grid, rank.place);
}

// And for evidence by hand, the O of the last step: momentum and look-ahead in plain loops, whole matrices, and
// Newton–Schulz. The gradients are random numbers, so they are the same in all programs.
std::vector<Matrix> orthogonal_updates(const RankInfo& rank) {
  const RandomTraining data = training(rank);
  const MuonSettings settings = told(rank);
  const float mu = static_cast<float>(settings.momentum);
  std::vector<Matrix> updates;
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    Matrix momentum(kParameters[p].shape.rows, kParameters[p].shape.cols), update = momentum;
    for (int step = 0; step < kSteps; ++step) {
      const Matrix sum = summed_gradient(data.all_leaves(step, rank.grid.dp(), data.first_weights()), p);
      for (Index i = 0; i < sum.size(); ++i) {
        momentum.data()[i] = mu * momentum.data()[i] + sum.data()[i];
        update.data()[i] = sum.data()[i] + mu * momentum.data()[i];
      }
    }
    updates.push_back(newton_schulz(update, settings.newton_schulz, kParameters[p].name));
  }
  return updates;
}

// What was taken from the weights, as α · before + β · O and a rest: the α and β that leave least, from two equations.
// The distance is that of both directions.
struct Fit {
  double alpha = 0, beta = 0, distance = 0;
};
double dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) sum += double(a.data()[i]) * double(b.data()[i]);
  return sum;
}
Fit fit(const Matrix& before, const Matrix& after, const Matrix& orthogonal) {
  Matrix taken = before;
  for (Index i = 0; i < taken.size(); ++i) taken.data()[i] -= after.data()[i];
  const double ww = dot(before, before), wo = dot(before, orthogonal), oo = dot(orthogonal, orthogonal);
  const double wt = dot(before, taken), ot = dot(orthogonal, taken), determinant = ww * oo - wo * wo;
  Fit fit{(wt * oo - ot * wo) / determinant, (ot * ww - wt * wo) / determinant, 0};
  for (Index i = 0; i < taken.size(); ++i) taken.data()[i] -= float(fit.alpha) * before.data()[i];
  const double length = std::sqrt(dot(taken, taken)), of_orthogonal = std::sqrt(oo);
  double squares = 0;
  for (Index i = 0; i < taken.size(); ++i) {
    const double direction = length > 0 ? double(taken.data()[i]) / length : 0;  // none, where nothing moved
    const double apart = direction - double(orthogonal.data()[i]) / of_orthogonal;
    squares += apart * apart;
  }
  fit.distance = std::sqrt(squares);
  return fit;
}

// ## The steps
//
// A rank notes what it holds: of weights and gradients its TP slice, of momentum the elements that it owns.
void note(Local& local, const std::string& what, const std::vector<NamedMatrix>& slices) {
  for (const NamedMatrix& slice : slices) local.dump.push_back({what + "/" + slice.name, slice.matrix, 0, 0});
}
void note_momentum(Local& local, const std::string& what, const Optimizer& optimizer, const Layout& layout, int dp) {
  for (const SavedBuckets& kept : optimizer.save().kept)
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      const Range mine = layout.local_range(meta, dp);
      const auto shard = kept.buckets[meta.buffer_idx][meta.bucket_idx].begin();
      if (mine.size() > 0)
        note(local, what, {{meta.name, Matrix(1, mine.size(), Flat(shard + mine.begin, shard + mine.end)), 0, 0}});
    }
}

// The gradient that counts: the sum over all DP ranks, which the step is about to make.
//
// The planted bug `own_gradient` notes what the rank has itself, before anything is added. Then a dump of the right
// program looks like one of a wrong one, so whoever dumps has to know where in a program gradients are whole.
std::vector<NamedMatrix> summed_gradients(const Rank& rank, int step, std::vector<NamedMatrix> held) {
  const RandomTraining data = training(rank);
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::vector<Flat> leaves;
    for (int dp = 0; dp < rank.grid.dp(); ++dp)
      if (!rank.bug("own_gradient") || dp == rank.place.dp)
        leaves.push_back(data.own_gradients(step, rank.grid.dp(), dp, held)[p].flat());
    held[p].matrix.flat() = tree_sum(leaves);
  }
  return held;
}

// The fault of F: where this rank isn't the owner, weights are those from before.
void keep_what_others_own(const Layout& layout, int dp, const std::vector<NamedMatrix>& before,
                          std::vector<NamedMatrix>& after) {
  for (std::size_t p = 0; p < after.size(); ++p) {
    const DistMeta& meta = layout.meta(after[p].name);
    const Range owned = layout.owned_range(meta, dp);
    for (Index i = 0; i < after[p].matrix.size(); ++i)
      if (const Index at = meta.global_range.begin + i; at < owned.begin || at >= owned.end)
        after[p].matrix.data()[i] = before[p].matrix.data()[i];
  }
}

// Run the next program, and keep the dump of its last step. Copies are taken before the step and after it.
//
// The planted bug `not_copied` notes references where it should copy, so that after the step, `before` is what is there
// then. And with `lost_gradient` the last DP rank of D steps without its own gradient, which no tool is needed to see:
// the weights are others.
void run_program(Rank& rank, Local& local) {
  const Program& program = kPrograms[local.programs++];
  const bool last_dp = rank.place.dp + 1 == rank.grid.dp();
  const Layout layout = layout_of(program, rank.grid);
  const RandomTraining data = training(rank);
  MuonSettings settings = told(rank);
  program.set(settings);
  const auto optimizer = program.strategy().optimizer(layout, settings, 0);
  optimizer->start(layout, rank.place, first_buckets(layout, data, rank.place.tp));
  std::vector<NamedMatrix> before, after;
  for (int step = 0; step < kSteps; ++step) {
    before = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
    local.dump.clear();
    note(local, "grad", summed_gradients(rank, step, before));
    note_momentum(local, "momentum_before", *optimizer, layout, rank.place.dp);
    std::vector<Matrix> own = data.own_gradients(step, rank.grid.dp(), rank.place.dp, before);
    if (rank.bug("lost_gradient") && is(program, "D") && last_dp)
      for (Matrix& gradient : own) gradient = Matrix(gradient.rows(), gradient.cols());
    optimizer->step({layout, rank.place, rank.dp(), rank.tp()}, pack_slices(layout, own));
    after = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
  }
  if (is(program, "D")) local.weights = after;
  if (is(program, "F") && last_dp) keep_what_others_own(layout, rank.place.dp, before, after);
  note(local, "before", rank.bug("not_copied") ? after : before);
  note(local, "after", after);
  note_momentum(local, "momentum_after", *optimizer, layout, rank.place.dp);
}
std::vector<NamedMatrix> dumped(const RankInfo&, const Local& local) { return local.dump; }
std::vector<NamedMatrix> weights_of_d(const RankInfo&, const Local& local) { return local.weights; }

// ### Look at it by hand
//
// The tensors called "before/…" or "after/…", of each rank; and from them whole matrices, as DP rank 0 has them.
using OfRanks = std::vector<std::vector<NamedMatrix>>;
OfRanks called(const OfRanks& dump, const std::string& what) {
  OfRanks found;
  for (const std::vector<NamedMatrix>& of_rank : dump) {
    found.emplace_back();
    for (const NamedMatrix& tensor : of_rank)
      if (tensor.name.rfind(what + "/", 0) == 0)
        found.back().push_back({tensor.name.substr(what.size() + 1), tensor.matrix, 0, 0});
  }
  return found;
}

// The evidence, a line for each program: the largest distance of a matrix that TP cuts, and of one that it doesn't; α
// and β of the latter, beside what they should be; and how many elements are others than on DP rank 0.
struct Evidence {
  std::string program;
  double cut = 0, whole = 0, alpha = 0, beta = 0;
  std::int64_t differ = 0;
};
std::vector<Evidence> evidence = {};  // of each program, to be printed
void look(const RankInfo& rank, const Program& program, const OfRanks& dump) {
  const OfRanks slices = called(dump, "after");
  const std::vector<Matrix> before = join_held_slices(kParameters, rank.grid, called(dump, "before"));
  const std::vector<Matrix> after = join_held_slices(kParameters, rank.grid, slices);
  const std::vector<Matrix> orthogonal = orthogonal_updates(rank);
  double cut = 0, whole = 0;
  Fit last;
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    last = fit(before[p], after[p], orthogonal[p]);
    double& largest = kParameters[p].tp_split_dim == SplitDim::none ? whole : cut;
    largest = std::max(largest, last.distance);
  }
  std::int64_t differ = 0;
  for (std::size_t r = 0; r < slices.size(); ++r)
    for (std::size_t p = 0; p < kParameters.size(); ++p)
      for (Index i = 0; i < slices[r][p].matrix.size(); ++i)
        differ += slices[r][p].matrix.data()[i] != slices[r % rank.grid.tp()][p].matrix.data()[i];
  const MuonSettings settings = told(rank);
  evidence.push_back({program.name, cut, whole, last.alpha / (settings.lr * settings.weight_decay),
                      last.beta / update_scale(kParameters.back().shape, settings), differ});
}

std::string evidence_text() {
  Table table({{"program"},
               {"distance, cut by tp", Side::right},
               {"whole", Side::right},
               {"α / (lr · decay)", Side::right},
               {"β / (lr · 0.2 · √max)", Side::right},
               {"elements that differ", number_text}});
  for (const Evidence& each : evidence)
    table.row({each.program, fmt::format("{:.2f}", each.cut), fmt::format("{:.2f}", each.whole),
               fmt::format("{:.2f}", each.alpha), fmt::format("{:.2f}", each.beta), each.differ});
  return lines_text(table.lines());
}

// ### Ask the tool
//
// It reads files, one for each rank, as docs/dump-format.md says, and knows nothing of this lesson. It tries
// explanations against each other, more than fifty kinds of bugs among them, and the nearest has to be nearer than
// rounding could make it by chance.
//
// The planted bug `asks_for_change` is a test that many projects have in place of a judge: it asks whether weights have
// changed. All six programs pass.
std::string found_by(const check::DumpVerdict& verdict) {
  std::string words;
  for (check::Finding found : verdict.findings) {
    std::sort(found.parameters.begin(), found.parameters.end());
    words += fmt::format("{}{}{}: {}", words.empty() ? "" : "; ", found.kind,
                         found.axis.empty() ? "" : " (" + found.axis + ")", visible_names(found.parameters));
  }
  return words.empty() ? check::verdict_name(verdict.verdict) : words;
}
std::vector<std::string> verdicts = {};  // what the tool says of each program, to be printed
NamedNumbers said, truth;                // and for the check: of how many matrices it says what; what is so
void ask(const RankInfo& rank, const Program& program, const OfRanks& tensors) {
  check::DumpVerdict verdict;
  if (rank.bug("asks_for_change"))
    verdict.verdict = check::Verdict::clean;
  else
    verdict = judged({layout_of(program, rank.grid), told(rank), kSteps, tensors});
  append(verdicts, paragraph(fmt::format("{}  {}", program.name, found_by(verdict)), 0, 3));
  for (const check::Finding& found : verdict.findings) append(verdicts, paragraph(found.sentence, 3, 3));
  said[fmt::format("{}: {}", program.name, found_by(verdict))] = 1;

  // Without TP there are no slices, and without DP nobody else's weights.
  const std::string axis = program.axis;
  const bool wrong =
      *program.kind != '\0' && !(axis == "tp" && rank.grid.tp() == 1) && !(axis == "dp" && rank.grid.dp() == 1);
  truth[wrong ? fmt::format("{}: {}{}: {}", program.name, program.kind, axis.empty() ? "" : " (" + axis + ")",
                            program.parameters)
              : fmt::format("{}: clean", program.name)] = 1;
}

// ## The cost
//
// The steps of all six, by their plans. A dump costs nothing on the wire: each rank writes what it has.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  prediction.peak_elements = -1;  // not said
  for (const Program& program : kPrograms) {
    const Layout layout = layout_of(program, rank.grid);
    for (int step = 0; step < kSteps; ++step)
      prediction.ledger.add(ledger_of(program.strategy().optimizer(layout, told(rank), step)->plan(layout, rank.place)),
                            1);
  }
  return prediction;
}

// Run a program, and look at the dump of its second step.
void run_and_look(Lesson<Local>& lesson, const Program& program) {
  lesson.quiet_step(fmt::format("program {}: two steps", program.name), run_program);
  const OfRanks dump = lesson.collect(dumped);
  lesson.in_parent([&] {
    look(lesson.rank_info(), program, dump);
    ask(lesson.rank_info(), program, dump);
  });
}

// What came of all six.
void tell(Lesson<Local>& lesson) {
  lesson.in_parent([&] {
    lesson.say("The evidence, by hand: which one is Muon, and what do the others do?\n\n" + evidence_text());
    lesson.say("\nWhat muonwalk-check says:\n\n" + lines_text(verdicts) + "\n");
    lesson.check_numbers("what muonwalk-check says of each program is so", said, truth);
  });
}

// What can't work is refused before any rank starts.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1)
    throw UsageError(fmt::format("--pp {}: this lesson has no pipeline; try --pp 1", rank.grid.pp()));
  for (const Program& program : kPrograms) layout_of(program, rank.grid);  // throws where TP divides a matrix unevenly
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_24_is_this_muon";
  info.title = "Is this Muon?";
  info.question = "six programs say that they are Muon: which of them is, and what do the others do?";
  info.bugs = {{"own_gradient", "the dump has each rank's own gradient in place of the sum"},
               {"not_copied", "the dump has references: the weights before the step are those after it"},
               {"asks_for_change", "the judge asks whether weights have changed, and nothing else"},
               {"lost_gradient", "the last DP rank of program D steps without its own gradient"}};
  info.also_try = {"--tp 1", "--dp 4 --tp 1 --seed 7"};
  info.products = Products::chain;  // the distances have the same digits on all processors

  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  lesson.require(prepare);
  for (const Program& program : kPrograms) run_and_look(lesson, program);
  tell(lesson);
  lesson.check("weights of D after 2 steps", weights_of_d, trained);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With `--tp 1`, B is right, and with `--dp 1` F is. Would you have found them on one GPU? Hint: what is a slice
  //    of a matrix that nobody cuts, and whose weights does a rank have to wait for? Answer: No. The slice is the whole
  //    matrix then, and the only rank owns all weights. A dump of one rank shows what the settings do (A, C and E); for
  //    the others there have to be at least two ranks on the axis that is to blame.
  // 2. α is off in C and in E. What tells them apart? Hint: what else is the learning rate in? Answer: β. The decay is
  //    multiplied by the learning rate, so half the rate halves both, as in E. In C only α is off, so nobody has
  //    touched the rate. Were β alone half of what it should be, the factor of shape would be to blame: 0.1 · √max, for
  //    example, in place of 0.2 · √max.
  // 3. In F, the loss of DP rank 0 falls as that of D does, and its weights equal the reference. Which test finds F?
  //    Hint: who holds wrong weights, and does anybody look there? Answer: one that compares the ranks with each other,
  //    bit for bit. `muonwalk-check --replicas` asks just that, and says since which step and which tensor. If you wait
  //    for the loss to show it, the gradients of the last DP rank, made with old weights, are in everybody's sum.
  return lesson.answer(
      "D. Of what one step leaves behind, ask four things: the direction without the decay, and where it is off; the "
      "size by shape; the decay; and whether ranks that hold the same have the same bits. A orthogonalizes without the "
      "look-ahead, B slice by slice, C decays twice, E steps half as far as it was told, and F goes on with old "
      "weights. Their losses fall, all six.");
}
