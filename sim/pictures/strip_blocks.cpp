#include "sim/pictures/strip_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kGlyphWidth = 52;  // the largest picture of a matrix
constexpr double kGlyphHeight = 40;
constexpr double kBarHeight = 16;
constexpr double kSmallBarHeight = 10;
constexpr double kAddendHeight = 4;  // of each of the bars that a sum is made of
constexpr double kOutline = 2.5;     // how far the outline stands off
constexpr double kNarrow = 170;      // the narrowest column that a matrix and its words fit into

std::string short_number(long long number) {
  if (number < 10'000) return fmt::format("{}", number);
  return number < 10'000'000 ? fmt::format("{}k", (number + 500) / 1000)
                             : fmt::format("{}M", (number + 500'000) / 1'000'000);
}

std::string short_part(const RecordedBlock& block) {
  if (block.of < 10'000) return part_text(block);
  return fmt::format("{} {}–{} of {}", block.unit, short_number(block.begin), short_number(block.end),
                     short_number(block.of));
}

// The words beside a block: in which state it is, which part of the whole, its size.
std::vector<std::string> block_words(const RecordedBlock& block) {
  std::vector<std::string> words;
  const std::size_t comma = block.name.find(", ");
  if (comma != std::string::npos) words.push_back(block.name.substr(comma + 2));
  const bool whole = is_whole(block);
  if (!whole && !block.flat) words.push_back(short_part(block));
  words.push_back(!block.flat ? fmt::format("{} · {}", block_shape_text(block), short_bytes(block.bytes))
                  : whole     ? fmt::format("{} elements · {}", short_number(block.cols), short_bytes(block.bytes))
                              : short_bytes(block.bytes));
  if (block.note) words.push_back(*block.note);
  if (!whole && block.flat) words.push_back(short_part(block));
  return words;
}

// The words, if they fit; else without "of" how much, which the bar shows as well; else shortened.
std::string fitted(const std::string& words, int room) {
  return text_width(words) <= room ? words : shorten(words.substr(0, words.rfind(" of ")), room);
}

// Lines between elements, where they are large enough to be seen one by one.
std::string cells(const Box& box, double rows, double cols) {
  std::string svg;
  if (box.height / rows < 4 || box.width / cols < 4) return svg;
  for (double row = 1; row < rows; ++row)
    svg += svg_line(box.x, box.y + box.height * row / rows, box.x + box.width, box.y + box.height * row / rows,
                    "class=\"mw-cells\" stroke-width=\"0.6\"");
  for (double col = 1; col < cols; ++col)
    svg += svg_line(box.x + box.width * col / cols, box.y, box.x + box.width * col / cols, box.y + box.height,
                    "class=\"mw-cells\" stroke-width=\"0.6\"");
  return svg;
}

// [begin, end) of `of` units of a box, counted downwards or to the right; never thinner than can be seen.
Box share_of(const Box& box, bool down, Index begin, Index end, Index of) {
  const double all = static_cast<double>(std::max<Index>(1, of));
  const double first = static_cast<double>(begin) / all, share = static_cast<double>(end - begin) / all;
  Box part = box;
  if (down) {
    part.y += box.height * first;
    part.height = box.height * share;
  } else {
    part.x += box.width * first;
    part.width = share > 0 ? std::max(1.0, box.width * share) : 0;
  }
  return part;
}

// Where an outline stands: off the part, but not over the next one in the directions in which there may be one.
Box around(const Box& part, bool wide, bool high) {
  const double x = wide ? kOutline : part.width > 4 ? -1.2 : 0, y = high ? kOutline : part.height > 4 ? -1.2 : 0;
  return {part.x - x, part.y - y, part.width + 2 * x, part.height + 2 * y};
}

std::string titled(const RecordedBlock& block, const std::string& svg) {
  return fmt::format("<g><title>{}</title>\n{}</g>\n",
                     xml_text(fmt::format("{}: {}, {}, {}", block.name, part_text(block), block_shape_text(block),
                                          bytes_text(block.bytes))),
                     svg);
}

}  // namespace

std::string short_bytes(long long bytes) {
  if (bytes < 10'000) return bytes_text(bytes);
  if (bytes < 1'000'000) return fmt::format("{} kB", (bytes + 500) / 1000);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string hatching_svg() {
  return "<defs><pattern id=\"mw-strip-hatching\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"mw-hatch\" "
         "stroke-width=\"3\"/></pattern></defs>\n";
}

Piece StripBlocks::column(const std::vector<const RecordedBlock*>& blocks, int rank, double x, double y, double width) {
  rank_ = rank;
  const bool small = blocks.size() > 3;
  if (!small && blocks.size() > 1 && width > 2 * kNarrow + 16) return side_by_side(blocks, x, y, (width - 16) / 2);
  Piece all;
  for (const RecordedBlock* block : blocks) {
    const Piece piece = small ? row(*block, x, y + all.height, width) : one(*block, x, y + all.height, width);
    all.svg += piece.svg;
    all.height += piece.height + (small ? 4 : 8);
  }
  if (!blocks.empty()) all.height -= small ? 4 : 8;
  return all;
}

Piece StripBlocks::side_by_side(const std::vector<const RecordedBlock*>& blocks, double x, double y,
                                double width) const {
  Piece all;
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    const double top = all.height + (i > 0 ? 8 : 0);
    const Piece left = one(*blocks[i], x, y + top, width);
    const Piece right = i + 1 < blocks.size() ? one(*blocks[i + 1], x + width + 16, y + top, width) : Piece();
    all.svg += left.svg + right.svg;
    all.height = top + std::max(left.height, right.height);
  }
  return all;
}

// A flat array is a bar with its words above; a matrix a rectangle of its own form with its words beside.
Piece StripBlocks::one(const RecordedBlock& block, double x, double y, double width) const {
  return block.flat ? run(block, x, y, width) : matrix(block, x, y, width);
}

// One of many: a small bar, and as many words as fit beside it.
Piece StripBlocks::row(const RecordedBlock& block, double x, double y, double width) const {
  constexpr double kBar = 36;
  const std::string size = block.flat ? short_number(block.cols) : block_shape_text(block);
  const int room = static_cast<int>((width - kBar - 6) / kLetter);
  std::string words = fmt::format("{} {}", block_name(block), is_whole(block) ? size : short_part(block));
  if (fitted(words, room).find("…") != std::string::npos) words = block_name(block);  // the bar shows the part as well
  return {titled(block, part_of(block, {x + 2, y + 3, kBar - 4, kSmallBarHeight})) +
              svg_text(x + kBar + 6, y + 11, "", fitted(words, room)),
          kLine + 2};
}

Piece StripBlocks::run(const RecordedBlock& block, double x, double y, double width) const {
  Piece piece;
  const int room = static_cast<int>(width / kLetter);
  const std::string name = shorten(block_name(block), room);
  piece.svg += svg_text(x, y + 11, "mw-name", name);
  double at = x + (text_width(name) + 1) * 7.3;
  double down = y + 11;
  for (const std::string& all_words : words_of(block)) {  // on the same line while there is room
    const std::string words = fitted(all_words, room);
    if (at + text_width(words) * kLetter > x + width) {
      at = x;
      down += kLine;
    }
    piece.svg += svg_text(at, down, "mw-quiet", words);
    at += (text_width(words) + 2) * kLetter;
  }
  const Piece above = addends(block, {x + 2, down + 7, width - 4, kAddendHeight});
  const Box box = {x + 2, down + 7 + above.height, width - 4, kBarHeight};
  piece.svg += titled(block, above.svg + part_of(block, box));
  piece.height = box.y + box.height + (strip_->seams_of(block).empty() ? 4 : 15) - y;
  return piece;
}

Piece StripBlocks::matrix(const RecordedBlock& block, double x, double y, double width) const {
  const double rows = static_cast<double>(block.unit == "rows" ? block.of : block.rows);
  const double cols = static_cast<double>(block.unit == "columns" ? block.of : block.cols);
  const double scale = std::min(kGlyphWidth / std::max(1.0, cols), kGlyphHeight / std::max(1.0, rows));
  const std::vector<StripSeam>& seams = strip_->seams_of(block);
  const double inset = seams.empty() || !seams.front().rows ? 3 : 12;  // room for the ranks' numbers beside their rows
  const Box box = {x + inset, y + 3, std::max(10.0, cols * scale), std::max(8.0, rows * scale)};
  Piece piece;
  piece.svg = titled(block, part_of(block, box) + cells(box, rows, cols));
  const double left = x + inset + kGlyphWidth + 7;
  const int room = static_cast<int>((x + width - left) / kLetter);
  double down = y + 10;
  piece.svg += svg_text(left, down, "mw-name", shorten(block_name(block), room));
  for (const std::string& words : words_of(block)) {
    const bool in_two = text_width(words) > room && words.rfind("from ", 0) == 0;
    for (const std::string& line : in_two ? wrap_text(words, 1, room) : std::vector<std::string>{words})
      piece.svg += svg_text(left, down += kLine, "mw-quiet", fitted(line, room));
  }
  const bool below = !seams.empty() && !seams.front().rows;
  piece.height = std::max(box.y + box.height + (below ? 15 : 4), down + 4) - y;
  return piece;
}

// What stands in the recording, and where it came from.
std::vector<std::string> StripBlocks::words_of(const RecordedBlock& block) const {
  std::vector<std::string> words = block_words(block);
  if (const auto place = strip_->places.find(&block); place != strip_->places.end())
    words.push_back(place_text(place->second));
  if (const auto sum = strip_->sums.find(&block); sum != strip_->sums.end()) words.push_back(sum_text(sum->second));
  return words;
}

// Where in its whole a block lies.
Box StripBlocks::held_part(const RecordedBlock& block, const Box& box) const {
  return part_of_whole(block, box, block.begin, block.end, block.of, block.unit == "rows");
}

// [begin, end) of `of` units of the whole. Of a flat array the box shows what ranks have of it in any step, such as one
// bucket of a buffer.
Box StripBlocks::part_of_whole(const RecordedBlock& block, const Box& box, Index begin, Index end, Index of,
                               bool down) const {
  if (!block.flat || block.unit != "elements" || of != block.of) return share_of(box, down, begin, end, of);
  Range shown = {begin, end};
  for (const RecordedStep& step : recording_->steps)
    for (const auto& of_rank : step.holds)
      for (const RecordedBlock& other : of_rank) {
        if (other.tensor != block.tensor || other.unit != block.unit || other.of != of) continue;
        shown = {std::min(shown.begin, other.begin), std::max(shown.end, other.end)};
      }
  return share_of(box, false, begin - shown.begin, end - shown.begin, shown.size());
}

// The whole as a pale box, and in it the part that is held.
std::string StripBlocks::part_of(const RecordedBlock& block, const Box& box) const {
  return svg_rectangle(box.x, box.y, box.width, box.height, "class=\"mw-whole\"") +
         filled(block, held_part(block, box)) + names(block, box) +
         svg_rectangle(box.x, box.y, box.width, box.height, "class=\"mw-none mw-edge\" stroke-width=\"0.8\"") +
         outlines(block, box);
}

// The part in its tensor's colour, or with each of the parameters that it holds, on a ground of padding.
std::string StripBlocks::filled(const RecordedBlock& block, const Box& part, const char* more) const {
  if (part.width <= 0 || part.height <= 0) return "";
  if (!block.spans) {
    const auto& tensor = recording_->tensors[static_cast<std::size_t>(block.tensor)];
    return svg_rectangle(part.x, part.y, part.width, part.height,
                         fmt::format("class=\"{}mw-t{} mw-fill\"", more, tensor.colour.value_or(0)));
  }
  std::string svg = svg_rectangle(part.x, part.y, part.width, part.height, "fill=\"url(#mw-strip-hatching)\"",
                                  "<title>padding</title>");
  for (const RecordedSpan& each : *block.spans) svg += span(each, block, part, more);
  return svg;
}

// A parameter in a flat buffer. Its line tells it from its neighbours, unless it is too narrow to be seen beside one.
std::string StripBlocks::span(const RecordedSpan& span, const RecordedBlock& block, const Box& part,
                              const char* more) const {
  const auto& tensor = recording_->tensors[static_cast<std::size_t>(span.tensor)];
  const double element = part.width / static_cast<double>(std::max<Index>(1, block.cols));
  const double width = element * static_cast<double>(span.end - span.begin);
  const double left = part.x + element * static_cast<double>(span.begin);
  const std::string title = fmt::format("<title>{}, elements {}</title>", xml_text(tensor.name),
                                        range_text({span.first, span.first + span.end - span.begin}));
  return svg_rectangle(
      left, part.y, width, part.height,
      fmt::format("class=\"{}mw-t{} {}\"", more, tensor.colour.value_or(0), width >= 2 ? "mw-fill" : "mw-sliver"),
      title);
}

// The names of the parameters in a flat buffer, each in the longest of its pieces between outlines, if there is room.
std::string StripBlocks::names(const RecordedBlock& block, const Box& box) const {
  std::string svg;
  if (!block.spans || box.height < kBarHeight) return svg;
  const Box part = held_part(block, box);
  std::vector<double> cuts = {part.x, part.x + part.width};
  for (const StripSeam& seam : strip_->seams_of(block))
    cuts.push_back(part_of_whole(block, box, seam.begin, seam.end, seam.of, false).x);
  std::sort(cuts.begin(), cuts.end());
  const double element = part.width / static_cast<double>(std::max<Index>(1, block.cols));
  for (const RecordedSpan& span : *block.spans) {
    const std::string& name = recording_->tensors[static_cast<std::size_t>(span.tensor)].name;
    double left = 0, longest = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const double begin = std::max(cuts[i], part.x + element * static_cast<double>(span.begin));
      const double end = std::min(cuts[i + 1], part.x + element * static_cast<double>(span.end));
      if (end - begin > longest) left = begin, longest = end - begin;
    }
    if ((text_width(name) + 0.5) * kLetter < longest)
      svg += svg_text(left + longest / 2, part.y + 12, "mw-middle mw-in", name);
  }
  return svg;
}

// An outline in the colour of the rank that a part came from, the holder's own where nothing was laid side by side,
// with the rank's number below it, or at the left of rows.
std::string StripBlocks::outlines(const RecordedBlock& block, const Box& box) const {
  const auto outline = [](const Box& part, int rank) {
    return svg_rectangle(part.x, part.y, part.width, part.height,
                         fmt::format("rx=\"2\" class=\"mw-none mw-r{} mw-from\"", rank % kColours),
                         fmt::format("<title>from rank {}</title>", rank));
  };
  const std::vector<StripSeam>& seams = strip_->seams_of(block);
  if (seams.empty()) {
    const Box part = held_part(block, box);
    return part.width > 0 && part.height > 0 ? outline(around(part, true, true), rank_) : "";
  }
  std::string svg;
  for (const StripSeam& seam : seams) {
    const bool down = seam.rows && !block.flat;
    const Box part = part_of_whole(block, box, seam.begin, seam.end, seam.of, down);
    if (part.width <= 0 || part.height <= 0) continue;
    svg += outline(around(part, down, !down), seam.rank);
    const std::string number = std::to_string(seam.rank),
                      words = fmt::format("mw-number mw-head{}", seam.rank % kColours);
    if (box.height < kBarHeight && block.flat) continue;  // one of many
    if (down && part.height >= 9)
      svg += svg_text(box.x - 5 - 6 * text_width(number), part.y + part.height / 2 + 4, words, number);
    if (!down && part.width >= 7 * text_width(number) + 2)
      svg += svg_text(part.x + part.width / 2, box.y + box.height + 13, "mw-middle " + words, number);
  }
  return svg;
}

// As one adds up on paper: the addends below each other, each with its rank's outline, and a line; the sum comes below.
Piece StripBlocks::addends(const RecordedBlock& block, const Box& box) const {
  Piece piece;
  const auto sum = strip_->sums.find(&block);
  if (sum == strip_->sums.end()) return piece;
  Box part = held_part(block, box);
  if (part.width <= 0) return piece;
  const double right = part.x + part.width, top = part.y;
  for (const int rank : sum->second) {
    piece.svg += fmt::format("<g><title>what rank {} adds</title>\n", rank) + filled(block, part, "mw-add ") +
                 svg_rectangle(part.x, part.y, part.width, part.height,
                               fmt::format("class=\"mw-none mw-r{} mw-addend\"", rank % kColours)) +
                 "</g>\n";
    part.y += kAddendHeight + 2.5;
  }
  const bool right_of_it = right + 12 < box.x + box.width;
  piece.svg += svg_text(right_of_it ? right + 4 : part.x - 11, (top + part.y) / 2 + 4, "mw-strong", "Σ") +
               svg_line(part.x - 3, part.y + 1, right + 3, part.y + 1, "class=\"mw-rule\" stroke-width=\"1.2\"");
  piece.height = part.y + 6 - top;
  return piece;
}

}  // namespace muonwalk::sim
