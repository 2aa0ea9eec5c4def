#include <numeric>

#include "lesson_08_dp_shard.hpp"
#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"
#include "sim/exercise/exercise.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's reference, with other eyes: the same weights without decay, for what a wrong answer looks like.
Matrix without_decay(const Seat& seat, const DistMeta& meta) {
  const Parameter& parameter = lesson_08::kParameters[meta.parameter];
  const MuonSettings settings;
  Matrix w = lesson_08::weights_of(seat, meta.parameter);
  const Matrix orthogonal = lesson_08::orthogonal_of(seat, meta.parameter);
  for (Index i = 0; i < w.size(); ++i) w.flat()[i] -= update_scale(parameter.shape, settings) * orthogonal.flat()[i];
  return named_slice(parameter, w, seat.grid.tp(), seat.place.tp).matrix;
}

Task update_weights(UpdateWeights* yours) {
  Task task;
  task.grids = {Grid().dp(2).tp(2), Grid().tp(1)};
  // Every matrix of the lesson, this rank's TP slice of it, cut into two parts.
  task.prepare = [yours](Rank& rank) -> Answer {
    auto weights = std::make_shared<std::vector<NamedMatrix>>();
    std::vector<Flat> halves;
    for (std::size_t p = 0; p < lesson_08::kParameters.size(); ++p) {
      const Parameter& parameter = lesson_08::kParameters[p];
      const int number = static_cast<int>(p), tp = rank.grid.tp(), tp_rank = rank.place.tp;
      weights->push_back(named_slice(parameter, lesson_08::weights_of(rank, number), tp, tp_rank));
      const Flat orthogonal = named_slice(parameter, lesson_08::orthogonal_of(rank, number), tp, tp_rank).matrix.flat();
      const auto middle = orthogonal.begin() + static_cast<Index>(orthogonal.size()) / 3;
      halves.emplace_back(orthogonal.begin(), middle);
      halves.emplace_back(middle, orthogonal.end());
    }
    return [=] {
      const MuonSettings settings;
      for (std::size_t p = 0; p < weights->size(); ++p) {
        float* run = (*weights)[p].matrix.data();
        for (std::size_t half = 2 * p; half < 2 * p + 2; ++half) {
          yours(run, halves[half], lesson_08::kParameters[p].shape, settings.lr, settings.weight_decay, settings.rms);
          run += halves[half].size();
        }
      }
      return std::move(*weights);
    };
  };
  task.reference = lesson_08::new_weights;
  task.plan = [](const Seat& seat) { return Plan{seat.grid, seat.place, {}}; };
  task.looks = [](const Seat& seat) {
    std::vector<Look> looks;
    const Layout layout = lesson_08::plan(seat);
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      const Parameter& parameter = lesson_08::kParameters[meta.parameter];
      const Matrix old = lesson_08::weights_of(seat, meta.parameter);
      looks.push_back({"the old weights", named_slice(parameter, old, seat.grid.tp(), seat.place.tp).matrix});
      looks.push_back({"right but for the decay", without_decay(seat, meta)});
    }
    return looks;
  };
  return task;
}

const bool update_weights_added = add_exercise("lesson_08_dp_shard", "update_weights", update_weights);

}  // namespace
}  // namespace muonwalk::sim
