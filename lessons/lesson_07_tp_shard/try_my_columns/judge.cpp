#include <algorithm>

#include "lesson_07_tp_shard.hpp"
#include "lessons/lesson_07_tp_shard/try_my_columns/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's matrix that TP cuts by columns, orthogonal; and the rank's slice of it as the lesson's reference has it.
std::size_t cut_by_columns() {
  const auto found = std::find_if(lesson_07::kParameters.begin(), lesson_07::kParameters.end(),
                                  [](const Parameter& p) { return p.tp_split_dim == SplitDim::columns; });
  return static_cast<std::size_t>(found - lesson_07::kParameters.begin());
}

Task my_columns(MyColumns* yours) {
  Task task;
  task.grids = {Grid().tp(2), Grid().tp(4), Grid().dp(2).tp(2), Grid().tp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const NamedMatrix whole = lesson_07::orthogonal_matrices(rank)[cut_by_columns()];
    const int tp = rank.grid.tp(), tp_rank = rank.place.tp;
    return [=] { return named(yours(whole.matrix, tp, tp_rank), whole.name); };
  };
  task.reference = [](const RankInfo& info) {
    return std::vector<NamedMatrix>{lesson_07::slices_of(info)[cut_by_columns()]};
  };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take(tp_shape(lesson_07::kParameters[cut_by_columns()], info.grid.tp()).size(), "the slice");
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    const NamedMatrix whole = lesson_07::orthogonal_matrices(info)[cut_by_columns()];
    // As many values, but as they lie in memory, which is row by row.
    const Index size = whole.matrix.size() / info.grid.tp();
    const auto first = whole.matrix.flat().begin() + info.place.tp * size;
    const Matrix rows(1, size, Flat(first, first + size));
    Matrix strided(whole.matrix.rows(), whole.matrix.cols() / info.grid.tp());
    for (Index i = 0; i < strided.rows(); ++i)
      for (Index j = 0; j < strided.cols(); ++j) strided(i, j) = whole.matrix(i, j * info.grid.tp() + info.place.tp);
    return std::vector<Look>{{"every tp-th column; the columns of a rank lie side by side", strided},
                             {"a piece of the memory of the whole: rows, where columns are asked for", rows},
                             {"the whole matrix", whole.matrix},
                             {"the whole matrix, transposed", whole.matrix.transposed()}};
  };
  return task;
}

const bool my_columns_added = add_exercise("lesson_07_tp_shard", "my_columns", my_columns);

}  // namespace
}  // namespace muonwalk::sim
