// # Lesson 05 · TP gather
//
// Newton–Schulz multiplies a matrix with its own transpose, so it needs all of it. Tensor parallelism (TP) has cut the
// matrix: every rank of a TP group holds an equal share of its rows, or of its columns. This lesson tapes the cut boxes
// together again.
//
// You need to know what an all-gather does (lesson 02) and how the DP gather left each rank with its whole TP slices
// (lesson 04).

#include "sim/classroom/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/slicing.hpp"
#include "src/layout/small_layer.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
// The ranks of a TP group send their slices to each other, and every one of them lays the slices side by side in rank
// order.
//
//     split by rows                        split by columns
//     tp 0  ██████      ██████             tp 0  ███···      ██████
//           ██████  →   ██████                   ███···  →   ██████
//     tp 1  ██████      ██████             tp 1  ···███
//           ██████      ██████                   ···███
//
// An all-gather leaves the slices one after the other in memory. A matrix is stored row by row, so slices of *rows*
// already lie as the whole matrix does, and nothing is left to do. Slices of *columns* do not. Here is the memory of
// `down`, 3 × 8: a digit is an element, namely the TP rank that it came from, and | is where a row should end.
//
//     as it arrives        00000000|00001111|11111111
//     what a matrix needs  00001111|00001111|00001111
//
// The first row of the matrix is made of the first row of every slice, and these lie far apart. They have to be copied
// to where they belong.

// Two matrices of the small layer ([small_layer]), one of each kind.
const Parameter kByRows = small_layer()[1];     // up, 8 × 3
const Parameter kByColumns = small_layer()[3];  // down, 3 × 8

// What one rank holds in this lesson. With tp = 2 the slices are 4 × 3 and 3 × 4.
struct Local {
  Matrix rows_slice;     // of up: rows / tp × cols
  Matrix columns_slice;  // of down: rows × cols / tp
  Flat gathered;         // the column slices as they arrive, one after the other
  Matrix rows_whole;     // rows × cols, after the gather
  Matrix columns_whole;  // rows × cols, after the gather and the copy
};

// ## The reference
//
// Whoever holds a whole matrix has to hold exactly these numbers, in plain loops: 100 times the parameter's number,
// plus 10 · row + column. So 416 belongs in row 1, column 6 of the fourth parameter.
Matrix whole_matrix(const Parameter& parameter, int number) {
  Matrix whole(parameter.shape.rows, parameter.shape.cols);
  for (Index i = 0; i < whole.rows(); ++i)
    for (Index j = 0; j < whole.cols(); ++j) whole(i, j) = static_cast<float>(100 * number + 10 * i + j);
  return whole;
}
Matrix whole_up(const RankInfo&) { return whole_matrix(kByRows, 2); }
Matrix whole_down(const RankInfo&) { return whole_matrix(kByColumns, 4); }

// A layout in which TP does not divide a dimension is refused before any rank starts.
Layout plan(const RankInfo& rank) { return plan_layout({kByRows, kByColumns}, rank.grid); }

// ## The steps
//
// Start with my slices of the two matrices, as the DP gather has left them. The range in brackets says which rows or
// columns of the whole a slice is, and the bar at the end of the line where in the whole they lie. The marked element
// is in column 6, so TP rank 1 has it. (There is one TP group in this lesson. In the grid of lessons 03 and 04 there
// are two, one per DP coordinate, and both do this with the same numbers.)
void start(Rank& rank, Local& local) {
  const int tp = rank.grid.tp();
  local.rows_slice = tp_slice(whole_up(rank), SplitDim::rows, tp, rank.place.tp);
  local.columns_slice = tp_slice(whole_down(rank), SplitDim::columns, tp, rank.place.tp);
  rank.show("up", local.rows_slice).rows(tp_range(kByRows, tp, rank.place.tp), kByRows.shape.rows);
  rank.show("down", local.columns_slice).columns(tp_range(kByColumns, tp, rank.place.tp), kByColumns.shape.cols);
  const ElementAddress marked = marked_element(plan(rank));
  if (marked.in_slice_of(rank.place))
    rank.say(marked_text(local.columns_slice, marked.slice_row, marked.slice_col, "my slice"));
}

// Gather the slices of rows. What arrives is the whole matrix already; it only has to be viewed as one. In PyTorch:
//
//     up = torch.empty(8, 3)
//     dist.all_gather_into_tensor(up, up_slice, group=tp_group)
//
// The planted bug `stale_slice` has rank tp 0 send its slice before it computed it. Everything arrives in the right
// shape and order, and the first rows of the matrix are zeros on every rank.
void gather_rows(Rank& rank, Local& local) {
  const Shape whole = kByRows.shape;
  if (rank.bug("stale_slice") && rank.place.tp == 0) local.rows_slice = Matrix(local.rows_slice.rows(), whole.cols);
  local.rows_whole = Matrix(whole.rows, whole.cols, rank.tp().all_gather(local.rows_slice.flat()));
  rank.show("up", local.rows_whole).whole();
}

// What lies in memory if it is read as `down`: the first row, and the TP rank from which each element came, as in the
// drawing above. The numbers tell: with 2 ranks, columns 0 to 3 came from TP rank 0.
void say_memory(Rank& rank, const Flat& memory) {
  const Index cols = kByColumns.shape.cols;
  std::string came_from;
  for (Index at = 0; at < Index(memory.size()); ++at) {
    const int column = int(memory[at]) % 10;
    came_from += (at > 0 && at % cols == 0 ? "|" : "") + std::to_string(column * rank.grid.tp() / int(cols));
  }
  rank.say("its first row   " + numbers_text(memory.data(), std::size_t(cols), 40));
  rank.say("came from tp    " + came_from);
}

// Gather the slices of columns. They arrive one after the other: after 403, the end of the first row of the first
// slice, comes 410 and not 404.
void gather_columns(Rank& rank, Local& local) {
  local.gathered = rank.tp().all_gather(local.columns_slice.flat());
  rank.show("down, as it arrived", local.gathered).whole();
  say_memory(rank, local.gathered);
  const ElementAddress marked = marked_element(plan(rank));
  const Index before = local.columns_slice.size() * marked.tp_rank;  // elements in the slices of lower ranks
  rank.say(marked_text(local.gathered, before + marked.slice_element, "what arrived"));
}

// Lay the slices of columns side by side. This is the copy that columns need and rows do not. In PyTorch, gather and
// copy are three lines (`ns_input` is the proof of concept's name for the slice before them and the matrix after them):
//
//     slices = [torch.empty_like(ns_input) for _ in range(tp_size)]
//     dist.all_gather(slices, ns_input, group=tp_group)
//     ns_input = torch.cat(slices, dim=dist_meta.tp_split_dim)
//
// `cat` is right for rows, too, where it copies what need not be copied. (From the next lesson on, `tp_gather` in
// src/optim/steps.hpp does both, the gather and the copy where there is one to do.)
//
// The planted bug `forgotten_copy` takes what arrived for the matrix: right size, right shape, wrong order. The planted
// bug `wrong_dimension` joins the slices along the other dimension.
void join_columns(Rank& rank, Local& local) {
  const Shape slice = {local.columns_slice.rows(), local.columns_slice.cols()}, whole = kByColumns.shape;
  if (rank.bug("forgotten_copy"))
    local.columns_whole = Matrix(whole.rows, whole.cols, local.gathered);
  else if (rank.bug("wrong_dimension"))
    local.columns_whole = join_slices(local.gathered, slice, SplitDim::rows, rank.grid.tp());
  else
    local.columns_whole = join_slices(local.gathered, slice, SplitDim::columns, rank.grid.tp());
  rank.show("down", local.columns_whole).whole();
  say_memory(rank, local.columns_whole.flat());
  const ElementAddress marked = marked_element(plan(rank));
  rank.say(marked_text(local.columns_whole, marked.row, marked.col, "the whole matrix"));
}

// ## The cost
//
// Each gather sends a rank's slice to each of the tp − 1 others. At its peak a rank holds everything in `Local`: two
// slices, the column slices as they arrived, and two whole matrices.
Prediction predict(const RankInfo& rank) {
  const int tp = rank.grid.tp();
  Prediction prediction;
  Index held = kByColumns.shape.size();
  for (const Parameter& parameter : {kByRows, kByColumns}) {
    const Index whole = parameter.shape.size();
    prediction.ledger.add("tp", CollectiveKind::all_gather, ElementType::float32, 1,
                          all_gather_traffic(tp, whole / tp, ElementType::float32));
    held += whole / tp + whole;
  }
  prediction.peak_elements = held;
  return prediction;
}

// ## Why no bucket?
//
// The DP gather of lesson 04 moves a *bucket*, many parameters in one message, because a DP shard is a range of the
// flat buffer that knows nothing of matrices. A TP slice is a piece of one matrix. Newton–Schulz can begin as soon as
// one matrix is whole and needs no other, so gathering matrix by matrix keeps a single whole matrix in memory, where a
// bucket would keep tp times its own size; and columns have to be copied matrix by matrix in any case.
//
// That is one half. The other is the wires. TP talks in every layer of every forward and backward pass, so its groups
// are put where the links are fast: inside a node. (This is why tp varies fastest in the grid of lesson 01.) DP talks
// once per step, so it is DP that spans the nodes, over a network on which bytes travel more slowly and a message takes
// longer to get going. A message per matrix is affordable inside a node and dear between nodes: DP has to send few
// messages, and large ones. That is what a bucket is for.
int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_05_tp_gather";
  info.title = "TP gather";
  info.fp32_only = true;
  info.question = "how does a rank get back the whole matrix, and why does this gather need no bucket?";
  info.bugs = {{"stale_slice", "rank tp 0 sends its slice before it computed it"},
               {"forgotten_copy", "slices of columns are taken for the matrix as they arrive"},
               {"wrong_dimension", "slices of columns are joined as if they were rows"}};
  info.also_try = {"--tp 4", "--dp 2 --tp 2", "--verbose 2"};

  Lesson<Local> lesson(info, Grid().tp(2), argc, argv);
  lesson.require(plan);
  lesson.say("a bar: where in the whole matrix; ★ marks one element, whose 416 says parameter 4, row 1, column 6\n");
  lesson.step("start from my TP slices", start);
  lesson.step("TP gather of rows: all_gather over tp", gather_rows);
  lesson.step("TP gather of columns: all_gather over tp", gather_columns);
  lesson.step("lay the columns side by side: a copy, nothing travels", join_columns);
  lesson.check("up, split by rows", &Local::rows_whole, whole_up);
  lesson.check("down, split by columns", &Local::columns_whole, whole_down);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With `--tp 8`, how many elements does one message carry, and how many messages does a rank send? Predict, then
  //    look at the table. Hint: a slice is an eighth of 24 elements, and the table adds up two gathers. Answer: 3
  //    elements, 12 bytes. Each gather sends them to 7 others, so there are 14 messages, and 168 bytes.
  // 2. Suppose that the ranks of the group are not numbered in the order of the slices. What does `join_slices` make
  //    of them? Hint: nothing in a slice says which columns it holds. Answer: a matrix of the right shape, with whole
  //    slices exchanged: with tp 2, columns 4 to 7 would stand before 0 to 3, and all 24 elements would be wrong. No
  //    error is raised. That is why a slice's columns follow from the rank's TP coordinate alone, on every rank.
  // 3. Send both matrices in one message: put both slices into one `Flat`, gather that, and copy both matrices out of
  //    what arrives. What becomes of messages, bytes and peak? Hint: both slices have to lie in one array before they
  //    can be sent, and all that arrives has to lie somewhere before it is sorted. Answer: one message instead of two,
  //    and as many bytes. If nothing is freed in between, the peak rises from 96 elements to 144: 24 for the slices in
  //    one array, and another 24 since both matrices arrive before they are sorted. And now rows need a copy as well.
  return lesson.answer(
      "every rank of a TP group sends its slice to all others and lays the slices side by side along the split "
      "dimension; slices of rows already lie as they should, slices of columns need a copy; and since Newton–Schulz "
      "(lesson 06) can start with the first matrix that is whole, and TP talks over the fast links inside a node, one "
      "matrix at a time costs the least memory and needs no bucket.");
}
