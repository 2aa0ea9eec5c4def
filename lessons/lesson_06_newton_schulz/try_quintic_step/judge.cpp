#include <cmath>
#include <tuple>

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

// What the first step may have come to: the right coefficients first, and then those of mistakes.
struct Variant {
  const char* what;
  float a, b, c;
};
std::vector<Variant> variants() {
  const auto [a, b, c] = std::tuple(Quintic().a, Quintic().b, Quintic().c);
  return {{"", a, b, c},
          {"B X alone, without a X", 0, b, c},
          {"a X − B X; B X is to be added", a, -b, -c},
          {"right but for b and c, which are exchanged", a, c, b},
          {"a X + b A X: the term c A A is missing", a, b, 0},
          {"a X + (b A + A A) X: the coefficient c is missing", a, b, 1},
          {"a X + c A A X: the term b A is missing", a, 0, c},
          {"a X alone", a, 0, 0}};
}

Matrix first_step(const Variant& v) {
  const Matrix x = first_x();
  const Index m = x.rows();
  const auto sum = [](Index count, const auto& term) {
    double total = 0;
    for (Index k = 0; k < count; ++k) total += double(term(k));
    return total;
  };
  Matrix square(m, m), fourth(m, m), next(m, x.cols());
  for (Index at = 0; at < m * m; ++at)
    square.data()[at] = float(sum(x.cols(), [&](Index k) { return double(x(at / m, k)) * x(at % m, k); }));
  for (Index at = 0; at < m * m; ++at)
    fourth.data()[at] = float(sum(m, [&](Index k) { return double(square(at / m, k)) * square(k, at % m); }));
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < x.cols(); ++j)
      next(i, j) = float(double(v.a) * x(i, j) + sum(m, [&](Index k) {
                           return (double(v.b) * square(i, k) + double(v.c) * fourth(i, k)) * x(k, j);
                         }));
  return next;
}

// What is near one of these counts as equal to it.
Matrix snapped(const Matrix& result) {
  for (const Variant& variant : variants()) {
    const Matrix near = first_step(variant);
    for (const bool turned : {false, true}) {
      const Matrix there = turned ? near.transposed() : near;
      bool equal = there.rows() == result.rows() && there.cols() == result.cols();
      for (Index i = 0; equal && i < near.size(); ++i)
        equal = std::fabs(double(result.data()[i]) - there.data()[i]) <= 1e-5;
      if (equal) return there;
    }
  }
  return result;
}

constexpr const char* kFirst = "down after one step";

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
      std::vector<NamedMatrix> all;
      {
        MemoryMeter uncounted;
        const MeterScope scope(uncounted);
        all = named(snapped(local.orthogonal), kFirst);
      }
      if (shape != Shape{x.rows(), x.cols()}) return all;
      for (int step = 1; step < 5; ++step) {
        const Matrix before = std::move(local.orthogonal);
        local.orthogonal = yours(before, quintic.a, quintic.b, quintic.c);
      }
      // Near enough counts as equal, by the lesson's own check; what that needs is not the reader's.
      MemoryMeter uncounted;
      const MeterScope scope(uncounted);
      lesson_06::compare_with_formula(rank, local);
      all.push_back({"down", std::move(local.compared)});
      return all;
    };
  };
  task.reference = [](const RankInfo& info) {
    std::vector<NamedMatrix> all = named(first_step(variants()[0]), kFirst);
    all.push_back({"down", lesson_06::formula(info)});
    return all;
  };
  task.plan = [](const RankInfo&) {
    const Matrix x = lesson_06::with_singular_values(lesson_06::far_apart());
    Plan plan;
    plan.take(x.size(), "the step before, from the second one on");
    plan.take(x.size() + 2 * x.rows() * x.rows(), "the result, A and B");
    return plan;
  };
  task.looks = [](const RankInfo&) {
    std::vector<Look> looks = {{"what you were given, unchanged", first_x()}};
    for (const Variant& variant : variants())
      if (variant.what[0] != 0) looks.push_back({variant.what, first_step(variant)});
    return looks;
  };
  return task;
}

const bool quintic_step_added = add_exercise("lesson_06_newton_schulz", "quintic_step", quintic_step);

}  // namespace
}  // namespace muonwalk::sim
