#include "src/optim/strategies/tp_cuts.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {

TpCuts::TpCuts(const Layout& layout) : tp_(layout.grid.tp()) {
  for (const DistMeta& meta : layout.parameters()) dims_[meta.name] = meta.tp_split_dim;
}

int TpCuts::pieces(const std::string& parameter) const { return dim_of(parameter) == SplitDim::none ? 1 : tp_; }

SplitDim TpCuts::dim_of(const std::string& parameter) const {
  const auto found = dims_.find(parameter);
  if (found == dims_.end())
    throw std::invalid_argument("how TP cuts parameter " + in_quotes(parameter) +
                                " is not known; it is not in the layout that the optimizer was made for");
  return found->second;
}

void require_no_fused_matrices(const std::string& strategy, const MuonSettings& settings) {
  if (settings.fused.empty()) return;
  throw UsageError(fmt::format(
      "{} can't orthogonalize parameter {} in {} pieces, because TP may cut across them; take it as one matrix, or "
      "another strategy",
      strategy, in_quotes(settings.fused.begin()->first), settings.fused.begin()->second.size()));
}

std::string slice_name(const DistMeta& meta, int tp_rank) { return fmt::format("{}, TP slice {}", meta.name, tp_rank); }

}  // namespace muonwalk
