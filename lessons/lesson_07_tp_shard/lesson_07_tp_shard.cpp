// # Lesson 07 · TP shard
//
// Every rank of a tensor-parallel (TP) group now has the whole orthogonal matrix, and needs no more than its slice of
// it, because that is what it has of the weights. This lesson is lesson 05 backward, and it is the shortest of the
// journey: the boxes are cut again, and each rank keeps its own.
//
// You need to know why every rank of the group did all of Newton–Schulz (lesson 06).

#include <algorithm>
#include <utility>

#include "sim/classroom/lesson.hpp"
#include "src/layout/small_layer.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// A gather has to move every slice to every rank. Its opposite moves nothing: whoever has the whole has every slice of
// it.
//
//     split by rows                          split by columns
//     tp 0  ██████     tp 0  ██████          tp 0  ██████     tp 0  ███···
//           ██████  →        ██████                ██████  →        ███···
//           ██████           ······                ██████           ███···
//           ██████           ······                ██████           ███···
//     tp 1  ██████     tp 1  ······          tp 1  ██████     tp 1  ···███
//           ██████  →        ······                ██████  →        ···███
//           ██████           ██████                ██████           ···███
//           ██████           ██████                ██████           ···███
//
// A slice of rows is one contiguous range of the matrix's memory, a slice of columns a piece of every row. A matrix
// that TP does not cut at all is kept whole by every rank.
//
// This only works because the ranks' matrices are *the same*: the slices are cut from different copies, and together
// they have to be one matrix again. Nobody checks that in training. Here we do, before anything is cut: the first check
// comes between the two steps.

// The four matrices of [small_layer], and one beside them that TP leaves whole: the router of a mixture of experts.
std::vector<Parameter> with_router(std::vector<Parameter> parameters) {
  parameters.push_back({"router", {4, 3}, SplitDim::none});
  return parameters;
}
const std::vector<Parameter> kParameters = with_router(small_layer());

// What one rank holds in this lesson.
struct Local {
  std::vector<NamedMatrix> wholes;  // the orthogonal matrices, rows × cols each
  std::vector<NamedMatrix> slices;  // what TP leaves this rank of them
};

// A layout in which TP does not divide a dimension is refused before any rank starts.
Layout plan(const RankInfo& rank) { return plan_layout(kParameters, rank.grid); }

// ## The reference
//
// The serial program has one copy of every matrix: random numbers, orthogonalized once. ([random_matrix] gives everyone
// the same numbers for the same seed, so nobody has to send them.)
std::vector<NamedMatrix> orthogonal_matrices(const RankInfo& rank) {
  NewtonSchulzSettings settings;
  settings.precision = rank.precision;
  settings.products = rank.products;
  std::vector<NamedMatrix> wholes;
  for (const Parameter& parameter : kParameters) {
    const RandomTensor numbers = {rank.seed, 7 + wholes.size()};
    const Matrix update = random_matrix(numbers, parameter.shape.rows, parameter.shape.cols);
    wholes.push_back({parameter.name, newton_schulz(update, settings)});
  }
  return wholes;
}

// And of each it takes the part that a rank has, element by element: an equal share of the rows, of the columns, or
// all.
std::vector<NamedMatrix> slices_of(const RankInfo& rank) {
  std::vector<NamedMatrix> slices = orthogonal_matrices(rank);
  for (std::size_t p = 0; p < slices.size(); ++p)
    slices[p] = named_slice(kParameters[p], slices[p].matrix, rank.grid.tp(), rank.place.tp);
  return slices;
}

// ## The steps
//
// Orthogonalize the whole matrices, as in lesson 06: every rank for itself. What Newton–Schulz needs in the meantime
// was counted there, so we start to count anew. The marked element is at home in row 1, column 6; what was 416 while we
// watched it move is now some number below 1, the same on all ranks.
//
// The planted bug `drifted_rank` leaves a step of Newton–Schulz out on one rank. Each slice alone looks right.
void orthogonalize_wholes(Rank& rank, Local& local) {
  MuonSettings settings = muon_settings(rank.precision, rank.threads, rank.products);
  if (rank.bug("drifted_rank") && rank.place.tp == 1) settings.newton_schulz.steps = 4;
  for (const Parameter& parameter : kParameters) {
    const RandomTensor numbers = {rank.seed, 7 + local.wholes.size()};
    const Matrix update = random_matrix(numbers, parameter.shape.rows, parameter.shape.cols);
    local.wholes.push_back({parameter.name, orthogonalize(update, settings, parameter.name)});
    rank.show(parameter.name, local.wholes.back().matrix).whole();
    const ElementAddress marked = marked_element(plan(rank));
    if (parameter.name == marked.parameter)
      rank.say(marked_text(local.wholes.back().matrix, marked.row, marked.col, "the whole matrix"));
  }
  rank.memory().restart_peak();
}

// Cut my slice out of each matrix, and let go of the whole as soon as that is done. In PyTorch it is one line (`update`
// is the proof of concept's name for the matrix before it and the slice after it):
//
//     update = update.chunk(tp_size, dim=dist_meta.tp_split_dim)[tp_rank]
//
// You should see the marked element on TP rank 1, under the address that it had before the TP gather: row 1, column 2
// of the slice.
//
// Three planted bugs. `contiguous_columns` cuts a slice of columns out of memory as if it were one of rows: the right
// shape, and the mirror image of the forgotten copy in lesson 05. `wrong_coordinate` takes the slice with the number of
// its DP coordinate. `broadcast` does not trust the others: tp 0 sends everybody its matrix first. The bits are right,
// and the cost check fails.
void shard(Rank& rank, Local& local) {
  const int tp = rank.grid.tp();
  const int mine = rank.bug("wrong_coordinate") ? rank.place.dp : rank.place.tp;
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    const Parameter& parameter = kParameters[p];
    Matrix& whole = local.wholes[p].matrix;
    if (rank.bug("broadcast")) rank.tp().broadcast(whole.data(), whole.size(), 0);
    Matrix slice = tp_shard(whole, parameter.tp_split_dim, tp, mine);
    if (rank.bug("contiguous_columns") && parameter.tp_split_dim == SplitDim::columns)
      std::copy_n(whole.data() + mine * slice.size(), slice.size(), slice.data());
    whole = Matrix();

    // The range says which rows or columns of the whole a slice is, and the bar where in the whole they lie.
    const Range part = tp_range(parameter, tp, rank.place.tp);
    Shown& shown = rank.show(parameter.name, slice);
    if (parameter.tp_split_dim == SplitDim::rows) shown.rows(part, parameter.shape.rows);
    if (parameter.tp_split_dim == SplitDim::columns) shown.columns(part, parameter.shape.cols);
    if (parameter.tp_split_dim == SplitDim::none) shown.whole();
    const ElementAddress marked = marked_element(plan(rank));
    if (parameter.name == marked.parameter && marked.in_slice_of(rank.place))
      rank.say(marked_text(slice, marked.slice_row, marked.slice_col, "my slice"));
    local.slices.push_back({parameter.name, std::move(slice)});
  }
}

// ## The cost
//
// No byte is sent. A rank holds the matrices that are still whole, the slices that it has cut, and, for a moment, the
// one that it is cutting beside the whole that it comes from.
Prediction predict(const RankInfo& rank) {
  Index wholes = 0;
  for (const Parameter& parameter : kParameters) wholes += parameter.shape.size();
  Prediction prediction;
  Index slices = 0;
  for (const Parameter& parameter : kParameters) {
    slices += tp_shape(parameter, rank.grid.tp()).size();
    prediction.peak_elements = std::max(prediction.peak_elements, wholes + slices);
    wholes -= parameter.shape.size();
  }
  return prediction;
}

// ## Why does nothing have to travel?
//
// Because the arithmetic was done tp times. The other way, one rank of the group orthogonalizes and sends each of the
// others its slice, costs the arithmetic once and a message per matrix and rank, and all the others wait. (With more
// matrices than ranks, each rank can orthogonalize some of them; some optimizers do that.)
//
// What it takes is that equal inputs give equal bits on every rank of the group. That is more than "the same function".
// The order of every sum must not depend on how many threads a rank has or on where in memory the matrix lies; the
// ranks must agree on the precision and on the number of steps. Where they do not, the slices belong to slightly
// different matrices, and no error will ever say so.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_07_tp_shard";
  info.title = "TP shard";
  info.question = "how does a rank get its slice of the orthogonal matrix, and why does nothing have to travel?";
  info.bugs = {{"drifted_rank", "rank tp 1 did one step of Newton–Schulz less than the others"},
               {"contiguous_columns", "a slice of columns is cut out of memory as if it were one of rows"},
               {"wrong_coordinate", "a rank takes the slice with the number of its DP coordinate"},
               {"broadcast", "rank tp 0 sends its matrix to the others, which have it already"}};
  info.also_try = {"--tp 4", "--dp 2 --tp 2", "--precision bf16", "--verbose 2"};

  Lesson<Local> lesson(info, Grid().tp(2), argc, argv);
  lesson.require(plan);
  lesson.say(
      "a bar: where in the whole matrix; ★ is not 416 here, but of a random update, made orthogonal;\n"
      "router: a matrix that TP doesn't cut\n");
  lesson.step("orthogonalize the whole matrices, on every rank", orthogonalize_wholes);
  lesson.check("the whole matrices", &Local::wholes, orthogonal_matrices);
  lesson.step("TP shard: every rank cuts its own slice, nothing travels", shard);
  lesson.check("the slices", &Local::slices, slices_of);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. How many bytes would rank tp 1 receive if tp 0 sent it no more than its slices? And how many with
  //    `--bug broadcast`? Hint: of `router`, everybody needs all. Answer: 192 and 336. The slices of the four matrices
  //    have 6 + 12 + 6 + 12 elements, the router 12; whole, they have 84. Cutting one's own slice costs none.
  // 2. With `--bug wrong_coordinate --dp 2 --tp 2`, which ranks have the right slices all the same? Hint: the bug takes
  //    one coordinate for the other. Answer: ranks 0 and 3, whose two coordinates are equal. Without
  //    `--dp 2` every DP coordinate is 0, and only tp 0 is right. (The router is right everywhere.)
  // 3. With `--bug drifted_rank`, how many elements does the second check find different, and on whom? Guess before
  //    you look. Hint: what is different was different before the cut, and is on one rank alone. Answer: all 48 of rank
  //    1, and none of rank 0: a step of Newton–Schulz changes every element. Slice by slice, nothing looks wrong.
  return lesson.answer(
      "every rank of a TP group computed the same bits, so each cuts the rows or columns that it needs out of its "
      "own copy, and keeps what TP does not cut; nothing travels, because the arithmetic was paid for tp times.");
}
