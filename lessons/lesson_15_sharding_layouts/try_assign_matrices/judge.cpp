#include <algorithm>
#include <stdexcept>

#include "lesson_15_sharding_layouts.hpp"
#include "lessons/lesson_15_sharding_layouts/try_assign_matrices/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

constexpr float kAllowed = 1.05f;

// Matrices, and how many ranks they are for.
struct Deck {
  std::string name;
  std::vector<Shape> shapes;
  int ranks;
};

std::vector<Deck> decks() {
  const auto shapes_of = [](const std::vector<Parameter>& parameters) {
    std::vector<Shape> shapes;
    for (const Parameter& each : parameters) shapes.push_back(each.shape);
    return shapes;
  };
  // As many elements in each, and the less work, the flatter it is.
  const std::vector<Shape> flat = {{48, 48},  {48, 48}, {48, 48}, {12, 192}, {12, 192},
                                   {12, 192}, {24, 96}, {24, 96}, {24, 96}};
  return {{"the lesson's matrices", shapes_of(lesson_15::kMatrices), 4},
          {"nine of equal size", flat, 4},
          {"gpt2", shapes_of(with_whole_experts("gpt2")), 8},
          {"moonlight-16b", shapes_of(with_whole_experts("moonlight-16b")), 64}};
}

std::string title(const Deck& deck) {
  return fmt::format("{} on {} ranks: the slowest rank over what can't be avoided", deck.name, deck.ranks);
}

// The most work of a rank over the larger of the mean and the largest matrix; what is allowed where it is not above
// that.
Matrix slowest(const Deck& deck, const std::vector<int>& owners) {
  if (owners.size() != deck.shapes.size())
    throw std::runtime_error(fmt::format("there are {} owners for {} matrices", owners.size(), deck.shapes.size()));
  std::vector<double> load(static_cast<std::size_t>(deck.ranks));
  double sum = 0, largest = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] < 0 || owners[i] >= deck.ranks)
      throw std::runtime_error(
          fmt::format("owner {} of a matrix is not one of the ranks 0 to {}", owners[i], deck.ranks - 1));
    const double work = newton_schulz_flops(deck.shapes[i].rows, deck.shapes[i].cols);
    load[static_cast<std::size_t>(owners[i])] += work;
    sum += work;
    largest = std::max(largest, work);
  }
  const double most = *std::max_element(load.begin(), load.end());
  return Matrix(1, 1, {std::max(kAllowed, static_cast<float>(most / std::max(sum / deck.ranks, largest)))});
}

Task assign_matrices(AssignMatrices* yours) {
  Task task;
  task.own_design = true;
  task.grids = {Grid().dp(2)};
  task.prepare = [yours](Rank&) -> Answer {
    const std::vector<Deck> all = decks();
    return [=] {
      std::vector<NamedMatrix> results;
      for (const Deck& deck : all)
        results.push_back(std::move(named(slowest(deck, yours(deck.shapes, deck.ranks)), title(deck))[0]));
      return results;
    };
  };
  task.reference = [](const RankInfo&) {
    std::vector<NamedMatrix> results;
    for (const Deck& deck : decks()) results.push_back({title(deck), Matrix(1, 1, {kAllowed})});
    return results;
  };
  task.plan = [](const RankInfo& rank) {
    Plan plan{rank.grid, rank.place, {}};
    plan.take(static_cast<Index>(decks().size()), "the judge's numbers");
    return plan;
  };
  task.looks = [](const RankInfo&) {
    std::vector<Look> looks;
    for (const Deck& deck : decks()) {
      std::vector<Parameter> parameters;
      for (const Shape& shape : deck.shapes) parameters.push_back({"", shape});
      const auto add = [&](const char* when, const std::vector<int>& owners) {
        looks.push_back({std::string("as large as when ") + when, slowest(deck, owners)});
      };
      add("one rank owns everything", std::vector<int>(deck.shapes.size()));
      add("matrices are dealt out in turn", round_robin_owners(parameters, deck.ranks));
      add("elements are balanced", balanced_owners(parameters, deck.ranks, Load::elements));
    }
    return looks;
  };
  return task;
}

const bool assign_matrices_added = add_exercise("lesson_15_sharding_layouts", "assign_matrices", assign_matrices);

}  // namespace
}  // namespace muonwalk::sim
