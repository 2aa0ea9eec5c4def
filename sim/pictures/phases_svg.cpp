#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/strip_blocks.hpp"
#include "sim/pictures/strip_page.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kNames = 176;   // where the names of the phases end
constexpr double kBlocks = 268;  // where what the rank holds begins
constexpr int kNameLetters = 19;
constexpr double kRowGap = 10;

// The phase without the step that it is of.
std::string phase_of(const std::string& title) {
  const std::size_t colon = title.find(": ");
  return colon == std::string::npos ? title : title.substr(colon + 2);
}

// "all_gather over dp", "sends 108 B": of the rank's own messages.
std::vector<std::string> own_traffic(const RecordedStep& step, int rank) {
  std::vector<std::string> lines;
  long long bytes = 0;
  for (const RecordedMove& move : step.moves) {
    if (move.from != rank) continue;
    const std::string call = fmt::format("{} over {}", move.collective, move.group);
    if (std::find(lines.begin(), lines.end(), call) == lines.end()) lines.push_back(call);
    bytes += move.bytes;
  }
  if (!lines.empty()) lines.push_back("sends " + short_bytes(bytes));
  return lines;
}

// "from 2 4 6", each number in its rank's colour, or "from 7 ranks" where there is no room for them.
std::string ranks_svg(double x, double y, const std::string& word, const std::vector<int>& ranks) {
  double at = x + (text_width(word) + 1) * kLetter;
  double end = at;
  for (const int rank : ranks) end += (text_width(std::to_string(rank)) + 0.6) * 7.3;
  if (end > kBlocks - 8)
    return svg_text(x, y, "mw-quiet", fmt::format("{} {}", word, count_text(static_cast<Index>(ranks.size()), "rank")));
  std::string svg = svg_text(x, y, "mw-quiet", word);
  for (const int rank : ranks) {
    const std::string number = std::to_string(rank);
    svg += svg_text(at, y, fmt::format("mw-number mw-head{}", rank % kColours), number);
    at += (text_width(number) + 0.6) * 7.3;
  }
  return svg;
}

// What goes out and what comes in, with an arrow to what the rank holds then; dashed where nothing travels.
std::string traffic_svg(const Strip& strip, int rank, double top) {
  std::vector<int> to, from;
  long long sent = 0, received = 0;
  for (const StripArrow& arrow : strip.arrows) {
    if (arrow.from == rank) to.push_back(arrow.to), sent += arrow.bytes;
    if (arrow.to == rank) from.push_back(arrow.from), received += arrow.bytes;
  }
  const double y = top + 20;
  const std::string tip =
      fmt::format("<path d=\"M{:.1f} {:.1f}l-7 -3.2v6.4z\" class=\"mw-head-stays\"/>\n", kBlocks - 10, y);
  if (to.empty() && from.empty())
    return fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"mw-stays\"/>", kNames, y, kBlocks - 16) + tip;
  std::string svg = fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"mw-bus\"/>", kNames, y, kBlocks - 16) + tip;
  if (!from.empty())
    svg += fmt::format("<g><title>receives {}</title>\n", bytes_text(received)) +
           ranks_svg(kNames, y - 8, "from", from) + "</g>\n";
  if (!to.empty())
    svg +=
        fmt::format("<g><title>sends {}</title>\n", bytes_text(sent)) + ranks_svg(kNames, y + 16, "to", to) + "</g>\n";
  return svg;
}

}  // namespace

std::string phases_svg(const Recording& recording, int first, int last, int rank) {
  const std::string of = recording.steps[static_cast<std::size_t>(first)].title;
  const std::string work = of.substr(0, of.find(": "));
  Piece body;
  body.svg = svg_text(kMargin, 24, "mw-title", fmt::format("{}, as rank {} takes it", work, rank));
  std::string words;
  double y = 40;
  for (int step = first; step <= last; ++step) {
    const Strip strip = strip_of(recording, step);
    const auto& held = strip.after[static_cast<std::size_t>(rank)];
    if (held.empty()) continue;
    const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
    body.svg += svg_line(kMargin, y, kRight, y, "class=\"mw-between\" stroke-width=\"0.8\"");
    double down = y + kRowGap + 11;
    for (const std::string& line :
         wrap_text(fmt::format("{} {}", recorded.number, phase_of(recorded.title)), 2, kNameLetters)) {
      body.svg += svg_text(kMargin, down, "mw-name", line);
      down += kLine;
    }
    for (const std::string& line : own_traffic(recorded, rank)) {
      body.svg += svg_text(kMargin, down, "mw-quiet", line);
      down += kLine;
    }
    StripBlocks blocks(recording, strip);
    const Piece holds = blocks.column(held, rank, kBlocks, y + kRowGap, kRight - kBlocks);
    body.svg += holds.svg + traffic_svg(strip, rank, y + kRowGap);
    y = std::max({down - kLine + 6, y + kRowGap + holds.height, y + kRowGap + 40}) + 6;
    words += strip_words(recording, step, rank) + "\n";
  }
  body.height = y;
  return strip_page(fmt::format("{}: {} of rank {}, phase by phase", recording.title, work, rank), words, body);
}

}  // namespace muonwalk::sim
