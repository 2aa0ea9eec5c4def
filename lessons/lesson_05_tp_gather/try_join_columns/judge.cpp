#include "lesson_05_tp_gather.hpp"
#include "lessons/lesson_05_tp_gather/try_join_columns/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

Task join_columns(JoinColumns* yours) {
  Task task;
  task.grids = {Grid().tp(2), Grid().tp(4), Grid().dp(2).tp(2)};

  // The lesson's own steps, up to the copy.
  task.prepare = [yours](Rank& rank) -> Answer {
    auto local = std::make_shared<lesson_05::Local>();
    lesson_05::start(rank, *local);
    lesson_05::gather_columns(rank, *local);
    const Shape slice = {local->columns_slice.rows(), local->columns_slice.cols()};
    const int tp = rank.grid.tp();
    return [=] { return named(yours(local->gathered, slice, tp), "down"); };
  };
  task.reference = [](const RankInfo& info) { return named(lesson_05::whole_down(info), "down"); };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take(lesson_05::whole_down(info).size(), "the whole matrix");
    return plan;
  };
  task.slices = [](const RankInfo& info) { return info.grid.tp(); };
  return task;
}

const bool join_columns_added = add_exercise("lesson_05_tp_gather", "join_columns", join_columns);

}  // namespace
}  // namespace muonwalk::sim
