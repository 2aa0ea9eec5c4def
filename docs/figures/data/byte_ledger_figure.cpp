#include "docs/figures/data/figure.hpp"
#include "lesson_13_byte_ledger.hpp"
#include "src/text/text.hpp"
#include "src/train/sent_bytes.hpp"
#include "src/train/models.hpp"

namespace muonwalk {
namespace {

const char* const kSmall = "each side a sixteenth";
const char* const kPublished = "as published";

std::vector<Bar> bars_of(const std::vector<std::string>& chosen) {
  const Grid grid = chosen_grid(chosen);
  const bool small = chosen.at(2) == kSmall;
  lesson_13::data = std::make_unique<RandomTraining>(
      small ? small_published_run_parameters() : published_run_parameters(), 1, std::uint64_t{1});
  std::vector<sim::SentBytes> sent;
  for (const sim::Contender& contender : sim::contenders())
    sent.push_back(sim::planned(contender, lesson_13::layout_of(grid), grid.place(0)));
  std::vector<Bar> bars;
  for (const sim::SentBytes& of : sent)
    bars.push_back({{double(of.gradients), double(of.updates), double(of.slices), double(of.weights)},
                    {number_text(of.total()), ratio_text(of.total(), sent[sim::zero1].total())}});
  return bars;
}

}  // namespace

nlohmann::json byte_ledger_figure() {
  BarFigure figure = {
      "What rank 0 sends in a step, on other grids",
      "With tp 1, every ratio is that of the idea above: dp makes all bars longer alike. With TP, the bars of AdamW "
      "shrink, and Muon's get a part that AdamW does not have. With dp 1 it is all that is left.",
      {{"dp", "data-parallel ranks (dp)", doubled(64), "2"},
       {"tp", "tensor-parallel ranks (tp)", doubled(8), "2"},
       {"matrices", "sizes", {kSmall, kPublished}, kSmall}},
      {"gradients", "DP gather", "TP gather", "weights"},
      {},
      {"all, in B", "to ZeRO-1"},
      bars_of};
  for (const sim::Contender& contender : sim::contenders()) figure.rows.push_back({contender.name, "bytes"});
  return figure.json();
}

}  // namespace muonwalk
