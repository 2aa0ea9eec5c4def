// # Lesson 13 · The byte ledger
//
// The decision: a team wants to train with Muon in place of AdamW, and has to say how much more network that takes.
// What it finds are three numbers: 0.57 times as much, at most 1.25 times, 1.70 times. Each of them is right about
// something. This lesson lets both optimizers take a step on the matrices of the published run, counts every byte, and
// says what each number is a ratio of.
//
// You need to know the full step, lesson 09, and what a collective sends, lesson 02.

#include <fmt/format.h>

#include "lessons/lesson_13_byte_ledger/ledger_tables.hpp"
#include "sim/classroom/lesson.hpp"
#include "src/errors.hpp"
#include "src/optim/steps.hpp"
#include "src/train/models.hpp"
#include "src/train/sent_bytes.hpp"
#include "src/train/training.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// Without TP, a step moves all elements a few times through the DP group. Each move costs a rank (dp − 1) / dp of them,
// so all that remains to be compared is how many moves there are, and how large an element is in each:
//
//     AdamW, all-reduce    gradients and their sum, in two moves     4 B + 4 B             8 B
//     AdamW, ZeRO-1        gradients 4 B                       new weights 4 B             8 B
//     Muon                 gradients 4 B    update 2 or 4 B    new weights 4 B      10 or 12 B
//
// Where Newton–Schulz computes in bf16 it begins by rounding its input, so the update may as well travel in two bytes.
// TP adds a move that AdamW does not have at all: the gather of TP slices.
//
// That is how the published bound counts, with weights of four bytes. Who trains in mixed precision keeps float32
// *masters* of the weights that a rank owns, computes with bf16, and so gathers new weights in two bytes, whoever the
// optimizer is: 6 B for AdamW with ZeRO-1 and 8 B for Muon, or 4 B and 6 B where gradients are added up in bf16, too.
// What AdamW sends becomes less, the update does not, and the ratio grows.
//
// These are the contenders (src/train/sent_bytes.hpp). They take a step one after the other, from the same weights
// and with the same gradients.

// What you asked for: the sizes of the published run. By default each side of a matrix is a sixteenth of that.
bool real_size = false;

// What one rank holds.
struct Local {
  Layout layout;                         // who owns what: one bucket, as in the published run
  std::unique_ptr<Optimizer> optimizer;  // whose turn it is, with its weights: whole buckets of my TP slices
  std::vector<SentBytes> sent;           // by me: an entry for each contender that had its turn
};

// Weights and gradients: random numbers, the same for everybody.
std::unique_ptr<Training> data;

Layout layout_of(const Grid& grid, Index alignment = 1) {
  LayoutOptions options;
  options.parameter_alignment = alignment;
  return plan_layout(data->parameters(), grid, options);
}

// ## The reference
//
// One process and whole matrices, for each contender. AdamW's bits do not depend on who keeps its moments: its two
// contenders are held to the same reference.
std::vector<std::unique_ptr<ReferenceRun>> references;

std::vector<NamedMatrix> held_slices(const RankInfo& rank, const Local& local) {
  return unpack_buckets(local.layout, local.optimizer->weights(), rank.place.tp);
}

// ## The steps
//
// Lay out the matrices, one behind the other. The planted bug `padded_matrices` begins each of them at a multiple of
// 2,048 elements, so that ranks could share each one evenly. Padding is zeros and no weight becomes wrong, which is why
// nobody notices. In microsoft/dion, too, zeros travelled unnoticed: its Dion2 takes a fraction of a matrix's rows, by
// default a quarter, and sent all of them, 1 / fraction times the bytes (issue 96, mended by pull request 97).
void start(Rank& rank, Local& local) { local.layout = layout_of(rank.grid, rank.bug("padded_matrices") ? 2048 : 1); }

// The gradients that this rank computed itself. With the planted bug `lost_gradient`, DP rank 1 hands in zeros: that
// has the right bytes and the wrong bits, the other way round.
Buckets own_gradients(const Rank& rank, const Local& local) {
  std::vector<Matrix> slices = data->own_gradients(0, rank.grid.dp(), rank.place.dp, held_slices(rank, local));
  if (rank.bug("lost_gradient") && rank.place.dp == 1)
    for (Matrix& slice : slices) slice = Matrix(slice.rows(), slice.cols());
  return pack_slices(local.layout, slices);
}

// ### A step with the ledger open
//
// The next contender starts, and takes its step. An observer is told of each phase as it begins: it looks at what my
// ledger says by then, and books what was sent since the last time for the phase that has ended. So what each move
// costs is counted where bytes are handed over (lesson 02), and not worked out from what should be sent. The kernel has
// a count of its own, which stands in the table of costs (`--verbose 2`).
//
// The planted bug `gathers_twice` gathers the new weights once more when the step is over, like code that was not told
// that they are there already. No bit changes, and no phase of the step has sent too much. Only the ledger knows.
void one_step(Rank& rank, Local& local) {
  local.optimizer = contenders()[local.sent.size()].make(rank.threads, rank.products);
  local.optimizer->start(local.layout, rank.place, first_buckets(local.layout, *data, rank.place.tp));
  const Buckets gradients = own_gradients(rank, local);

  SentCounter counter(rank.ledger());
  const StepObserver observer = [&](Phase phase, const DistMeta*) { counter.begin(phase); };
  local.optimizer->step({local.layout, rank.place, rank.dp(), rank.tp(), observer}, gradients);
  local.sent.push_back(counter.end());
  if (rank.bug("gathers_twice")) {
    Flat again = local.optimizer->weights()[0][0];
    all_gather_weights(rank.dp(), again, local.layout.dp_counts(0, 0));
  }
}

// All contenders, each with its check. A check speaks only where it fails, and one line sums them up. The second grid
// is as quiet as that: its bytes are in its table.
void take_steps(Lesson<Local>& lesson, bool quiet) {
  for (std::size_t i = 0; i < contenders().size(); ++i) {
    const std::string name = contenders()[i].name;
    if (quiet)
      lesson.quiet_step(fmt::format("a step of {}", name), one_step);
    else
      lesson.step(fmt::format("a step of {}", name), one_step);
    lesson.quiet_check("weights after a step of " + name, held_slices,
                       [i](const RankInfo& rank) { return references[i]->slices_after(1, rank.grid, rank.place); });
  }
  lesson.sum_up_checks("after one step of each");
}

// ## The cost
//
// The plan of each contender lists its calls, and each call belongs to a phase. `sent_bytes` (src/train)
// adds them up by what they are for. What every rank has counted is compared with that, number by number: how many
// bytes for gradients, for the DP gather, for TP gathers, and for weights.
std::vector<NamedMatrix> counted(const RankInfo&, const Local& local) { return named(matrix_of(local.sent)); }

Matrix planned_by_rank(const RankInfo& rank) {
  std::vector<SentBytes> all;
  for (const Contender& contender : contenders()) all.push_back(planned(contender, layout_of(rank.grid), rank.place));
  return matrix_of(all);
}

// And the table of costs: all contenders together, line by line of the ledger. It knows calls, and not what they are
// for: that Muon's float32 gathers and everybody's weights share a line does not matter to it.
Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  for (const Contender& contender : contenders()) {
    const std::unique_ptr<Optimizer> optimizer = contender.make(rank.threads, rank.products);
    prediction.ledger.add(ledger_of(optimizer->plan(layout_of(rank.grid), rank.place)), 1);
  }
  return prediction;
}

// Rank 0's counts as a table: a column for each move, so that two rows differ where two optimizers do. Read it
// downwards. Gradients and weights cost everybody the same. The DP gather is Muon's alone, and half as wide in bf16.
// The TP gather is Muon's alone as well, and larger than any other column: the largest matrix goes to everybody who
// owns an element of it. With dp 4 that column is empty, and what is left is the ratio of the idea above.
//
// Only the parent has these numbers of other ranks; a rank knows its own.
std::string counted_table(const std::vector<SentBytes>& sent) {
  std::vector<std::pair<std::string, SentBytes>> rows;
  for (const SentBytes& of : sent) rows.emplace_back(contenders()[rows.size()].name, of);
  return ledger_table("counted on rank 0", rows, zero1);
}

// Before any rank is started: refuse what can't work, and make what all ranks share. It is called for each layout, and
// the second one starts from the same weights, has the same gradients, and is held to the same references: they add up
// four leaves of gradients, whichever ranks bring them.
void prepare(const RankInfo& rank) {
  if (rank.grid.pp() > 1) throw UsageError("--pp 2 or more has nothing to send here; try --dp 2 --tp 2, or lesson 09");
  if (rank.precision == Precision::bf16)
    throw UsageError("--precision bf16 decides nothing here: Muon gathers in bf16 and in float32; leave it out");
  if (data == nullptr)
    data = std::make_unique<RandomTraining>(real_size ? published_run_parameters() : small_published_run_parameters(),
                                            1, rank.seed);
  layout_of(rank.grid);  // which refuses a size of TP that does not divide a matrix
  for (std::size_t i = references.size(); i < contenders().size(); ++i)
    references.push_back(std::make_unique<ReferenceRun>(*data, contenders()[i].make(1, rank.products)));
}

// One layout: all contenders, and what they sent.
void run(Lesson<Local>& lesson, bool quiet) {
  lesson.require(prepare);
  lesson.quiet_step("lay out the matrices", start);
  take_steps(lesson, quiet);
  lesson.check("bytes, by what they are for", counted, planned_by_rank);
  lesson.cost(predict, true);
  const auto of_ranks = lesson.collect(counted);
  lesson.in_parent([&] { lesson.say(counted_table(sent_from(of_ranks[0][0].matrix))); });
  lesson.timings();
}

// ## Three numbers
//
// What the small matrices have counted holds for the large ones, whose plans need no rank to run; with `--real-size`
// they do run. Here are ratios at the published sizes, with what they compare. Two of them stand below the bound that
// they go beyond: weights in two bytes, and gradients as well, by the same plans.
//
// Before you believe a ratio of bytes, ask four things of it. Have both sides the same grid? Are the elements of the
// same type, or is the difference of types what the ratio is about? Are all calls of a step in it, on both sides? And
// is it a ratio of bytes at all, or of times? The first three rows of the last table fail in one of these each, or in
// none: see which.
//
// Who claimed them? The 0.57 is a ratio of times. Jen Wei's "Distributed Muon: Field Notes & Reproducibility Artifacts"
// (2025) puts the all-gathers of Muon on dp 2 × tp 2 beside the all-reduces of AdamW on dp 4; lesson 18 reads the
// traces. The bounds of (1, 1.25] are from "Muon is Scalable for LLM Training" (Liu et al., 2025), for ZeRO-1 without
// TP; the upper one takes gradients and weights in float32. The 1.70 is what this lesson counts.
std::string three_numbers() { return "\nat the sizes of the run whose 0.57 was published:\n" + published_ratios(); }

// The answer comes after the last layout.
int finish(Lesson<Local>& lesson, bool last_layout) {
  if (!last_layout) return lesson.answer("");
  lesson.say(three_numbers());
  return lesson.answer(
      "on one grid and without TP, Muon sends a quarter more than AdamW with ZeRO-1 where all but the update has 4 "
      "bytes, a third more where weights have 2, half as much again where gradients do, too, and nothing more where "
      "each matrix has one owner. TP adds a gather that AdamW does not have. That Muon sends less came out of two "
      "layouts, with two of its four moves left out. A ratio of bytes needs the same grid, types and calls on both "
      "sides.");
}

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_13_byte_ledger";
  info.title = "The byte ledger";
  info.question = "does Muon send 0.57 times, 1.25 times or 1.70 times the bytes of AdamW?";
  info.bugs = {{"gathers_twice", "the new weights are gathered once more: right bits, more bytes"},
               {"padded_matrices", "every matrix is padded to a multiple of 2,048 elements: right bits, more bytes"},
               {"lost_gradient", "DP rank 1 hands in zeros: right bytes, wrong bits"}};
  info.also_try = {"--real-size", "--dp 8 --tp 1", "--dp 1 --tp 2"};
  info.options = {{"--real-size", "the matrices of the published run, 73 MB of weights", &real_size}};
  info.products = Products::chain;

  // First the grid of the published run. A second one, without TP, comes after it unless you asked for a layout.
  Lesson<Local> lesson(info, Grid().dp(2).tp(2), argc, argv);
  const bool one_layout = lesson.options().grid_given;
  run(lesson, false);
  int code = finish(lesson, one_layout);
  if (!one_layout) {
    LessonInfo asked = info;  // a copy, for in a notebook the lesson may begin again
    asked.question.clear();   // it was asked
    Lesson<Local> other(asked, Grid().dp(4), argc, argv);
    run(other, true);
    code = std::max(code, finish(other, true));
  }

  // ## Exercises
  //
  // 1. `--dp 8 --tp 1` and `--dp 1 --tp 2`: what is the ratio of Muon to ZeRO-1 AdamW in each, and why does the second
  //    one have none? Hint: what does AdamW send in a grid without data parallelism? Answer: The first is that of dp 4,
  //    as every move costs (dp − 1) / dp on both sides. In the second AdamW sends nothing at all: each rank has the
  //    gradients of its own slices and updates them. All that Muon sends is its TP gather.
  // 2. Why does the table of costs, which `--verbose 2` prints, have other numbers for ranks 2–3 of dp 2 × tp 2 than
  //    for ranks 0–1? Hint: who gathers which slices? Answer: A rank gathers the slices of those matrices of which it
  //    owns an element. DP rank 0 owns a part of the largest matrix and nothing else. DP rank 1 owns the rest of it and
  //    all the small ones, so it sends more.
  // 3. A colleague says: send everything in bf16, then Muon is at 6 B per element and AdamW at 8 B. What is wrong with
  //    this? Hint: what could AdamW send in bf16? Answer: Nothing keeps AdamW from doing the same; then it is at 4 B,
  //    and Muon sends 1.5 times as much. Weights in bf16 lose nothing where float32 masters are kept, so most do that:
  //    6 B and 8 B, a ratio of 1.33. Gradients that are rounded before they are summed lose something in each step,
  //    whoever the optimizer is. The bound of 1.25 holds for 4 B of each, and the less AdamW sends, the more the update
  //    counts beside it.
  return code;
}
