#pragma once

#include <string>
#include <vector>

#include "sim/world/options.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// What was asked for with the options of lesson 12.
struct RecipeRequest {
  std::string recipe = "all";       ///< --recipe: one of them, or all one after the other
  std::string scale;                ///< --scale: in place of the recipe's; empty: the recipe's
  std::string coefficients;         ///< --coefficients: likewise
  std::string split_qkv = "three";  ///< --split-qkv: how the fused matrix of an attention is split
  int steps = 10;                   ///< --steps: optimizer steps of each recipe
  bool more_tables = false;         ///< --more-tables

  /// The options, to be read into this object.
  std::vector<LessonOption> options();
  /// Throws UsageError for a number of steps outside of 1 to 100, and for pipeline stages, which one layer does not
  /// have.
  void require_sensible(const Seat& seat) const;
  /// The names of the recipes that run, in their order. One that is not known is among them: `settings` refuses it.
  std::vector<std::string> running() const;
  /// The settings of a recipe, with what was asked for in its place, and the pieces of the parameters "qkv", an
  /// attention's, and "gate_up", of `gate_up_rows` rows. Throws UsageError for a word that is not known.
  MuonSettings settings(const std::string& name, const Seat& seat, const AttentionRows& attention,
                        Index gate_up_rows) const;
};

}  // namespace muonwalk::sim
