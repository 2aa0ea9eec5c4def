#include "tools/scale/training_layout.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

const char* recomputation_name(Recomputation recomputation) {
  if (recomputation == Recomputation::none) return "none";
  return recomputation == Recomputation::selective ? "selective" : "full";
}

Recomputation parse_recomputation(const std::string& word) {
  for (const Recomputation each : {Recomputation::none, Recomputation::selective, Recomputation::full})
    if (word == recomputation_name(each)) return each;
  throw UsageError("--recompute " + as_typed(word) + " is not known; it is none, selective or full");
}

void require_sizes(const TrainingLayout& layout) {
  for (const auto& [name, size] : {std::pair{"nodes", layout.nodes},
                                   {"dp", layout.dp},
                                   {"tp", layout.tp},
                                   {"pp", layout.pp},
                                   {"the micro-batch", layout.micro_batch},
                                   {"the accumulation", layout.accumulation},
                                   {"ep", layout.ep},
                                   {"the number of chunks", layout.chunks}})
    if (size < 1 || size > kMostOfALayout)
      throw UsageError(
          fmt::format("{} is {}; it can be anything from 1 to {}", name, size, number_text(kMostOfALayout)));
  const std::int64_t ranks = std::int64_t{layout.dp} * layout.tp * layout.pp;
  if (ranks > kMostOfALayout)
    throw UsageError(fmt::format("dp {} × tp {} × pp {} makes {} ranks; a layout has at most {}", layout.dp, layout.tp,
                                 layout.pp, number_text(ranks), number_text(kMostOfALayout)));
}

void require_sensible(const TrainingLayout& layout, int node) {
  require_sizes(layout);
  if (layout.zero != 0 && layout.zero != 1)
    throw UsageError(fmt::format("ZeRO stage {} is not modelled; it can be 0 or 1", layout.zero));
  if (layout.dp % layout.ep != 0)
    throw UsageError(
        fmt::format("ep {} does not divide dp {}; experts are dealt out over DP ranks", layout.ep, layout.dp));
  const std::int64_t ranks = std::int64_t{layout.dp} * layout.tp * layout.pp, there = std::int64_t{layout.nodes} * node;
  if (ranks != there)
    throw UsageError(
        fmt::format("dp {} × tp {} × pp {} makes {} ranks, and {} of {} GPUs have {}; the product must be "
                    "that number",
                    layout.dp, layout.tp, layout.pp, number_text(ranks), count_text(layout.nodes, "node"), node,
                    number_text(there)));
}

std::string text(const TrainingLayout& layout) {
  std::string grid = fmt::format("dp {} × tp {}", layout.dp, layout.tp);
  if (layout.pp > 1) grid += fmt::format(" × pp {}", layout.pp);
  if (layout.ep > 1) grid += fmt::format(", ep {}", layout.ep);
  return fmt::format("{}, ZeRO-{}, {} of {}", grid, layout.zero,
                     layout.accumulation == 1 ? "1 micro-batch" : number_text(layout.accumulation) + " micro-batches",
                     number_text(layout.micro_batch));
}

}  // namespace muonwalk::sim
