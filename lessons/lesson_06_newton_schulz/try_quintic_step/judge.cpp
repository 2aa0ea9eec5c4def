#include "lesson_06_newton_schulz.hpp"
#include "lessons/lesson_06_newton_schulz/try_quintic_step/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's matrix, divided by its norm.
Matrix first_x() {
  Matrix x = lesson_06::with_singular_values(lesson_06::far_apart());
  const double norm = frobenius_norm(x);
  for (float& value : x.flat()) value = static_cast<float>(value / norm);
  return x;
}

Task quintic_step(QuinticStep* yours) {
  Task task;
  task.grids = {Grid().tp(1)};
  // The five steps are counted together.
  task.prepare = [yours](Rank& rank) -> Answer {
    const Matrix x = first_x();
    return [=, &rank] {
      const Quintic quintic;
      lesson_06::Local local;
      local.orthogonal = yours(x, quintic.a, quintic.b, quintic.c);
      const Shape shape = {local.orthogonal.rows(), local.orthogonal.cols()};
      if (shape != Shape{x.rows(), x.cols()}) return answer("down", std::move(local.orthogonal));
      for (int step = 1; step < 5; ++step) {
        const Matrix before = std::move(local.orthogonal);
        local.orthogonal = yours(before, quintic.a, quintic.b, quintic.c);
      }
      // Near enough counts as equal, by the lesson's own check; what that needs is not the reader's.
      MemoryMeter uncounted;
      const MeterScope scope(uncounted);
      lesson_06::compare_with_formula(rank, local);
      return answer("down", std::move(local.compared));
    };
  };
  task.reference = [](const RankInfo& info) { return answer("down", lesson_06::formula(info)); };
  task.plan = [](const RankInfo&) {
    const Matrix x = lesson_06::with_singular_values(lesson_06::far_apart());
    Plan plan;
    plan.take(x.size(), "the step before, from the second one on");
    plan.take(x.size() + 2 * x.rows() * x.rows(), "the result, A and B");
    return plan;
  };
  task.looks = [](const RankInfo&) { return std::vector<Look>{{"what you were given, unchanged", first_x()}}; };
  return task;
}

const bool quintic_step_added = add_exercise("lesson_06_newton_schulz", "quintic_step", quintic_step);

}  // namespace
}  // namespace muonwalk::sim
