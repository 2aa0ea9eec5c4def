#include "sim/pictures/strip_origin.hpp"

#include <algorithm>

namespace muonwalk::sim {
namespace {

const std::vector<const RecordedBlock*>& held_before(const Strip& strip, int rank) {
  return strip.before[static_cast<std::size_t>(rank)];
}

// Where the elements of a block came from: the parts of its tensor that its rank and those who sent to it held before.
std::vector<StripSeam> seams_of(const Strip& strip, int rank, const RecordedBlock& block) {
  std::vector<StripSeam> seams;
  Index of = 0;
  const auto add = [&](int source) {
    for (const RecordedBlock* held : held_before(strip, source)) {
      if (held->tensor != block.tensor || held->unit.empty() || (of != 0 && held->of != of)) continue;
      of = held->of;
      seams.push_back({source, held->begin, held->end, held->of, held->unit == "rows"});
    }
  };
  for (int source = 0; source < static_cast<int>(strip.before.size()); ++source) {
    const auto sends = [&](const StripArrow& arrow) { return arrow.from == source && arrow.to == rank; };
    if (source == rank || std::any_of(strip.arrows.begin(), strip.arrows.end(), sends)) add(source);
  }
  // Parts that tile it were laid side by side; parts that overlap were summed, and then nothing came from one rank
  // alone.
  Index laid = 0;
  for (const StripSeam& seam : seams) {
    if (seam.begin < laid) return {};
    laid = seam.end;
  }
  return seams.size() > 1 ? seams : std::vector<StripSeam>();
}

// The ranks whose values were added up: all that sent to `rank` took part in a sum, and had the same tensor before, as
// it had itself.
std::vector<int> addends_of(const RecordedStep& step, const Strip& strip, int rank, const RecordedBlock& block) {
  const auto has = [&](int source) {
    const auto& held = held_before(strip, source);
    return std::any_of(held.begin(), held.end(), [&](const auto* other) { return other->tensor == block.tensor; });
  };
  std::vector<int> ranks = {rank};
  for (const RecordedMove& move : step.moves) {
    if (move.to != rank) continue;
    if (move.collective != "reduce_scatter" && move.collective != "all_reduce") return {};
    ranks.push_back(move.from);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  const bool all_had_it = std::all_of(ranks.begin(), ranks.end(), has);
  return ranks.size() > 1 && all_had_it ? ranks : std::vector<int>();
}

// Where a block, or the slice that its rank had of it, lay in a buffer that the rank held, unless it held the block's
// own tensor before.
StripPlace place_of(const Strip& strip, int rank, const RecordedBlock& block) {
  StripPlace found;
  if (block.spans) return found;
  for (const RecordedBlock* held : held_before(strip, rank)) {
    if (held->tensor == block.tensor) return {};
    if (!held->spans) continue;
    for (const RecordedSpan& span : *held->spans)
      if (span.tensor == block.tensor && span.first == 0 && block.rows * block.cols % (span.end - span.begin) == 0)
        found = {held, {span.begin, span.end}};
  }
  return found;
}

}  // namespace

const std::vector<StripSeam>& Strip::seams_of(const RecordedBlock& block) const {
  static const std::vector<StripSeam> none;
  const auto found = seams.find(&block);
  return found == seams.end() ? none : found->second;
}

void add_origin(const RecordedStep& step, int rank, const RecordedBlock& block, Strip& strip) {
  strip.seams[&block] = seams_of(strip, rank, block);
  if (const std::vector<int> ranks = addends_of(step, strip, rank, block); !ranks.empty()) strip.sums[&block] = ranks;
  if (const StripPlace place = place_of(strip, rank, block); place.buffer != nullptr) strip.places[&block] = place;
}

}  // namespace muonwalk::sim
