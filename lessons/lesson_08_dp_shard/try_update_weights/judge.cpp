#include <numeric>

#include "lesson_08_dp_shard.hpp"
#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// Where the elements of a slice are cut in two.
Index middle_of(Index size) { return size / 3; }

// What wrong answers look like: without decay, or scaled by the number of weights in each part.
Matrix mistaken(const RankInfo& rank, const DistMeta& meta, bool decays, bool whole_shape) {
  const Parameter& parameter = lesson_08::kParameters[meta.parameter];
  const MuonSettings settings;
  const int tp = rank.grid.tp(), tp_rank = rank.place.tp;
  Matrix w = named_slice(parameter, lesson_08::weights_of(rank, meta.parameter), tp, tp_rank).matrix;
  const Matrix o = named_slice(parameter, lesson_08::orthogonal_of(rank, meta.parameter), tp, tp_rank).matrix;
  const Index middle = middle_of(w.size());
  for (Index i = 0; i < w.size(); ++i) {
    const Shape part = {1, i < middle ? middle : w.size() - middle};
    const float keep = decays ? 1.0f - settings.lr * settings.weight_decay : 1.0f;
    w.flat()[i] = w.flat()[i] * keep - update_scale(whole_shape ? parameter.shape : part, settings) * o.flat()[i];
  }
  return w;
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
      const auto middle = orthogonal.begin() + middle_of(static_cast<Index>(orthogonal.size()));
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
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    const Layout layout = lesson_08::plan(info);
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      const Parameter& parameter = lesson_08::kParameters[meta.parameter];
      const Matrix old = lesson_08::weights_of(info, meta.parameter);
      looks.push_back({"the old weights", named_slice(parameter, old, info.grid.tp(), info.place.tp).matrix});
      looks.push_back({"right but for the decay", mistaken(info, meta, false, true)});
      looks.push_back({"scaled by how many weights you were given, not by the shape of the matrix",
                       mistaken(info, meta, true, false)});
    }
    return looks;
  };
  return task;
}

const bool update_weights_added = add_exercise("lesson_08_dp_shard", "update_weights", update_weights);

}  // namespace
}  // namespace muonwalk::sim
