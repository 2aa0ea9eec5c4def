#include "sim/pictures/strip_words.hpp"

#include <fmt/format.h>

#include <vector>

#include "sim/pictures/strip.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string blocks_text(const std::vector<const RecordedBlock*>& blocks) {
  std::vector<std::string> all;
  for (const RecordedBlock* block : blocks)
    all.push_back(fmt::format("{} ({}, {}, {})", block->name, part_text(*block), block_shape_text(*block),
                              bytes_text(block->bytes)));
  return fmt::format("{}", fmt::join(all, " and "));
}

}  // namespace

std::string strip_words(const Recording& recording, int step) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  const Strip strip = strip_of(recording, step);
  std::string text = fmt::format("Step {}: {}; {}.", recorded.number, recorded.title, strip.traffic);
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    std::vector<std::string> clauses;
    if (!strip.before[rank].empty()) clauses.push_back("before: " + blocks_text(strip.before[rank]));
    for (const StripArrow& arrow : strip.arrows)
      if (arrow.from == static_cast<int>(rank))
        clauses.push_back(fmt::format("sends {} to rank {}", bytes_text(arrow.bytes), arrow.to));
    if (!strip.after[rank].empty()) clauses.push_back("after: " + blocks_text(strip.after[rank]));
    for (const std::string& line : recorded.says[rank]) clauses.push_back(fmt::format("says: {}", line));
    if (!clauses.empty()) text += fmt::format("\n{}: {}.", recording.ranks[rank].label, fmt::join(clauses, "; "));
  }
  return text;
}

}  // namespace muonwalk::sim
