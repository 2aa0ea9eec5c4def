#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/recipes.hpp"

namespace muonwalk::sim {

/// The root mean square of a matrix's elements, √(Σx² / elements); 0 where it has none.
double rms_of(const Matrix& x);

/// ‖x − y‖, Frobenius' norm in double precision. Throws std::invalid_argument where the shapes differ.
double distance(const Matrix& x, const Matrix& y);

/// The gradient of step `step` (counted from 0) of all tables: random numbers without a mean, of variance 1.
Matrix noise(Shape shape, std::uint64_t seed, int step);

/// Settings with one thread, and with chains, so that every processor comes to the same digits.
MuonSettings for_tables(MuonSettings settings);

/// The recipes that this lesson compares, the first kMainRecipes, all with one learning rate, momentum and decay.
const std::vector<Recipe>& main_recipes();

/// Of every recipe: what its class takes where nobody says otherwise; all coefficients; and what may surprise in both,
/// measured on random matrices or quoted with its source.
std::string recipe_tables(std::uint64_t seed);

/// A relative distance in words: "same bits", "last bits" below 0.00001, else percent, "0.31 %" or "23 %".
std::string relative_text(double relative);

/// The scales in the order of their columns.
constexpr Scale kScales[] = {Scale::none, Scale::matched_rms, Scale::largest, Scale::tall, Scale::ratio};

/// Root mean squares of what one step takes from a matrix, for a learning rate of 1 and without decay.
struct UpdateRms {
  Shape shape;
  double adamw = 0;
  double orthogonal = 0;  ///< Muon's, not scaled: the orthogonal matrix itself.

  /// Muon's with one of the scales; Scale::matched_rms with MuonSettings::rms.
  double scaled(Scale scale) const;
};

/// A line for each shape, a column for each scale; below them what a formula says of AdamW's.
std::string update_rms_table(const std::vector<UpdateRms>& all, double formula);

/// The steps after which weights are looked at.
constexpr int kRmsSteps[] = {0, 25, 50, 100, 200, 400};

/// The root mean square of weights in the course of training.
struct WeightRms {
  std::string name;  ///< "matrix, by Muon"
  bool decays = false;
  std::vector<double> rms;  ///< After each of kRmsSteps.
};

std::string weight_rms_table(const std::vector<WeightRms>& all);

/// Recipes are compared on a matrix that is trained for some steps on noise.
struct RecipeTrial {
  Shape shape{24, 16};  ///< Tall, so that it matters how tall matrices are treated.
  int steps = 10;
  Precision precision = Precision::bf16;
  std::uint64_t seed = 1;

  /// The weights that a recipe ends with.
  Matrix end(const MuonSettings& recipe) const;
  /// How far `other` ends from `recipe`, relative to the way that `recipe` has come: ‖w' − w‖ / ‖w − w₀‖.
  double relative_distance(const MuonSettings& recipe, const MuonSettings& other) const;
};

/// What comes of a recipe when it takes one line of others.
struct LineEffect {
  std::string about;                 ///< "momentum", as RecipeLine has it
  std::string mine, theirs;          ///< The recipe has the first line; the second is put in its place.
  std::vector<std::string> recipes;  ///< Those that have the other line.
  double distance = 0;               ///< RecipeTrial::relative_distance
};

/// The lines in which another recipe differs from `recipe`, each taken alone, in the order of a step. A line that
/// several recipes share comes once.
std::vector<LineEffect> line_effects(const Recipe& recipe, const RecipeTrial& trial);

/// The effects on the recipe `name`, and below them a line with the distance of each whole recipe.
std::string line_table(const std::string& name, std::uint64_t seed);

/// The scaled update of an attention's fused matrix for the momentum `u`: each piece of `split` is orthogonalized by
/// itself and multiplied by 0.2 · √max of its own shape.
Matrix split_update(const Matrix& u, const AttentionRows& attention, QkvSplit split);

/// How far a fused matrix's update is from the one that was meant, relative to that one: as a whole, and of q, k and v.
struct SplitError {
  int calls = 0;  ///< Calls of Newton–Schulz.
  double all = 0, q = 0, k = 0, v = 0;
};

/// The update with `split` beside the one with QkvSplit::three, for random momentum whose rows of k and v are
/// multiplied by `size_of_kv`.
SplitError split_error(const AttentionRows& attention, Index cols, QkvSplit split, float size_of_kv,
                       std::uint64_t seed);

/// One call in place of three, for gradients of k and v as large as those of q, a tenth, and ten times as large; and a
/// call for each head. The last line was published of a real model.
std::string split_table(const AttentionRows& attention, Index cols, std::uint64_t seed);

/// Which heads some rows of the matrix are of: "q head 0, q head 1, half of q head 2" where a head is cut in two, else
/// "3 of 4 rows of q head 2".
std::string heads_text(const AttentionRows& attention, Range rows);

/// The Frobenius norm of what Newton–Schulz makes of a random matrix that has been brought to `input_norm`.
double output_norm(Shape shape, double input_norm, const Normalization& normalization, int steps, std::uint64_t seed);

/// Does the result depend on how large the input was? A line for every way in which recipes divide by the norm, and one
/// with a sixth step for the first; a column for each norm from 1 to 1e-10.
std::string norm_table(std::uint64_t seed);

/// What the monitor of the first rank has said, a line for each of its rows: of each matrix the root mean squares of
/// its update and of its weights. Empty where no rank told anything.
std::string monitor_table(const std::vector<std::vector<NamedMatrix>>& rows_of_ranks,
                          const std::vector<Parameter>& matrices);

}  // namespace muonwalk::sim
