#include <fmt/format.h>

#include <algorithm>

#include "docs/figures/data/figure.hpp"
#include "lesson_15_sharding_layouts.hpp"
#include "src/layout/sharding.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

const char* const kToy = "this lesson's";
const char* const kSlowest = "how long the slowest rank takes, where 1 is an equal share";
const char* const kGathers = "bytes that come to the rank that gathers most, for matrices that are cut";
const char* const kElements = "elements that the fullest rank owns, over the mean";

Bar bar_of(const Sharding& sharding, const std::string& shown, double element_bytes) {
  if (shown == kGathers) {
    const double bytes = double(*std::max_element(sharding.gathered.begin(), sharding.gathered.end())) * element_bytes;
    return {{bytes}, {bytes_text(static_cast<long long>(bytes))}};
  }
  const double value = shown == kSlowest ? sharding.slowdown() : most_over_mean(sharding.elements);
  return {{value}, {fmt::format("{:.2f}", value)}};
}

// What the five layouts of a model mean on a grid.
std::vector<Sharding> shardings_of(const std::string& model, const Grid& grid) {
  const bool toy = model == kToy;
  const Index bucket = toy ? lesson_15::kBucket : megatron_bucket(grid.dp());
  const std::vector<Parameter> matrices = toy ? lesson_15::kMatrices : sim::with_whole_experts(model);
  std::vector<Sharding> shardings;
  for (const auto& [name, layout] : sim::layouts_of(matrices, grid, lesson_15::kWays, bucket))
    shardings.push_back(sharding_of(layout));
  return shardings;
}

std::vector<Bar> bars_of(const std::vector<std::string>& chosen) {
  sim::Options options;
  options.grid = chosen_grid(chosen);
  const double element_bytes = lesson_15::settings_of(options.rank_info(0)).gathered() == Precision::bf16 ? 2 : 4;
  // What is shown of them changes fastest, and takes no time.
  static std::string planned;
  static std::vector<Sharding> shardings;
  if (const std::string asked = fmt::format("{} {} {}", chosen.at(0), chosen.at(1), chosen.at(2)); asked != planned)
    shardings = shardings_of(chosen.at(2), options.grid), planned = asked;
  std::vector<Bar> bars;
  for (const Sharding& sharding : shardings) bars.push_back(bar_of(sharding, chosen.at(3), element_bytes));
  return bars;
}

}  // namespace

nlohmann::json sharding_figure() {
  BarFigure figure = {
      "The five layouts on other grids",
      "More DP ranks cut more matrices, and each owner of a part does all the work on its matrix. Whole "
      "matrices stay near 1 until there are fewer of them than ranks. The longest bar of each grid has all the room.",
      {{"dp", "data-parallel ranks (dp)", doubled(256), "4"},
       {"tp", "tensor-parallel ranks (tp)", doubled(8), "2"},
       {"model", "model", {kToy, "gpt2", "llama-7b", "qwen3-30b"}, kToy},
       {"shown", "shown", {kSlowest, kGathers, kElements}, kSlowest}},
      {"each layout"},
      {},
      {""},
      bars_of,
      true};
  for (const sim::OwnershipPolicy& way : lesson_15::kWays) figure.rows.push_back({way.name, "all"});
  return figure.json();
}

}  // namespace muonwalk
