#include <algorithm>

#include "lesson_16_strategies.hpp"
#include "lessons/lesson_16_strategies/try_take_step/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/optim/master_weights.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's matrices, and one whose longer side is the one that TP cuts.
const std::vector<Parameter>& matrices_of_try() {
  static const std::vector<Parameter> all = [] {
    std::vector<Parameter> matrices = lesson_16::kMatrices;
    matrices.push_back({"wide", {8, 16}, SplitDim::columns});
    return matrices;
  }();
  return all;
}

const RandomTraining& training_of(const RankInfo& rank) {
  static const RandomTraining training(matrices_of_try(), 2, rank.seed);
  return training;
}

Layout equal_parts_of(const RankInfo& rank) {
  return gather_everything().lay_out(matrices_of_try(), rank.grid, lesson_16::kBucket);
}

MuonState first_state(const RankInfo& rank) {
  const Layout layout = equal_parts_of(rank);
  return {first_buckets(layout, training_of(rank), rank.place.tp), zero_shards(layout, rank.place.dp)};
}

Buckets own_gradients_of(const RankInfo& rank, const Buckets& weights) {
  const Layout layout = equal_parts_of(rank);
  return pack_slices(layout, training_of(rank).own_gradients(0, rank.grid.dp(), rank.place.dp,
                                                             unpack_buckets(layout, weights, rank.place.tp)));
}

// A step as one process takes it, on the slices of a rank. `part_by_part`: each owner orthogonalizes its own part, with
// zeros around it. `mine_only`: other ranks' weights stay as they were.
struct Variant {
  bool part_by_part = false, mine_only = false;
};

MuonState stepped(const RankInfo& rank, const Variant& variant = {}) {
  const Layout layout = equal_parts_of(rank);
  const MuonSettings settings = muon_settings(Precision::fp32, 1, rank.products);
  const std::vector<NamedMatrix> first = training_of(rank).first_weights();
  const auto leaves = training_of(rank).all_leaves(0, rank.grid.dp(), first);
  std::vector<Matrix> after, momenta;  // slices
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const auto p = static_cast<std::size_t>(meta.parameter);
    Matrix update = summed_gradient(leaves, p);
    const Matrix momentum_of_all = update;  // m = g in the first step
    for (float& value : update.flat()) value = value + float(settings.momentum) * value;
    const auto slice = [&](const Matrix& whole) {
      return tp_slice(whole, meta.tp_split_dim, rank.grid.tp(), rank.place.tp);
    };
    Matrix weights = slice(first[p].matrix);
    for (int owner = 0; owner < rank.grid.dp(); ++owner) {
      const Range owned = layout.owned_range(meta, owner);
      if (owned.empty() || (variant.mine_only && owner != rank.place.dp)) continue;
      const Range in_slice = {owned.begin - meta.global_range.begin, owned.end - meta.global_range.begin};
      std::vector<Matrix> parts;  // the slices of all TP ranks, as this owner has them
      for (int t = 0; t < rank.grid.tp(); ++t) {
        parts.push_back(tp_slice(update, meta.tp_split_dim, rank.grid.tp(), t));
        for (Index i = 0; variant.part_by_part && i < parts.back().size(); ++i)
          if (i < in_slice.begin || i >= in_slice.end) parts.back().flat()[static_cast<std::size_t>(i)] = 0;
      }
      std::vector<const Matrix*> pointers;
      for (const Matrix& part : parts) pointers.push_back(&part);
      const Matrix orthogonal = slice(orthogonalize(join_slices(pointers, meta.tp_split_dim), settings, meta.name));
      apply(weights.data() + in_slice.begin, orthogonal.data() + in_slice.begin, owned.size(), meta.full_shape,
            settings);
    }
    after.push_back(std::move(weights));
    momenta.push_back(slice(momentum_of_all));
  }
  return {pack_slices(layout, after), shards_of(layout, pack_slices(layout, momenta), rank.place.dp)};
}

// Each bucket as a matrix of one row, without a copy.
std::vector<NamedMatrix> bucket_answers(const std::string& name, Buckets buckets) {
  std::vector<NamedMatrix> all;
  for (std::size_t k = 0; k < buckets[0].size(); ++k)
    all.push_back(std::move(named(std::move(buckets[0][k]), fmt::format("{} of bucket {}", name, k))[0]));
  return all;
}

// The weights of all buckets, and the momentum of what the rank owns of them.
std::vector<NamedMatrix> state_answers(MuonState state) {
  std::vector<NamedMatrix> all = bucket_answers("weights", std::move(state.weights));
  for (NamedMatrix& each : bucket_answers("momentum", std::move(state.momentum))) all.push_back(std::move(each));
  return all;
}

// Looks for each bucket.
void add_looks(std::vector<Look>& looks, const char* what, Buckets weights) {
  for (NamedMatrix& each : bucket_answers("", std::move(weights))) looks.push_back({what, std::move(each.matrix)});
}

Task take_step(TakeStep* yours) {
  Task task;
  task.own_design = true;
  task.grids = {Grid().dp(4), Grid().dp(2).tp(2), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    auto state = std::make_shared<MuonState>(first_state(rank));
    auto gradients = std::make_shared<Buckets>(own_gradients_of(rank, state->weights));
    auto layout = std::make_shared<Layout>(equal_parts_of(rank));
    const MuonSettings settings = muon_settings(Precision::fp32, 1, rank.products);
    return [=, &rank] {
      yours({*layout, rank.place, rank.dp(), rank.tp()}, settings, *gradients, *state);
      return state_answers(std::move(*state));
    };
  };
  task.reference = [](const RankInfo& info) { return state_answers(stepped(info)); };
  task.plan = [](const RankInfo& info) {
    const Layout layout = equal_parts_of(info);
    Plan plan = gather_everything()
                    .optimizer(layout, muon_settings(Precision::fp32, 1, info.products), 0)
                    ->plan(layout, info.place);
    const auto first_phase = std::find_if(plan.operations.begin(), plan.operations.end(),
                                          [](const Operation& each) { return std::holds_alternative<Work>(each); });
    plan.operations.erase(plan.operations.begin(), first_phase);  // what the step is handed
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    Variant part, mine;
    part.part_by_part = mine.mine_only = true;
    std::vector<Look> looks;
    add_looks(looks, "the old weights", first_state(info).weights);
    add_looks(looks, "new only where this rank owns it", stepped(info, mine).weights);
    add_looks(looks, "orthogonalized part by part", stepped(info, part).weights);
    return looks;
  };
  return task;
}

const bool take_step_added = add_exercise("lesson_16_strategies", "take_step", take_step);

}  // namespace
}  // namespace muonwalk::sim
