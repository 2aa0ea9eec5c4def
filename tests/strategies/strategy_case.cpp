#include "tests/strategies/strategy_case.hpp"

#include <doctest/doctest.h>

#include "src/errors.hpp"
#include "src/optim/recipes.hpp"

namespace muonwalk::test {

Case strategy_case(std::uint64_t seed) {
  Case c = random_case(seed);
  Choices choose(seed + 1'000'000);
  if (c.grid.tp() <= 2 && choose.yes(40)) c.grid = Grid().dp(static_cast<int>(choose.between(5, 8))).tp(c.grid.tp());
  const Recipe& recipe = choose.one_of(recipes());  // one with a second moment takes the step of Muon alone
  if (choose.yes(30) && !recipe.settings.second_moment.used) c.settings = with_recipe(recipe.name, c.settings);
  if (choose.yes(15)) c.settings.gather_unrounded = true;
  for (const Parameter& each : c.parameters)
    if (each.shape.rows % 2 == 0 && choose.yes(20)) c.settings.fused[each.name] = gate_and_up(each.shape.rows);
  c.settings.newton_schulz.threads = 1;
  return c;
}

Layout lay_out(const Strategy& strategy, const Case& c) {
  return strategy.lay_out(c.parameters, c.grid, c.options.bucket_capacity);
}

Case laid_out(const Strategy& strategy, Case c) {
  c.options = lay_out(strategy, c).options;
  return c;
}

MakeOptimizer maker(const Strategy& strategy, const Case& c, const Layout& layout, int steps) {
  return [&strategy, settings = c.settings, &layout, steps] { return strategy.optimizer(layout, settings, steps); };
}

std::vector<Strategy> all_ways() {
  const auto owned = [](const Layout&, const MuonSettings& settings, int) { return muon_owned_over_tp(settings); };
  std::vector<Strategy> all = strategies();
  for (const Strategy& each : {gather_everything(), owner_by_work()})
    all.push_back({'i', "owner, over tp", each.lay_out, owned});
  return all;
}

bool takes(const Strategy& strategy, const Layout& layout, const MuonSettings& settings) {
  try {
    strategy.optimizer(layout, settings, 0);
    return true;
  } catch (const UsageError&) {
    REQUIRE((strategy.letter == 'g' || strategy.letter == 'h'));
    return false;
  }
}

}  // namespace muonwalk::test
