#include "sim/lesson_12/recipe_request.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/optim/recipes.hpp"

namespace muonwalk::sim {

std::vector<LessonOption> RecipeRequest::options() {
  return {
      {"--recipe", "moonshot, kellerjordan, torch, emerging, dion or all (default)", &recipe},
      {"--scale", "matched, largest, tall, ratio or none, in place of the recipe's", &scale},
      {"--coefficients", "simple, quintic, polar_express, aol or deepseekv4, in place of\nthe recipe's", &coefficients},
      {"--split-qkv", "none, three (default) or heads: the pieces of qkv", &split_qkv},
      {"--steps", "optimizer steps of each recipe (default 10)", &steps},
      {"--more-tables", "how far recipes are apart, and what coefficients do", &more_tables}};
}

void RecipeRequest::require_sensible(const Seat& seat) const {
  constexpr int kMostSteps = 100;
  if (seat.grid.pp() > 1)
    throw UsageError(fmt::format("--pp {} has no second stage here: this is one layer; try lesson 09", seat.grid.pp()));
  if (steps < 1 || steps > kMostSteps)
    throw UsageError(fmt::format("--steps {} is too few or too many; it takes 1 to {}", steps, kMostSteps));
}

std::vector<std::string> RecipeRequest::running() const {
  if (recipe != "all") return {recipe};
  std::vector<std::string> names;
  for (const Recipe& each : recipes()) names.push_back(each.name);
  return names;
}

MuonSettings RecipeRequest::settings(const std::string& name, const Seat& seat, const AttentionRows& attention,
                                     Index gate_up_rows) const {
  MuonSettings settings = with_recipe(name, muon_settings(seat.precision, seat.threads, seat.products));
  if (!scale.empty()) settings.scale = parse_scale(scale);
  if (!coefficients.empty()) take_coefficients(settings, coefficients);
  const std::vector<muonwalk::Piece> pieces = qkv_pieces(attention, parse_qkv_split(split_qkv));
  if (!pieces.empty()) settings.fused["qkv"] = pieces;
  settings.fused["gate_up"] = gate_and_up(gate_up_rows);
  return settings;
}

}  // namespace muonwalk::sim
