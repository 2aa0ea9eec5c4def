#include "lessons/lesson_20_pretrain/tests/resharding_case.hpp"

#include <fmt/format.h>

#include "lessons/lesson_20_pretrain/resharding.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/steps.hpp"
#include "src/train/models.hpp"
#include "tests/optim/momentum_sgd.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_fibers.hpp"

namespace muonwalk::test {
namespace {

constexpr int kLeaves = 4;

class Recorder : public CallObserver {
 public:
  void begins(const Call& call) override { calls.push_back(call); }
  std::vector<Call> calls;
};

// The numbers of the parameters of each stage.
using StageParts = std::vector<std::vector<int>>;

Stages planned(const TinyRun& run, const Grid& grid, StageParts parts, const std::function<LayoutOptions()>& options) {
  if (run.tied && grid.pp() > 1) parts.back().push_back(0);
  Stages stages{grid, {}};
  for (const std::vector<int>& part : parts) {
    std::vector<Parameter> parameters;
    for (const int p : part) parameters.push_back(run.parameters[static_cast<std::size_t>(p)]);
    stages.layouts.push_back(plan_layout(parameters, grid, options()));
  }
  return stages;
}

std::string against_plan(const Plan& plan, const Recorder& recorder, const Ledger& counted, std::int64_t peak) {
  const std::vector<PlannedCall> planned = calls_of(plan);
  for (std::size_t i = 0; i < std::max(planned.size(), recorder.calls.size()); ++i) {
    const std::string was = i < recorder.calls.size() ? text(recorder.calls[i]) : "nothing";
    const std::string expected = i < planned.size() ? text(planned[i].call) : "nothing";
    if (was != expected)
      return fmt::format("rank {}, call {}: {} was planned, but was {}", plan.place.rank, i, expected, was);
  }
  if (peak != peak_elements(plan))
    return fmt::format("rank {}: a peak of {} elements was planned, {} were held", plan.place.rank, peak_elements(plan),
                       peak);
  return muonwalk::first_difference(ledger_of(plan), counted);
}

// The slices of a rank's stage, of whole matrices given by name.
std::vector<Matrix> stage_slices(const TinyRun& run, const Layout& layout, const std::vector<Matrix>& whole, int tp) {
  std::vector<Matrix> slices;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) {
      std::size_t p = 0;
      while (run.parameters[p].name != meta.name) ++p;
      const std::size_t at = static_cast<std::size_t>(meta.parameter);
      if (slices.size() <= at) slices.resize(at + 1);
      slices[at] = named_slice(run.parameters[p], whole[p], layout.grid.tp(), tp).matrix;
    }
  return slices;
}

}  // namespace

std::vector<NamedMatrix> TinyRun::first_weights() const {
  std::vector<NamedMatrix> all;
  for (const Parameter& each : parameters)
    all.push_back({each.name, random_matrix({seed, all.size()}, each.shape.rows, each.shape.cols)});
  return all;
}

std::vector<Matrix> TinyRun::own_gradients(int step, int dp, int dp_rank) const {
  std::vector<Matrix> sums;
  const int leaves = one_leaf ? 1 : kLeaves / dp;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Shape shape = parameters[p].shape;
    if (one_leaf && dp_rank > 0) {
      sums.emplace_back(shape.rows, shape.cols);
      continue;
    }
    std::vector<Matrix> own;
    std::vector<const float*> values;
    for (int leaf = dp_rank * leaves; leaf < (dp_rank + 1) * leaves; ++leaf)
      own.push_back(random_matrix(
          {seed + 7, 10000 * static_cast<std::uint64_t>(step) + 100 * static_cast<std::uint64_t>(leaf) + p}, shape.rows,
          shape.cols));
    for (const Matrix& each : own) values.push_back(each.data());
    Matrix sum(shape.rows, shape.cols);
    tree_sum(values, sum.size(), sum.data());
    sums.push_back(std::move(sum));
  }
  return sums;
}

std::vector<NamedMatrix> TinyRun::reference(int steps) const {
  const auto serial = make()->reference(first_weights());
  const int leaves = one_leaf ? 1 : kLeaves;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<Matrix>> all;
    for (int leaf = 0; leaf < leaves; ++leaf) all.push_back(own_gradients(step, leaves, leaf));
    serial->step(all);
  }
  return serial->parameters();
}

TinyRun random_run(std::uint64_t seed) {
  Choices choose(seed);
  TinyRun run;
  run.seed = seed;
  const Index count = choose.between(1, 9);
  std::vector<Parameter> parameters;
  for (Index p = 0; p < count; ++p) {
    Parameter each;
    const Index kind = choose.between(0, 3);
    each.name = kind == 0   ? fmt::format("model.embed_tokens.{}.weight", p)
                : kind == 1 ? fmt::format("model.layers.{}.norm.weight", p)
                            : fmt::format("model.layers.{}.up.weight", p);
    each.dims = kind == 1 ? 1 : 2;
    each.tp_split_dim = kind == 1 ? SplitDim::none : static_cast<SplitDim>(choose.between(-1, 1));
    // Any tp up to 4 divides 12.
    const auto length = [&](SplitDim dim) {
      return each.tp_split_dim == dim ? 12 * choose.between(1, 2) : choose.between(1, 20);
    };
    each.shape = {kind == 1 ? 1 : length(SplitDim::rows), length(SplitDim::columns)};
    parameters.push_back(each);
  }
  MuonSettings muon;
  muon.newton_schulz.steps = 2;
  const std::vector<ParameterGroup> groups = usual_groups(muon, AdamWSettings());
  run.parameters = route(parameters, groups);
  switch (choose.between(0, 6)) {
    case 0:
      run.make = [muon] { return std::make_unique<Muon>(muon); };
      break;
    case 1:
      run.make = [] { return std::make_unique<AdamW>(AdamWSettings()); };
      break;
    case 2:
      run.make = [] { return std::make_unique<momentum_sgd::Distributed>(); };
      break;
    default:
      run.make = [groups, routed = run.parameters] { return std::make_unique<GroupedOptimizer>(groups, routed); };
  }
  run.one_leaf = choose.yes(50);
  run.tied = choose.yes(40);
  return run;
}

std::string Stages::text() const {
  std::string words = grid.text();
  for (const Layout& layout : layouts)
    words += fmt::format(" | {} of capacity {}, alignments {} and {}", ownership_name(layout.options.ownership),
                         layout.options.bucket_capacity, layout.options.parameter_alignment,
                         layout.options.bucket_alignment);
  return words;
}

Stages random_stages(const TinyRun& run, std::uint64_t seed) {
  Choices choose(seed);
  const std::vector<int> sizes = run.one_leaf ? std::vector<int>{1, 2, 3, 4} : std::vector<int>{1, 2, 4};
  Grid grid;
  do {
    grid = Grid().dp(choose.one_of(sizes)).tp(static_cast<int>(choose.between(1, 4)));
    grid.pp(static_cast<int>(choose.between(1, 3)));
  } while (grid.size() > 12);
  StageParts parts(static_cast<std::size_t>(grid.pp()));
  int stage = 0;
  const int count = static_cast<int>(run.parameters.size());
  for (int p = 0; p < count; ++p) {
    parts[static_cast<std::size_t>(stage)].push_back(p);
    if (stage + 1 < grid.pp() && choose.yes(40)) ++stage;
  }
  return planned(run, grid, parts, [&] {
    LayoutOptions options;
    options.bucket_capacity = choose.one_of<Index>({0, 0, 1, 30, 300});
    options.parameter_alignment = choose.one_of<Index>({1, 1, 64, 7});
    options.bucket_alignment = choose.one_of<Index>({1, 1, 16, 5});
    options.ownership = choose.one_of<Ownership>({Ownership::buckets, Ownership::buffer, Ownership::matrices});
    return options;
  });
}

Stages stages_of(const TinyRun& run, const Grid& grid, const LayoutOptions& options) {
  StageParts parts;
  for (int stage = 0; stage < grid.pp(); ++stage) {
    const Range mine = stage_parameters(static_cast<int>(run.parameters.size()), grid.pp(), stage);
    parts.emplace_back();
    for (Index p = mine.begin; p < mine.end; ++p) parts.back().push_back(static_cast<int>(p));
  }
  return planned(run, grid, parts, [&] { return options; });
}

Trained train(const TinyRun& run, const Stages& stages, const Checkpoint* from, int steps, const ChangeState& saving,
              const ChangeState& resuming) {
  const std::size_t ranks = static_cast<std::size_t>(stages.grid.size());
  Trained trained;
  trained.slices.resize(ranks);
  trained.refused.resize(ranks);
  std::vector<std::string> differences(ranks);
  std::vector<Matrix> first;
  for (NamedMatrix& each : run.first_weights()) first.push_back(std::move(each.matrix));
  std::vector<StateForm> forms;
  for (std::size_t s = 0; s < stages.layouts.size(); ++s)
    forms.push_back(
        StateForm::at(stages.layouts[s], stages.grid.place(stages.grid.rank(0, 0, static_cast<int>(s))), *run.make()));

  run_ranks(stages.grid, [&](TestRank& rank) {
    const std::size_t number = static_cast<std::size_t>(rank.place.rank);
    const Layout& layout = stages.layouts[static_cast<std::size_t>(rank.place.pp)];
    const auto optimizer = run.make();
    int begin = 0;
    if (from == nullptr) {
      optimizer->start(layout, rank.place, pack_slices(layout, stage_slices(run, layout, first, rank.place.tp)));
    } else {
      SavedState state = state_of(*from, run.parameters, layout, rank.place, *optimizer);
      if (resuming) resuming(state, rank.place);
      optimizer->resume(layout, rank.place, std::move(state));
      begin = from->steps;
    }
    for (int step = begin; step < steps; ++step) {
      const auto own = run.own_gradients(step, stages.grid.dp(), rank.place.dp);
      optimizer->step({layout, rank.place, rank.dp, rank.tp},
                      pack_slices(layout, stage_slices(run, layout, own, rank.place.tp)));
    }
    trained.slices[number] = unpack_buckets(layout, optimizer->weights(), rank.place.tp);

    SavedState state = optimizer->save();
    if (saving) saving(state, rank.place);
    Recorder recorder;
    rank.group("world").observe(recorder);
    rank.ledger = Ledger();
    rank.meter.restart_peak();
    const std::int64_t before = rank.meter.live();
    try {
      std::optional<Checkpoint> saved = gather_checkpoint(rank.group("world"), run.parameters, stages.layouts,
                                                          rank.place, state, {{"seed", std::to_string(run.seed)}});
      differences[number] = against_plan(gather_checkpoint_plan(stages.layouts, forms, rank.place), recorder,
                                         rank.ledger, rank.meter.peak() - before);
      if (saved.has_value() != (rank.place.rank == 0)) differences[number] = "a rank other than 0 has the checkpoint";
      if (saved) trained.saved = std::move(saved);
    } catch (const std::exception& error) {
      trained.refused[number] = error.what();
    }
  });
  for (const std::string& each : differences)
    if (trained.against_plan.empty()) trained.against_plan = each;
  return trained;
}

std::string first_difference(const Stages& stages, const Trained& trained, const std::vector<NamedMatrix>& whole) {
  for (int r = 0; r < stages.grid.size(); ++r) {
    const Place place = stages.grid.place(r);
    const std::vector<NamedMatrix>& slices = trained.slices[static_cast<std::size_t>(r)];
    for (const NamedMatrix& slice : slices) {
      const DistMeta& meta = stages.layouts[static_cast<std::size_t>(place.pp)].meta(slice.name);
      const Parameter parameter{slice.name, meta.full_shape, meta.tp_split_dim};
      for (const NamedMatrix& each : whole)
        if (each.name == slice.name &&
            !same_bits(slice.matrix, named_slice(parameter, each.matrix, stages.grid.tp(), place.tp).matrix))
          return fmt::format("{} on rank {}", slice.name, r);
    }
  }
  return "";
}

}  // namespace muonwalk::test
