#include "sim/lesson_16/side_by_side.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/lesson_16/step_counts.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/named_slice.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kSteps = 2;

}  // namespace

std::vector<std::vector<Matrix>> MicroBatches::summed(int step, const Seat& seat, const std::vector<NamedMatrix>& held,
                                                      bool apart) const {
  const int leaves = leaves_per_rank(seat.grid.dp());
  if (!apart) return {own_gradients(step, seat.grid.dp(), seat.place.dp, held)};
  std::vector<std::vector<Matrix>> each;
  for (int leaf = 0; leaf < leaves; ++leaf) each.push_back(gradients(step, leaves * seat.place.dp + leaf, held));
  return each;
}

std::string title(const Strategy& strategy) { return fmt::format("({}) {}", strategy.letter, strategy.name); }

std::string title(const Strategy& strategy, int step) {
  return fmt::format("({}) after step {}", strategy.letter, step + 1);
}

SideBySide::SideBySide(std::vector<Parameter> parameters, Index bucket, const Seat& seat)
    : data_(std::move(parameters), kSteps, seat.seed), bucket_(bucket) {
  MuonSettings one_thread = settings(seat);  // references run in a process that forks
  one_thread.threads = 1;
  const auto muon = std::make_shared<ReferenceRun>(data_, std::make_unique<Muon>(one_thread));
  for (const Strategy& strategy : strategies())
    references_.push_back(
        strategy.is_muon
            ? muon
            : std::make_shared<ReferenceRun>(data_, strategy.optimizer(layout(strategy, seat.grid), one_thread, 0)));
}

std::vector<NamedMatrix> SideBySide::expected_weights(const Seat& seat) const {
  std::vector<NamedMatrix> all;
  for (std::size_t i = 0; i < references_.size(); ++i)
    for (int step = 0; step < kSteps; ++step)
      append_of(title(strategies()[i], step), references_[i]->slices_after(step + 1, seat.grid, seat.place), all);
  return all;
}

std::vector<Plan> SideBySide::plans(const Strategy& strategy, const Seat& seat) const {
  const Layout laid_out = layout(strategy, seat.grid);
  std::vector<Plan> plans;
  for (int step = 0; step < kSteps; ++step)
    plans.push_back(strategy.optimizer(laid_out, settings(seat), step)->plan(laid_out, seat.place));
  return plans;
}

std::vector<NamedMatrix> SideBySide::expected_counts(const Seat& seat) const {
  std::vector<NamedMatrix> all;
  for (const Strategy& strategy : strategies())
    all.push_back({title(strategy), counts_of(plans(strategy, seat)).row()});
  return all;
}

Ledger SideBySide::ledger(const Seat& seat) const {
  Ledger ledger;
  for (const Strategy& strategy : strategies())
    for (const Plan& plan : plans(strategy, seat)) ledger.add(ledger_of(plan), 1);
  return ledger;
}

}  // namespace muonwalk::sim
