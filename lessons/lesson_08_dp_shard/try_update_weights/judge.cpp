#include <algorithm>
#include <cmath>

#include "lesson_08_dp_shard.hpp"
#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// Where the elements of a slice are cut in two.
Index middle_of(Index size) { return size / 3; }

// Settings and weights with which an update is about as large as what it changes: then each mistake shows.
MuonSettings settings_of_try() {
  MuonSettings settings;
  settings.lr = 0.29f;  // with which a scale in double is another one
  settings.weight_decay = 0.3f;
  return settings;
}

Matrix small_weights(const RankInfo& rank, int p) {
  Matrix weights = lesson_08::weights_of(rank, p);
  for (float& weight : weights.flat()) weight = 40 / weight;
  return weights;
}

NamedMatrix slice_of(const RankInfo& rank, int p, const Matrix& whole) {
  return named_slice(lesson_08::kParameters[p], whole, rank.grid.tp(), rank.place.tp);
}

// What a weight w becomes that is given with others and an orthogonal element o of a matrix, rightly or not.
using NewWeight = float(float w, float o, Shape whole, Index given, const MuonSettings& s);
struct Variant {
  const char* what;
  NewWeight* weight;
};

float with_scale(float w, float o, const MuonSettings& s, float scale) {
  return w * (1.0f - s.lr * s.weight_decay) - scale * o;
}
float root(Index of) { return std::sqrt(static_cast<float>(of)); }

const Variant kVariants[] = {
    {"right but for the decay",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) { return w - update_scale(whole, s) * o; }},
    {"right but for the decay, which comes after the update",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return (w - update_scale(whole, s) * o) * (1.0f - s.lr * s.weight_decay);
     }},
    {"the decay alone", [](float w, float o, Shape, Index, const MuonSettings& s) { return with_scale(w, o, s, 0); }},
    {"right but for the sign of the update, which has to be subtracted",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return with_scale(w, o, s, -update_scale(whole, s));
     }},
    {"right but for the sign of the decay",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return w * (1.0f + s.lr * s.weight_decay) - update_scale(whole, s) * o;
     }},
    {"scaled by how many weights you were given, not by the shape of the matrix",
     [](float w, float o, Shape, Index given, const MuonSettings& s) {
       return with_scale(w, o, s, s.lr * s.rms * root(given));
     }},
    {"scaled by the root of the smaller of rows and columns, not of the larger one",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return with_scale(w, o, s, s.lr * s.rms * root(std::min(whole.rows, whole.cols)));
     }},
    {"scaled by the root of rows · columns",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return with_scale(w, o, s, s.lr * s.rms * root(whole.size()));
     }},
    {"scaled by max(rows, cols), not by its root",
     [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return with_scale(w, o, s, s.lr * s.rms * static_cast<float>(std::max(whole.rows, whole.cols)));
     }},
    {"not scaled by the shape of the matrix: √max(rows, cols) is missing",
     [](float w, float o, Shape, Index, const MuonSettings& s) { return with_scale(w, o, s, s.lr * s.rms); }},
    {"right but for rms, which is missing", [](float w, float o, Shape whole, Index, const MuonSettings& s) {
       return with_scale(w, o, s, s.lr * root(std::max(whole.rows, whole.cols)));
     }}};

Matrix mistaken(const RankInfo& rank, int p, NewWeight* weight) {
  Matrix w = slice_of(rank, p, small_weights(rank, p)).matrix;
  const Matrix o = slice_of(rank, p, lesson_08::orthogonal_of(rank, p)).matrix;
  const Index middle = middle_of(w.size());
  for (Index i = 0; i < w.size(); ++i)
    w.data()[i] = weight(w.data()[i], o.data()[i], lesson_08::kParameters[p].shape,
                         i < middle ? middle : w.size() - middle, settings_of_try());
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
      const int number = static_cast<int>(p);
      weights->push_back(slice_of(rank, number, small_weights(rank, number)));
      const Flat orthogonal = slice_of(rank, number, lesson_08::orthogonal_of(rank, number)).matrix.flat();
      const auto middle = orthogonal.begin() + middle_of(static_cast<Index>(orthogonal.size()));
      halves.emplace_back(orthogonal.begin(), middle);
      halves.emplace_back(middle, orthogonal.end());
    }
    return [=] {
      const MuonSettings settings = settings_of_try();
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
  task.reference = [](const RankInfo& info) {
    std::vector<NamedMatrix> all;
    for (int p = 0; p < static_cast<int>(lesson_08::kParameters.size()); ++p) {
      Matrix w = small_weights(info, p);
      const Matrix o = lesson_08::orthogonal_of(info, p);
      apply(w.data(), o.data(), w.size(), lesson_08::kParameters[p].shape, settings_of_try());
      all.push_back(slice_of(info, p, w));
    }
    return all;
  };
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    for (int p = 0; p < static_cast<int>(lesson_08::kParameters.size()); ++p) {
      const NamedMatrix old = slice_of(info, p, small_weights(info, p));
      looks.push_back({"the old weights", old.matrix, old.name});
      for (const Variant& variant : kVariants)
        looks.push_back({variant.what, mistaken(info, p, variant.weight), old.name});
    }
    return looks;
  };
  return task;
}

const bool update_weights_added = add_exercise("lesson_08_dp_shard", "update_weights", update_weights);

}  // namespace
}  // namespace muonwalk::sim
