#include <fmt/format.h>

#include "docs/figures/data/figure.hpp"
#include "lesson_09_full_step.hpp"
#include "src/text/text.hpp"
#include "src/train/sent_bytes.hpp"

namespace muonwalk {
namespace {

using sim::Options;
using sim::RankInfo;
using sim::SentBytes;

// The lesson's own parameters and settings. One process steps them too: the work of all is compared with its.
void ask_lesson_09(const RankInfo& rank) {
  lesson_09::request.settle(rank);
  if (lesson_09::data == nullptr) lesson_09::data = lesson_09::request.data(rank);
  lesson_09::optimizer = lesson_09::request.optimizer(lesson_09::data->parameters());
}

double newton_schulz_of_all(const RankInfo& rank) {
  return flops(plan_kinds(lesson_09::layouts_of(rank), lesson_09::plan_of), phases::orthogonalize);
}

std::vector<Bar> bars_of(const std::vector<std::string>& chosen) {
  Options options;
  options.grid = chosen_grid(chosen);
  const RankInfo rank = options.rank_info(0);
  ask_lesson_09(rank);
  const Plan plan = lesson_09::plan_of(lesson_09::layout_of(rank), rank.place);
  const SentBytes sent = sim::sent_bytes(plan);
  const Index peak = peak_elements(plan);
  const double work = newton_schulz_of_all(rank) / newton_schulz_of_all(Options().rank_info(0));
  return {{{double(sent.gradients), double(sent.updates), double(sent.slices), double(sent.weights)},
           {number_text(sent.total())}},
          {{0, 0, 0, 0, double(peak)}, {number_text(peak)}},
          {{0, 0, 0, 0, 0, work}, {fmt::format("{:.2f}", work)}}};
}

}  // namespace

nlohmann::json full_step_figure() {
  return BarFigure{
      "What a step costs on other grids",
      "Rank 0, in one step of Muon on the matrices of this lesson, as its plan says. More DP ranks own less each, and "
      "all of them still do nearly all of Newton–Schulz; more TP ranks turn bytes over dp into bytes over tp.",
      {{"dp", "data-parallel ranks (dp)", doubled(64), "4"}, {"tp", "tensor-parallel ranks (tp)", doubled(8), "2"}},
      {"reduce-scatter of gradients", "DP gather", "TP gather", "all-gather of weights", "", ""},
      {{"sent, in B", "bytes"},
       {"held at most, elements", "elements"},
       {"Newton–Schulz of all ranks, × one process", "work"}},
      {""},
      bars_of}
      .json();
}

}  // namespace muonwalk
