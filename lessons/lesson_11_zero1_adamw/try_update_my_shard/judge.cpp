#include "lesson_11_zero1_adamw.hpp"
#include "lessons/lesson_11_zero1_adamw/try_update_my_shard/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

using lesson_11::kTables;

// What the reader's function is handed on one rank: the bucket of the tables, and the sums of two steps.
struct Input {
  Range mine;
  Flat weights, first_moment, second_moment;
  std::vector<Flat> sums;  // [step]

  std::vector<NamedMatrix> as_answer() {
    std::vector<NamedMatrix> all = named(std::move(weights), "weights");
    all.push_back(std::move(named(std::move(first_moment), "first moments")[0]));
    all.push_back(std::move(named(std::move(second_moment), "second moments")[0]));
    return all;
  }
};

constexpr int kTwoSteps = 2;

// As large an ε and decay as it takes for each of them to show.
AdamWSettings adamw_of_try() {
  AdamWSettings settings;
  settings.lr = 0.01f;
  settings.epsilon = 0.01f;
  return settings;
}

Input tables_of(const RankInfo& rank) {
  const Layout layout = lesson_11::layout_of(rank);
  Input input;
  input.mine = layout.dp_slice(kTables, 0, rank.place.dp);
  input.weights = first_buckets(layout, *lesson_11::data, rank.place.tp)[kTables][0];
  input.first_moment = input.second_moment = Flat(static_cast<std::size_t>(input.mine.size()));
  for (int step = 0; step < kTwoSteps; ++step) {
    const auto leaves = lesson_11::data->all_leaves(step, rank.grid.dp(), lesson_11::data->first_weights());
    std::vector<Matrix> slices;
    for (const Parameter& each : lesson_11::kParameters)
      slices.push_back(named_slice(each, summed_gradient(leaves, slices.size()), rank.grid.tp(), rank.place.tp).matrix);
    const Flat sum = pack_slices(layout, slices)[kTables][0];
    input.sums.emplace_back(sum.begin() + input.mine.begin, sum.begin() + input.mine.end);
  }
  return input;
}

// Both steps as the library takes them, on the weights from `begin` on.
std::vector<NamedMatrix> both_steps(const RankInfo& rank, bool from_the_start = false) {
  Input input = tables_of(rank);
  for (int step = 0; step < kTwoSteps; ++step)
    adamw(input.weights.data() + (from_the_start ? 0 : input.mine.begin), input.sums[step].data(),
          input.first_moment.data(), input.second_moment.data(), input.mine.size(), step + 1, adamw_of_try());
  return input.as_answer();
}

// What mistakes make of the weights: no bias correction, or a decay that goes into the gradient.
Matrix without(const RankInfo& rank, bool corrected, bool coupled) {
  const AdamWSettings s = adamw_of_try();
  Input input = tables_of(rank);
  for (int step = 1; step <= kTwoSteps; ++step) {
    double power1 = 1, power2 = 1;
    for (int t = 0; t < step; ++t) {
      power1 *= s.beta1;
      power2 *= s.beta2;
    }
    const float keep = coupled ? 1.0f : 1.0f - s.lr * s.weight_decay;
    const float size = corrected ? static_cast<float>(s.lr * std::sqrt(1 - power2) / (1 - power1)) : s.lr;
    for (Index i = 0; i < input.mine.size(); ++i) {
      float &w = input.weights[input.mine.begin + i], &m = input.first_moment[i], &v = input.second_moment[i];
      const float g = input.sums[step - 1][i] + (coupled ? s.weight_decay * w : 0.0f);
      m = s.beta1 * m + (1.0f - s.beta1) * g;
      v = s.beta2 * v + (1.0f - s.beta2) * (g * g);
      w = w * keep - size * m / (std::sqrt(v) + s.epsilon);
    }
  }
  return named(std::move(input.weights), "weights")[0].matrix;
}

Task update_my_shard(UpdateMyShard* yours) {
  lesson_11::prepare(Options().rank_info(0));
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    auto input = std::make_shared<Input>(tables_of(rank));
    return [=] {
      for (int step = 0; step < kTwoSteps; ++step)
        yours(input->weights, input->mine, input->sums[step], input->first_moment, input->second_moment, step + 1,
              adamw_of_try());
      return input->as_answer();
    };
  };
  task.reference = [](const RankInfo& info) { return both_steps(info); };
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  task.looks = [](const RankInfo& info) {
    return std::vector<Look>{
        {"the old weights", tables_of(info).as_answer()[0].matrix},
        {"as if my shard began where the bucket begins", both_steps(info, true)[0].matrix},
        {"right but for the bias correction", without(info, false, false)},
        {"as Adam with L2 regularization would have it: the decay went into the gradient", without(info, true, true)}};
  };
  return task;
}

const bool update_my_shard_added = add_exercise("lesson_11_zero1_adamw", "update_my_shard", update_my_shard);

}  // namespace
}  // namespace muonwalk::sim
