#include "sim/pictures/strip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/pictures/strip_origin.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

using Blocks = std::vector<const RecordedBlock*>;

Blocks shown_in(const Recording& recording, int step, std::size_t rank) {
  Blocks blocks;
  for (const RecordedBlock& block : recording.steps[static_cast<std::size_t>(step)].holds[rank])
    blocks.push_back(&block);
  return blocks;
}

// What the rank showed of a tensor when it last did, before `step`; empty when it never did.
Blocks last_shown(const Recording& recording, int step, std::size_t rank, int tensor) {
  for (int earlier = step - 1; earlier >= 0; --earlier) {
    Blocks blocks = shown_in(recording, earlier, rank);
    const auto other = [&](const RecordedBlock* block) { return block->tensor != tensor; };
    blocks.erase(std::remove_if(blocks.begin(), blocks.end(), other), blocks.end());
    if (!blocks.empty()) return blocks;
  }
  return {};
}

Blocks held_before(const Recording& recording, int step, std::size_t rank) {
  if (step == 0) return {};
  Blocks before;
  const auto add = [&](const Blocks& more) {
    for (const RecordedBlock* block : more)
      if (std::find(before.begin(), before.end(), block) == before.end()) before.push_back(block);
  };
  bool first_time = false;
  const Blocks now = shown_in(recording, step, rank);
  for (const RecordedBlock* block : now) {
    const Blocks last = last_shown(recording, step, rank, block->tensor);
    first_time = first_time || (last.empty() && block->from.empty());
    add(last);
    for (const int tensor : block->from) add(last_shown(recording, step, rank, tensor));
  }
  if (now.empty() || first_time) add(shown_in(recording, step - 1, rank));
  return before;
}

std::string traffic_text(const RecordedStep& step) {
  if (step.moves.empty()) return "nothing travels";
  std::vector<std::pair<std::string, std::vector<std::string>>> used;  // collectives and their groups, as first used
  long long bytes = 0;
  for (const RecordedMove& move : step.moves) {
    const auto same = [&](const auto& collective) { return collective.first == move.collective; };
    auto found = std::find_if(used.begin(), used.end(), same);
    if (found == used.end()) found = used.insert(used.end(), {move.collective, {}});
    auto& groups = found->second;
    if (std::find(groups.begin(), groups.end(), move.group) == groups.end()) groups.push_back(move.group);
    bytes += move.bytes;
  }
  std::vector<std::string> calls;  // "all_gather over tp, dp"
  for (const auto& [collective, groups] : used)
    calls.push_back(fmt::format("{} over {}", collective, fmt::join(groups, ", ")));
  return fmt::format("{} · {} · {}", fmt::join(calls, " · "),
                     count_text(static_cast<Index>(step.moves.size()), "message"), bytes_text(bytes));
}

// ", holds q 0–5 and up 0–11": which elements of which parameter are in a buffer.
std::string contents_text(const Recording& recording, const RecordedBlock& block) {
  if (!block.spans) return "";
  std::vector<std::string> all;
  for (const RecordedSpan& span : *block.spans)
    all.push_back(fmt::format("{} {}", recording.tensors[static_cast<std::size_t>(span.tensor)].name,
                              range_text({span.first, span.first + span.end - span.begin})));
  return all.empty() ? ", padding" : fmt::format(", holds {}", fmt::join(all, " and "));
}

// ", from bucket 0, 8–19", ", Σ of ranks 0, 2".
std::string origin_text(const Strip& strip, const RecordedBlock& block) {
  std::string text;
  if (const auto place = strip.places.find(&block); place != strip.places.end())
    text += ", " + place_text(place->second);
  if (const auto sum = strip.sums.find(&block); sum != strip.sums.end()) text += ", " + sum_text(sum->second);
  return text;
}

std::string blocks_text(const Recording& recording, const Strip& strip,
                        const std::vector<const RecordedBlock*>& blocks) {
  std::vector<std::string> all;
  for (const RecordedBlock* block : blocks)
    all.push_back(fmt::format("{} ({}, {}, {}{})", block->name, part_text(*block), block_shape_text(*block),
                              bytes_text(block->bytes), contents_text(recording, *block) + origin_text(strip, *block)));
  return fmt::format("{}", fmt::join(all, " and "));
}

std::string title_words(const Recording& recording, int step, const Strip& strip) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  return fmt::format("Step {}: {}; {}.", recorded.number, recorded.title, strip.traffic);
}

// A line, with its line end in front, or nothing for a rank of which there is nothing to say.
std::string rank_words(const Recording& recording, int step, const Strip& strip, std::size_t rank) {
  std::vector<std::string> clauses;
  if (!strip.before[rank].empty()) clauses.push_back("before: " + blocks_text(recording, strip, strip.before[rank]));
  for (const StripArrow& arrow : strip.arrows)
    if (arrow.from == static_cast<int>(rank))
      clauses.push_back(fmt::format("sends {} to rank {}", bytes_text(arrow.bytes), arrow.to));
  if (!strip.after[rank].empty()) clauses.push_back("after: " + blocks_text(recording, strip, strip.after[rank]));
  for (const std::string& line : recording.steps[static_cast<std::size_t>(step)].says[rank])
    clauses.push_back(fmt::format("says: {}", line));
  if (clauses.empty()) return "";
  return fmt::format("\n{}: {}.", recording.ranks[rank].label, fmt::join(clauses, "; "));
}

}  // namespace

Strip strip_of(const Recording& recording, int step) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  Strip strip;
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    strip.before.push_back(held_before(recording, step, rank));
    strip.after.push_back(shown_in(recording, step, rank));
  }
  std::map<std::pair<int, int>, StripArrow> arrows;
  for (const RecordedMove& move : recorded.moves) {
    StripArrow& arrow = arrows[{move.from, move.to}];
    arrow = {move.from, move.to, arrow.bytes + move.bytes, arrow.messages + 1};
  }
  for (const auto& [ends, arrow] : arrows) strip.arrows.push_back(arrow);
  for (std::size_t rank = 0; rank < strip.after.size(); ++rank)
    for (const RecordedBlock* block : strip.after[rank]) add_origin(recorded, static_cast<int>(rank), *block, strip);
  strip.traffic = traffic_text(recorded);
  return strip;
}

bool is_whole(const RecordedBlock& block) { return block.unit.empty() || (block.begin == 0 && block.end == block.of); }

std::string part_text(const RecordedBlock& block) {
  if (is_whole(block)) return "all of it";
  return fmt::format("{} {} of {}", block.unit, range_text({block.begin, block.end}), number_text(block.of));
}

std::string block_shape_text(const RecordedBlock& block) {
  return block.flat ? number_text(block.cols) : shape_text(block.rows, block.cols);
}

std::string place_text(const StripPlace& place) {
  return fmt::format("from {}, {}", block_name(*place.buffer), range_text(place.range));
}

std::string sum_text(const std::vector<int>& ranks) { return fmt::format("Σ of ranks {}", fmt::join(ranks, ", ")); }

std::string block_name(const RecordedBlock& block) { return block.name.substr(0, block.name.find(", ")); }

std::string strip_words(const Recording& recording, int step) {
  const Strip strip = strip_of(recording, step);
  std::string text = title_words(recording, step, strip);
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) text += rank_words(recording, step, strip, rank);
  return text;
}

std::string strip_words(const Recording& recording, int step, int rank) {
  const Strip strip = strip_of(recording, step);
  return title_words(recording, step, strip) + rank_words(recording, step, strip, static_cast<std::size_t>(rank));
}

}  // namespace muonwalk::sim
