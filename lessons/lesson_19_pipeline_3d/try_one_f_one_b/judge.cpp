#include <memory>
#include <utility>

#include "lesson_19_pipeline_3d.hpp"
#include "lessons/lesson_19_pipeline_3d/try_one_f_one_b/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/train/pipeline/stage.hpp"

namespace muonwalk::sim {
namespace {

// A pipeline of toy stages, each with whole numbers that say which micro-batch they belong to: stage s adds s + 1 to
// what comes in, and doubles the gradient that comes back.
constexpr Index kElements = 64;
int micro_batches_of(const Grid& grid) { return grid.pp() == 3 ? 1 : 6; }

Matrix first_activations(int micro_batch) {
  Matrix x(1, kElements);
  for (Index i = 0; i < kElements; ++i) x(0, i) = static_cast<float>(100 * micro_batch + i);
  return x;
}

// What one stage keeps: activations of micro-batches under way, and the sum of their products with gradients.
struct ToyStage {
  explicit ToyStage(Rank& rank)
      : pp(rank.pp()),
        stage(rank.place.pp),
        last(rank.grid.pp() - 1),
        kept(static_cast<std::size_t>(micro_batches_of(rank.grid))),
        sum(1, kElements),
        to_next(pp),
        to_previous(pp) {}

  void require(const char* move, int number) const {
    if (number < 0 || number >= static_cast<int>(kept.size()))
      throw std::out_of_range(
          fmt::format("{}({}) was called, but micro-batches are numbered from 0 to {}", move, number, kept.size() - 1));
  }

  void forward(int number) {
    require("forward", number);
    Matrix& x = kept[static_cast<std::size_t>(number)];
    x = stage == 0 ? first_activations(number) : received(pp, 1, kElements, stage - 1);
    if (stage == last) return;
    Matrix out = x;
    for (float& value : out.flat()) value += static_cast<float>(stage + 1);
    to_next.send(std::move(out), stage + 1);
  }

  void backward(int number) {
    require("backward", number);
    Matrix d(1, kElements);
    if (stage == last)
      for (float& value : d.flat()) value = static_cast<float>(number + 1);
    else
      pp.recv(d.data(), d.size(), stage + 1);
    Matrix& x = kept[static_cast<std::size_t>(number)];
    for (Index i = 0; i < x.size(); ++i) sum(0, i) += x(0, i) * d(0, i);
    x = Matrix();
    for (float& value : d.flat()) value *= 2;
    if (stage > 0) to_previous.send(std::move(d), stage - 1);
  }

  Communicator& pp;
  int stage, last;
  std::vector<Matrix> kept;
  Matrix sum;
  Outbox to_next, to_previous;
};

std::vector<NamedMatrix> sum_of(const RankInfo& rank) {
  Matrix sum(1, kElements);
  for (int number = 0; number < micro_batches_of(rank.grid); ++number) {
    const Matrix first = first_activations(number);
    float d = static_cast<float>(number + 1), added = 0;
    for (int s = rank.grid.pp() - 1; s > rank.place.pp; --s) d *= 2;
    for (int s = 0; s < rank.place.pp; ++s) added += static_cast<float>(s + 1);
    for (Index i = 0; i < kElements; ++i) sum(0, i) += (first(0, i) + added) * d;
  }
  return named(sum, "the stage's gradient");
}

// What the toy stage takes, sends and gives back, move by move.
Plan toy_plan(const RankInfo& rank) {
  Plan plan{rank.grid, rank.place, {}};
  const int stage = rank.place.pp, last = rank.grid.pp() - 1;
  bool to_next = false, to_previous = false;
  const auto message = [&](CollectiveKind kind, int peer) {
    const Index sent = kind == CollectiveKind::send ? kElements : 0,
                came = kind == CollectiveKind::recv ? kElements : 0;
    plan.operations.push_back(Call{"pp", kind, ElementType::float32, sent, came, peer});
  };
  const auto wait = [&](bool& under_way, int peer) {
    if (under_way) message(CollectiveKind::wait, peer);
    if (under_way) plan.give_back(kElements, "message");
    under_way = false;
  };
  const int all = micro_batches_of(rank.grid);
  for (const PipelineMove move : pipeline_moves(PipelineSchedule::one_f_one_b, last + 1, stage, all)) {
    const bool forward = move.kind == PipelineMove::Kind::forward;
    plan.take(kElements, forward ? "activations" : "gradient");
    const int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
    if (0 <= from && from <= last) message(CollectiveKind::recv, from);
    if (!forward) plan.give_back(kElements, "activations");
    if (to < 0 || to > last) {
      if (!forward) plan.give_back(kElements, "gradient");
      continue;
    }
    if (forward) plan.take(kElements, "message");
    bool& under_way = forward ? to_next : to_previous;
    wait(under_way, to);
    message(CollectiveKind::send, to);
    under_way = true;
  }
  wait(to_next, stage + 1);
  wait(to_previous, stage - 1);
  return plan;
}

Task one_f_one_b(OneFOneB* yours) {
  Task task;
  task.grids = {Grid().pp(4), Grid().dp(2).pp(2), Grid().pp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const auto toy = std::make_shared<ToyStage>(rank);
    return [yours, toy, &rank] {
      yours(
          rank.grid.pp(), rank.place.pp, micro_batches_of(rank.grid), [&](int i) { toy->forward(i); },
          [&](int i) { toy->backward(i); });
      toy->to_next.wait();
      toy->to_previous.wait();
      return named(std::move(toy->sum), "the stage's gradient");
    };
  };
  task.reference = sum_of;
  task.plan = toy_plan;
  return task;
}

const bool one_f_one_b_added = add_exercise("lesson_19_pipeline_3d", "one_f_one_b", one_f_one_b);

}  // namespace
}  // namespace muonwalk::sim
