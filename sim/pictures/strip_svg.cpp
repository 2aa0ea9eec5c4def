#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/strip_arrows.hpp"
#include "sim/pictures/strip_blocks.hpp"
#include "sim/pictures/strip_page.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kRowPadding = 9;

constexpr char kBecomes[] = "   →   ";

// True when the ranks show nothing and say "what it was   →   what it is now" of what travels: each half then stands on
// its side of the arrows.
bool says_both(const RecordedStep& step) {
  int lines = 0;
  for (std::size_t rank = 0; rank < step.says.size(); ++rank) {
    if (!step.holds[rank].empty()) return false;
    for (const std::string& said : step.says[rank]) {
      if (said.find(kBecomes) == std::string::npos) return false;
      ++lines;
    }
  }
  return lines > 0 && !step.moves.empty();
}

// The lines at `x` below each other, wrapped where they are longer than `room`; blanks that align columns are kept in
// those that fit.
Piece said_piece(const std::vector<std::string>& lines, double x, double top, double room) {
  const int letters = static_cast<int>(room / kLetter);
  Piece piece;
  for (const std::string& line : lines) {
    const auto parts = text_width(line) <= letters ? std::vector<std::string>{line} : wrap_text(line, 2, letters);
    for (const std::string& words : parts) {
      piece.svg += svg_text(x, top + piece.height + 11, "mw-said", words);
      piece.height += kLine;
    }
  }
  return piece;
}

// The half of what a rank says that stands on the left of kBecomes, without the blanks at its end, or on the right.
std::vector<std::string> half_of(const std::vector<std::string>& says, bool left) {
  std::vector<std::string> halves;
  for (const std::string& said : says) {
    const std::size_t at = said.find(kBecomes);
    const std::string before = said.substr(0, at);
    halves.push_back(left ? before.substr(0, before.find_last_not_of(' ') + 1)
                          : said.substr(at + sizeof(kBecomes) - 1));
  }
  return halves;
}

// What stands at the end of the arrows to a rank that neither shows nor says anything: its name, and so no arrow ends
// in empty space.
std::vector<std::string> said_after(const Recording& recording, const RecordedStep& step, std::size_t rank, bool both) {
  if (both) return half_of(step.says[rank], false);
  const auto arrives = [&](const RecordedMove& move) { return move.to == static_cast<int>(rank); };
  if (step.says[rank].empty() && step.holds[rank].empty() &&
      std::any_of(step.moves.begin(), step.moves.end(), arrives)) {
    const std::string& label = recording.ranks[rank].label;
    return {label.substr(0, label.find("  "))};
  }
  return step.says[rank];
}

// The strip of one step, drawn from `top` on.
Piece strip_piece(const Recording& recording, int step, double top) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  const Strip strip = strip_of(recording, step);
  StripBlocks blocks(recording, strip);
  const auto some = [](const auto& of_ranks) {
    return std::any_of(of_ranks.begin(), of_ranks.end(), [](const auto& of_rank) { return !of_rank.empty(); });
  };
  // Without a before there are no columns for it: what comes after, and words, have the room.
  const bool both = says_both(recorded);
  const bool has_before = both || some(strip.before);
  const bool has_gutter = has_before || !strip.arrows.empty();
  double left = kLeft;
  for (const RecordedRank& rank : recording.ranks)
    left = std::max(left, kMargin + kLetter * (text_width(rank.label) - text_width("rank 0  ")) + 8);
  const double width = has_gutter ? gutter_width(strip) : 0;
  const double gutter = has_before ? left + (kRight - left - width) * 0.49 : left;
  const double after = gutter + width;

  Piece piece;
  double y = top + 20;
  for (const std::string& words : wrap_text(fmt::format("{} · {}", recorded.number, recorded.title), 4, 58)) {
    piece.svg += svg_text(kMargin, y, "mw-title", words);
    y += 19;
  }
  y -= 2;
  for (const std::string& words : wrap_text(strip.traffic, 2, 84)) {
    piece.svg += svg_text(kMargin, y, "mw-prose mw-quiet", words);
    y += kLine;
  }
  y -= 4;
  if (both || (has_before && some(strip.after))) {
    y += 12;
    piece.svg += svg_text(left, y, "mw-prose mw-quiet", "before") + svg_text(after, y, "mw-prose mw-quiet", "after");
    y += 6;
  }
  std::vector<RankRow> rows;
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    piece.svg += svg_line(kMargin, y, kRight, y, "class=\"mw-between\" stroke-width=\"0.8\"");
    const double inside = y + kRowPadding;
    const std::string& label = recording.ranks[rank].label;  // "rank 3  dp 1 tp 1"
    const std::size_t space = label.find("  ");
    piece.svg +=
        svg_text(kMargin, inside + 11, fmt::format("mw-name mw-head{}", rank % kColours), label.substr(0, space));
    double height = 14;
    if (space != std::string::npos) {
      piece.svg += svg_text(kMargin, inside + 25, "mw-quiet", label.substr(space + 2));
      height = 27;
    }
    const double before_width = gutter - left - 6;
    const Piece held = both ? said_piece(half_of(recorded.says[rank], true), left, inside, before_width)
                            : blocks.column(strip.before[rank], static_cast<int>(rank), left, inside, before_width);
    Piece holds = blocks.column(strip.after[rank], static_cast<int>(rank), after, inside, kRight - after);
    const Piece said =
        said_piece(said_after(recording, recorded, rank, both), after, inside + holds.height, kRight - after);
    holds.svg += said.svg;
    holds.height += said.height;
    piece.svg += held.svg + holds.svg;
    height = std::max({height, held.height, holds.height});
    rows.push_back({y, height + 2 * kRowPadding});
    y += height + 2 * kRowPadding;
  }
  if (has_gutter) piece.svg += arrows_svg(strip, rows, gutter, after - 8);
  piece.height = y - top;
  return piece;
}

}  // namespace

std::string strip_svg(const Recording& recording, int step) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  return strip_page(fmt::format("{}, step {}: {}", recording.title, recorded.number, recorded.title),
                    strip_words(recording, step), strip_piece(recording, step, 4));
}

std::string strips_svg(const Recording& recording) {
  Piece all;
  std::string words;
  for (int step = 0; step < static_cast<int>(recording.steps.size()); ++step) {
    const Piece strip = strip_piece(recording, step, 4 + all.height);
    all.svg += strip.svg;
    all.height += strip.height + 18;
    words += strip_words(recording, step) + "\n";
  }
  return strip_page(fmt::format("Lesson {}, {}, step by step", recording.number, recording.title), words, all);
}

}  // namespace muonwalk::sim
