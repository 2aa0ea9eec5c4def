#include "lessons/lesson_12_matched_rms/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/steps.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::size_t kLabelWidth = 8;  // at the left edge of what a lesson prints

// Gradients of tables have tensor numbers that no other gradient has.
constexpr std::uint64_t kFirstNoise = std::uint64_t{1} << 62;

// Lines as one text, with `label` at the left edge and the lines after the first indented like it.
std::string labelled(const std::string& label, const std::vector<std::string>& lines) {
  std::string text = pad_right(label, kLabelWidth);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" + std::string(kLabelWidth, ' ') : "") + lines[i];
  return text;
}

// A text, and then numbers, each under its own heading.
template <class Values, class Heading>
Table numbers_table(const std::string& first, const Values& values, const Heading& heading, int digits) {
  Table table({Column(first)});
  for (const auto& value : values) table.column({heading(value), Digits{digits}});
  return table;
}
template <class Values, class Number>
std::vector<Cell> cells(const std::string& first, const Values& values, const Number& number) {
  std::vector<Cell> row = {first};
  for (const auto& value : values) row.emplace_back(number(value));
  return row;
}
std::string short_number(double number) { return fmt::format("{:g}", number); }

constexpr Shape kSquare{64, 64};
constexpr double kNorms[] = {1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10};

std::vector<muonwalk::Piece> pieces_of(const AttentionRows& attention, QkvSplit split) {
  if (split == QkvSplit::none) return {{"q, k and v", {{0, attention.rows()}}}};
  return qkv_pieces(attention, split);
}

double relative_on(const Matrix& wrong, const Matrix& right, const muonwalk::Piece& piece) {
  const Matrix meant = take_rows(right, piece);
  return distance(take_rows(wrong, piece), meant) / frobenius_norm(meant);
}

}  // namespace

double rms_of(const Matrix& x) { return x.empty() ? 0 : frobenius_norm(x) / std::sqrt(static_cast<double>(x.size())); }

double distance(const Matrix& x, const Matrix& y) {
  if (x.rows() != y.rows() || x.cols() != y.cols())
    throw std::invalid_argument(fmt::format("a matrix of {} has no distance from one of {}; they need one shape",
                                            shape_text(x.rows(), x.cols()), shape_text(y.rows(), y.cols())));
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x.data()[i]) - static_cast<double>(y.data()[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

Matrix noise(Shape shape, std::uint64_t seed, int step) {
  return random_matrix({seed, kFirstNoise + static_cast<std::uint64_t>(step)}, shape.rows, shape.cols);
}

MuonSettings for_tables(MuonSettings settings) {
  settings.newton_schulz.products = Products::chain;
  settings.newton_schulz.threads = 1;
  return settings;
}

const std::vector<Recipe>& main_recipes() {
  static const std::vector<Recipe> all = [] {
    std::vector<Recipe> first(recipes().begin(), recipes().begin() + kMainRecipes);
    for (Recipe& recipe : first) recipe.settings = with_recipe(recipe.name, {});
    return first;
  }();
  return all;
}

std::string relative_text(double relative) {
  constexpr double kLastBits = 1e-5;
  if (relative == 0) return "same bits";
  if (relative < kLastBits) return "last bits";
  const double percent = 100 * relative;
  return percent < 1 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
}

double UpdateRms::scaled(Scale scale) const {
  const double factor = scale == Scale::matched_rms ? static_cast<double>(MuonSettings().rms) : 1;
  return factor * static_cast<double>(shape_scale(shape, scale)) * orthogonal;
}

std::string update_rms_table(const std::vector<UpdateRms>& all, double formula) {
  Table table({{"of an update, for lr 1"}, {"AdamW", Digits{3}}});
  for (const Scale scale : kScales) table.column({scale_name(scale), Digits{3}});
  for (const UpdateRms& each : all) {
    std::vector<Cell> row = {shape_text(each.shape.rows, each.shape.cols), each.adamw};
    for (const Scale scale : kScales) row.emplace_back(each.scaled(scale));
    table.row(row);
  }
  table.row({"AdamW, by formula", formula});
  return labelled("rms", table.lines());
}

std::string weight_rms_table(const std::vector<WeightRms>& all) {
  Table table = numbers_table(
      "rms of weights, by steps", kRmsSteps, [](int steps) { return std::to_string(steps); }, 2);
  for (const WeightRms& each : all)
    table.row(
        cells(each.name + (each.decays ? ", decayed" : ", not decayed"), each.rms, [](double rms) { return rms; }));
  return labelled("decay", table.lines());
}

Matrix RecipeTrial::end(const MuonSettings& recipe) const {
  MuonSettings settings = for_tables(recipe);
  settings.newton_schulz.precision = precision;
  Matrix w = noise(shape, seed + 1, 0), m(shape.rows, shape.cols);
  Flat v(static_cast<std::size_t>(settings.second_moment.count(shape)));
  for (int step = 0; step < steps; ++step)
    recipe_step(w, m, noise(shape, seed, step), settings, "matrix", nullptr, v.empty() ? nullptr : &v);
  return w;
}

double RecipeTrial::relative_distance(const MuonSettings& recipe, const MuonSettings& other) const {
  const Matrix w = end(recipe);
  return distance(end(other), w) / distance(w, noise(shape, seed + 1, 0));
}

std::vector<LineEffect> line_effects(const Recipe& recipe, const RecipeTrial& trial) {
  std::vector<LineEffect> effects;
  for (const RecipeLine& line : recipe_lines()) {
    const std::size_t first = effects.size();
    const std::string mine = line.text(recipe.settings);
    for (const Recipe& other : main_recipes()) {
      const std::string theirs = line.text(other.settings);
      if (theirs == mine) continue;
      const auto known = std::find_if(effects.begin() + static_cast<std::ptrdiff_t>(first), effects.end(),
                                      [&](const LineEffect& effect) { return effect.theirs == theirs; });
      if (known != effects.end()) {
        known->recipes.push_back(other.name);
        continue;
      }
      MuonSettings settings = recipe.settings;
      line.take(settings, other.settings);
      effects.push_back({line.about, mine, theirs, {other.name}, trial.relative_distance(recipe.settings, settings)});
    }
  }
  return effects;
}

std::string line_table(const std::string& name, std::uint64_t seed) {
  RecipeTrial trial;
  trial.seed = seed;
  Recipe recipe = recipe_named(name);
  recipe.settings = with_recipe(name, {});
  const std::vector<LineEffect> effects = line_effects(recipe, trial);
  Table table({{"line"}, {"in " + recipe.name}, {"in its place"}, {"as in"}, {"moves weights by", Side::right}});
  std::string about;
  for (const LineEffect& effect : effects) {
    const bool again = effect.about == about;
    about = effect.about;
    const bool all_others = effect.recipes.size() + 1 == main_recipes().size();
    const std::string as_in = all_others ? "all others" : fmt::format("{}", fmt::join(effect.recipes, " "));
    table.row({again ? "" : about, again ? "" : effect.mine, effect.theirs, as_in, relative_text(effect.distance)});
  }
  std::vector<std::string> lines = table.lines();
  std::vector<std::string> whole;
  for (const Recipe& other : main_recipes())
    if (other.name != recipe.name)
      whole.push_back(other.name + " " + relative_text(trial.relative_distance(recipe.settings, other.settings)));
  append(lines, wrap_items("all lines of ", whole, output_columns() - 8));
  return labelled("lines", lines);
}

Matrix split_update(const Matrix& u, const AttentionRows& attention, QkvSplit split) {
  MuonSettings settings = for_tables({});
  settings.lr = 1;
  Matrix update = u;
  for (const muonwalk::Piece& piece : pieces_of(attention, split)) {
    Matrix rows = orthogonalize(take_rows(u, piece), settings, "qkv");
    const float scale = update_scale({rows.rows(), rows.cols()}, settings);
    for (float& value : rows.flat()) value *= scale;
    put_rows(rows, piece, update);
  }
  return update;
}

SplitError split_error(const AttentionRows& attention, Index cols, QkvSplit split, float size_of_kv,
                       std::uint64_t seed) {
  Matrix u = noise({attention.rows(), cols}, seed, 0);
  const std::vector<muonwalk::Piece> three = qkv_pieces(attention, QkvSplit::three);
  for (const std::size_t kv : {1, 2}) {
    Matrix rows = take_rows(u, three[kv]);
    for (float& value : rows.flat()) value *= size_of_kv;
    put_rows(rows, three[kv], u);
  }
  const Matrix right = split_update(u, attention, QkvSplit::three), other = split_update(u, attention, split);
  SplitError error;
  error.calls = static_cast<int>(pieces_of(attention, split).size());
  error.all = distance(other, right) / frobenius_norm(right);
  error.q = relative_on(other, right, three[0]);
  error.k = relative_on(other, right, three[1]);
  error.v = relative_on(other, right, three[2]);
  return error;
}

std::string split_table(const AttentionRows& attention, Index cols, std::uint64_t seed) {
  Table table(
      {{fmt::format("qkv {}, {} : {} heads", shape_text(attention.rows(), cols), attention.heads, attention.kv_heads)},
       {"calls", number_text},
       {"update off by", Side::right},
       {"q", Side::right},
       {"k", Side::right},
       {"v", Side::right}});
  const auto add = [&](const char* what, QkvSplit split, float size_of_kv) {
    const SplitError error = split_error(attention, cols, split, size_of_kv, seed);
    table.row({what, error.calls, relative_text(error.all), relative_text(error.q), relative_text(error.k),
               relative_text(error.v)});
  };
  add("in one call; random gradients, all of one size", QkvSplit::none, 1);
  add("those of k and v a tenth of that", QkvSplit::none, 0.1f);
  add("those of k and v ten times that", QkvSplit::none, 10);
  add("a call for each head; all of one size", QkvSplit::heads, 1);
  table.row({"published, one call: Megatron-LM #7117", 1, "26 %", "", "95 %", "95 %"});
  return labelled("split", table.lines());
}

std::string heads_text(const AttentionRows& attention, Range rows) {
  std::vector<std::string> heads;
  for (const muonwalk::Piece& head : qkv_pieces(attention, QkvSplit::heads)) {
    const Index shared = intersection(head.rows[0], rows).size();
    if (shared <= 0) continue;
    if (shared == attention.head_rows)
      heads.push_back(head.name);
    else if (2 * shared == attention.head_rows)
      heads.push_back("half of " + head.name);
    else
      heads.push_back(fmt::format("{} of {} rows of {}", shared, attention.head_rows, head.name));
  }
  return fmt::format("{}", fmt::join(heads, ", "));
}

double output_norm(Shape shape, double input_norm, const Normalization& normalization, int steps, std::uint64_t seed) {
  Matrix x = noise(shape, seed, 0);
  const double factor = input_norm / frobenius_norm(x);
  for (float& value : x.flat()) value = static_cast<float>(value * factor);
  MuonSettings settings = for_tables({});
  settings.newton_schulz.normalization = normalization;
  settings.newton_schulz.steps = steps;
  return frobenius_norm(orthogonalize(x, settings, "table"));
}

std::string norm_table(std::uint64_t seed) {
  // "divides by", among the lines in which recipes differ.
  const RecipeLine& division = *std::find_if(recipe_lines().begin(), recipe_lines().end(),
                                             [](const RecipeLine& line) { return line.about == "divides by"; });
  Table table = numbers_table("output norm, for an input norm of", kNorms, short_number, 2);
  const auto add = [&](const std::string& what, const Normalization& normalization, int steps) {
    table.row(cells(what, kNorms, [&](double norm) { return output_norm(kSquare, norm, normalization, steps, seed); }));
  };
  const int steps = MuonSettings().newton_schulz.steps;
  std::vector<std::string> told;
  for (const Recipe& recipe : main_recipes()) {
    const std::string how = division.text(recipe.settings);
    if (std::find(told.begin(), told.end(), how) != told.end()) continue;
    told.push_back(how);
    std::vector<std::string> names;  // of all recipes that divide so
    for (const Recipe& other : main_recipes())
      if (division.text(other.settings) == how) names.push_back(other.name);
    add(fmt::format("{}: {}", how, fmt::join(names, ", ")), recipe.settings.newton_schulz.normalization, steps);
  }
  add(told.front() + ", a sixth step", main_recipes().front().settings.newton_schulz.normalization, steps + 1);
  return labelled("norms", table.lines());
}

std::string monitor_table(const std::vector<std::vector<NamedMatrix>>& rows_of_ranks,
                          const std::vector<Parameter>& matrices) {
  if (rows_of_ranks.empty()) return "";
  Table table({{"rms of last update / weights"}});
  for (const Parameter& matrix : matrices) table.column({matrix.name, Side::right});
  for (const NamedMatrix& each : rows_of_ranks.front()) {
    std::vector<Cell> row = {each.name};
    for (std::size_t p = 0; p < matrices.size(); ++p)
      row.emplace_back(fmt::format("{:.4f} / {:.2f}", each.matrix.flat()[2 * p + 1], each.matrix.flat()[2 * p]));
    table.row(row);
  }
  return labelled("monitor", table.lines());
}

}  // namespace muonwalk::sim
