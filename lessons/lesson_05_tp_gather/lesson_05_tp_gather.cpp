// # Lesson 05 · TP gather
//
// Newton–Schulz multiplies a matrix with its own transpose, so it needs all of it. Tensor parallelism (TP) has cut the
// matrix: every rank of a TP group holds an equal run of its rows, or of its columns. This lesson puts it together
// again.
//
// You need to know what an all-gather does (\ref lesson_02_collectives) and how the DP gather left each rank with its
// whole TP slice (\ref lesson_04_dp_gather).

#include "sim/cluster/lesson.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/layout/slicing.hpp"

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
// already lie as the whole matrix does, and nothing is left to do. Slices of *columns* do not: the first row of the
// matrix is made of the first row of every slice, and these lie far apart. They have to be copied into place.

constexpr Shape kShape = {8, 8};  // both matrices; any tp that divides 8 will do

// What one rank holds in this lesson. With tp = 2 a slice is 4 × 8 or 8 × 4.
struct Local {
  Matrix rows_slice;     // rows / tp × cols
  Matrix columns_slice;  // rows × cols / tp
  Flat gathered;         // the column slices as they arrive, one after the other
  Matrix rows_whole;     // rows × cols, after the gather
  Matrix columns_whole;  // rows × cols, after the gather and the copy
};

// ## The reference
//
// In plain loops: element (i, j) of a matrix is 10 · i + j, so that a value says where it belongs. Whoever holds the
// whole matrix has to hold exactly this.
Matrix whole_matrix(const Seat&) {
  Matrix whole(kShape.rows, kShape.cols);
  for (Index i = 0; i < kShape.rows; ++i)
    for (Index j = 0; j < kShape.cols; ++j) whole(i, j) = static_cast<float>(10 * i + j);
  return whole;
}

const Parameter kByRows = {"w_rows", kShape, SplitDim::rows};
const Parameter kByColumns = {"w_columns", kShape, SplitDim::columns};

// A layout in which TP does not divide a dimension is refused before any rank starts.
void plan(const Seat& seat) {
  tp_shape(kByRows, seat.grid.tp());
  tp_shape(kByColumns, seat.grid.tp());
}

// ## The steps
//
// Cut my slices out of the two matrices, one along its rows and one along its columns. The range in brackets says which
// rows or columns of the whole a slice is, and the bar at the end of the line where in the whole they lie.
void start(Rank& rank, Local& local) {
  const int tp = rank.grid.tp();
  const Matrix whole = whole_matrix(rank);
  local.rows_slice = tp_slice(whole, SplitDim::rows, tp, rank.place.tp);
  local.columns_slice = tp_slice(whole, SplitDim::columns, tp, rank.place.tp);
  rank.show("w_rows", local.rows_slice).rows(tp_range(kByRows, tp, rank.place.tp), kShape.rows);
  rank.show("w_columns", local.columns_slice).columns(tp_range(kByColumns, tp, rank.place.tp), kShape.cols);
}

// Gather the slices of rows. What arrives is the whole matrix already; it only has to be viewed as one.
//
// The planted bug `stale_slice` has rank tp 0 send its slice before it computed it. Everything arrives in the right
// shape and order, and the first rows of the matrix are zeros on every rank.
void gather_rows(Rank& rank, Local& local) {
  if (rank.bug("stale_slice") && rank.place.tp == 0) local.rows_slice = Matrix(local.rows_slice.rows(), kShape.cols);
  local.rows_whole = Matrix(kShape.rows, kShape.cols, rank.tp().all_gather(local.rows_slice.flat()));
  rank.show("w_rows", local.rows_whole).whole();
}

// Gather the slices of columns. They arrive one after the other: in `gathered`, the whole first slice comes before
// anything of the second. With --verbose 2 the numbers show it: after 0 1 2 3 comes 10, not 4.
void gather_columns(Rank& rank, Local& local) {
  local.gathered = rank.tp().all_gather(local.columns_slice.flat());
  rank.show("w_columns, as it arrived", local.gathered).whole();
}

// Lay the slices of columns side by side. This is the copy that columns need and rows do not. (From the next lesson on,
// `tp_gather` in src/optim/steps.hpp does both, the gather and the copy where there is one to do.)
//
// The planted bug `forgotten_copy` takes the run of numbers for the matrix: right size, right shape, wrong places. The
// planted bug `wrong_dimension` joins the slices along the other dimension.
void join_columns(Rank& rank, Local& local) {
  const Shape slice = {local.columns_slice.rows(), local.columns_slice.cols()};
  if (rank.bug("forgotten_copy"))
    local.columns_whole = Matrix(kShape.rows, kShape.cols, local.gathered);
  else if (rank.bug("wrong_dimension"))
    local.columns_whole = join_slices(local.gathered, slice, SplitDim::rows, rank.grid.tp());
  else
    local.columns_whole = join_slices(local.gathered, slice, SplitDim::columns, rank.grid.tp());
  rank.show("w_columns", local.columns_whole).whole();
}

// ## The cost
//
// Each gather sends a rank's slice to each of the tp − 1 others. At its peak a rank holds everything in `Local`: two
// slices, the run as it arrived, and two whole matrices.
Prediction predict(const Seat& seat) {
  const int tp = seat.grid.tp();
  const Index slice = kShape.size() / tp;
  Prediction prediction;
  for (int gather = 0; gather < 2; ++gather)
    prediction.ledger.add("tp", CollectiveKind::all_gather, ElementType::float32, 1,
                          all_gather_traffic(tp, slice, ElementType::float32));
  prediction.peak_elements = 2 * slice + 3 * kShape.size();
  return prediction;
}

// ## Why no bucket?
//
// The DP gather of lesson 04 moves a *bucket*, many parameters in one message, because a DP shard is a run of the flat
// buffer that knows nothing of matrices. A TP slice is a piece of one matrix. Newton–Schulz can begin as soon as one
// matrix is whole and needs no other, so gathering matrix by matrix keeps a single whole matrix in memory, where a
// bucket would keep tp times its own size; and columns have to be copied matrix by matrix in any case.
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
  lesson.step("start from my TP slices", start);
  lesson.step("TP gather of rows: all_gather over tp", gather_rows);
  lesson.step("TP gather of columns: all_gather over tp", gather_columns);
  lesson.step("lay the columns side by side: a copy, nothing travels", join_columns);
  lesson.check("the matrix split by rows", &Local::rows_whole, whole_matrix);
  lesson.check("the matrix split by columns", &Local::columns_whole, whole_matrix);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. With `--tp 8` and columns, how many elements does one message carry, and how many messages does a rank send?
  //    Predict, then look at the table. Hint: a slice is an eighth of 64 elements, and the cost table adds up two
  //    gathers.
  // 2. Where would `join_slices` go wrong if the ranks of the group were numbered in another order? Hint: nothing in a
  //    slice says which columns it holds.
  // 3. Gather both matrices in one call. What does the table of costs gain, and what does the peak lose? Hint: both
  //    slices have to lie in one array before they can be sent.
  return lesson.answer(
      "every rank of a TP group sends its slice to all others and lays the slices side by side along the split "
      "dimension; slices of rows already lie in place, slices of columns need a copy; and since Newton–Schulz can "
      "start with the first matrix that is whole, gathering one matrix at a time costs the least memory and needs no "
      "bucket.");
}
