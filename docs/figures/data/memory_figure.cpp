#include <fmt/format.h>

#include "docs/figures/data/figure.hpp"
#include "lesson_14_memory.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

using sim::Options;
using sim::RankMemory;

const char* const kToy = "this lesson's";
constexpr Index kMega = 1000000;

// The four ways on the rank that holds the most in the last of them.
std::vector<RankMemory> toy_memory(const Grid& grid) {
  Options options;
  options.grid = grid;
  std::vector<RankMemory> shown;
  for (int rank = 0; rank < grid.size(); ++rank) {
    std::vector<RankMemory> ways;
    for (const auto& way : lesson_14::kWays) ways.push_back(lesson_14::planned(options.rank_info(rank), way));
    if (shown.empty() || ways.back().most() > shown.back().most()) shown = ways;
  }
  return shown;
}

std::vector<RankMemory> memory_of_ways(const std::string& model, const Grid& grid) {
  if (model == kToy) return toy_memory(grid);
  const sim::ModelMemory memory = sim::model_memory(model, grid);
  return {memory.replicated.adamw, memory.replicated.muon, memory.sharded.adamw, memory.sharded.muon};
}

double kept(const RankMemory& memory, const char* what) {
  const auto found = memory.kept.find(what);
  return found == memory.kept.end() ? 0 : double(found->second);
}

std::string size_text(const std::string& model, Index bytes) {
  return model == kToy ? number_text(bytes) + " B" : number_text((bytes + kMega / 2) / kMega) + " MB";
}

std::vector<Bar> bars_of(const std::vector<std::string>& chosen) {
  const std::string& model = chosen.at(2);
  std::vector<Bar> bars;
  for (const RankMemory& memory : memory_of_ways(model, chosen_grid(chosen)))
    bars.push_back({{kept(memory, "weights"), kept(memory, "gradients"), kept(memory, "master weights"),
                     kept(memory, "momentum") + kept(memory, "first moments"), kept(memory, "second moments"),
                     double(memory.most() - memory.held())},
                    {size_text(model, memory.held()), size_text(model, memory.most())}});
  return bars;
}

}  // namespace

nlohmann::json memory_figure() {
  BarFigure figure = {
      "What a rank holds, on other grids",
      "The rank that holds the most with ZeRO-1 and Muon. More DP ranks make the masters, the momentum and the second "
      "moments small, and with them all that Muon saves. What is held for a moment does not shrink with them: one "
      "matrix is "
      "whole, however many ranks there are.",
      {{"dp", "data-parallel ranks (dp)", doubled(64), "4"},
       {"tp", "tensor-parallel ranks (tp)", doubled(8), "2"},
       {"model", "model", {kToy, "llama-7b", "qwen3-30b"}, kToy}},
      {"weights", "gradients", "master weights", "momentum, first moments", "second moments", "for a moment"},
      {},
      {"between two steps", "at most"},
      bars_of};
  for (const auto& way : lesson_14::kWays) figure.rows.push_back({way.name, "bytes"});
  return figure.json();
}

}  // namespace muonwalk
