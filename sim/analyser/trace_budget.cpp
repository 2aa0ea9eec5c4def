#include "sim/analyser/trace_budget.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {

void TraceBudget::require_short(const std::string& text) const {
  if (static_cast<std::int64_t>(text.size()) <= kMostTextBytes) return;
  throw UsageError(fmt::format(
      "{} holds a name of {} bytes, and no more than {} are kept of a name; name a file that torch.profiler "
      "or a lesson's --trace wrote",
      in_quotes(path_), text.size(), kMostTextBytes));
}

void TraceBudget::require_flat(std::size_t depth) const {
  if (depth <= kMostDepth) return;
  throw UsageError(
      fmt::format("{} nests its values more than {} deep, as no trace does; name a file that torch.profiler or a "
                  "lesson's --trace wrote",
                  in_quotes(path_), kMostDepth));
}

void TraceBudget::refuse() const {
  throw UsageError(fmt::format(
      "{} holds more events and names than are kept in memory: they would take more than {} MiB; record fewer steps",
      in_quotes(path_), kMostKeptBytes >> 20));
}

}  // namespace muonwalk::sim
