#include "sim/pictures/strip_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kGlyphWidth = 52;  // the largest picture of a matrix
constexpr double kGlyphHeight = 40;
constexpr double kBarHeight = 12;
constexpr double kNarrow = 170;  // the narrowest column that a matrix and its words fit into

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

// The words beside a block: its name, in which state it is, which part of the whole, its size.
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

std::string block_name(const RecordedBlock& block) { return block.name.substr(0, block.name.find(", ")); }

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

// One below the other; many are drawn small. Where there is room for two beside each other, they share it.
Piece StripBlocks::column(const std::vector<const RecordedBlock*>& blocks, double x, double y, double width) const {
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
  const std::string words = fmt::format("{} {}", block_name(block), is_whole(block) ? size : short_part(block));
  const int room = static_cast<int>((width - kBar - 6) / kLetter);
  return {titled(block, part_of(block, {x, y + 1, kBar, kBarHeight})) +
              svg_text(x + kBar + 6, y + 11, "", fitted(words, room)),
          kLine};
}

Piece StripBlocks::run(const RecordedBlock& block, double x, double y, double width) const {
  Piece piece;
  const int room = static_cast<int>(width / kLetter);
  const std::string name = shorten(block_name(block), room);
  piece.svg += svg_text(x, y + 11, "mw-name", name);
  double at = x + (text_width(name) + 1) * 7.3;
  double down = y + 11;
  for (const std::string& all_words : block_words(block)) {  // on the same line while there is room
    const std::string words = fitted(all_words, room);
    if (at + text_width(words) * kLetter > x + width) {
      at = x;
      down += kLine;
    }
    piece.svg += svg_text(at, down, "mw-quiet", words);
    at += (text_width(words) + 2) * kLetter;
  }
  piece.svg += titled(block, part_of(block, {x, down + 5, width, kBarHeight}));
  piece.height = down + 5 + kBarHeight + 3 - y;
  return piece;
}

Piece StripBlocks::matrix(const RecordedBlock& block, double x, double y, double width) const {
  const double rows = static_cast<double>(block.unit == "rows" ? block.of : block.rows);
  const double cols = static_cast<double>(block.unit == "columns" ? block.of : block.cols);
  const double scale = std::min(kGlyphWidth / std::max(1.0, cols), kGlyphHeight / std::max(1.0, rows));
  const Box box = {x, y, std::max(10.0, cols * scale), std::max(8.0, rows * scale)};
  Piece piece;
  piece.svg = titled(block, part_of(block, box) + cells(box, rows, cols));
  const double left = x + kGlyphWidth + 7;
  const int room = static_cast<int>((x + width - left) / kLetter);
  double down = y + 10;
  piece.svg += svg_text(left, down, "mw-name", shorten(block_name(block), room));
  for (const std::string& words : block_words(block))
    piece.svg += svg_text(left, down += kLine, "mw-quiet", fitted(words, room));
  piece.height = std::max(box.height, down + 4 - y);
  return piece;
}

// The whole as a pale box, and the part that is held in the tensor's colour.
std::string StripBlocks::part_of(const RecordedBlock& block, const Box& box) const {
  const auto& tensor = recording_->tensors[static_cast<std::size_t>(block.tensor)];
  const double begin = static_cast<double>(block.begin) / static_cast<double>(std::max<Index>(1, block.of));
  const double share = static_cast<double>(block.end - block.begin) / static_cast<double>(std::max<Index>(1, block.of));
  Box part = box;
  if (block.unit == "rows") {
    part.y += box.height * begin;
    part.height = box.height * share;
  } else {
    part.x += box.width * begin;
    part.width = box.width * share;
  }
  const std::string fill = fmt::format("class=\"mw-t{}\"", tensor.colour.value_or(0));
  return svg_rectangle(box.x, box.y, box.width, box.height, "class=\"mw-whole\"") +
         svg_rectangle(part.x, part.y, share > 0 ? std::max(1.0, part.width) : 0, part.height, fill) +
         svg_rectangle(box.x, box.y, box.width, box.height, "class=\"mw-none mw-edge\" stroke-width=\"0.8\"") +
         seams(block, box);
}

// A stripe in the colour of the rank that each part came from, at the left of rows and below everything else.
std::string StripBlocks::seams(const RecordedBlock& block, const Box& box) const {
  std::string svg;
  const auto found = strip_->seams.find(&block);
  if (found == strip_->seams.end()) return svg;
  for (const StripSeam& seam : found->second) {
    const double begin = static_cast<double>(seam.begin) / static_cast<double>(seam.of);
    const double share = static_cast<double>(seam.end - seam.begin) / static_cast<double>(seam.of);
    const std::string colour = fmt::format("class=\"mw-head{}\"", seam.rank % kColours);
    svg += seam.rows && !block.flat ? svg_rectangle(box.x - 5, box.y + box.height * begin, 3,
                                                    std::max(1.0, box.height * share - 0.8), colour)
                                    : svg_rectangle(box.x + box.width * begin, box.y + box.height + 2,
                                                    std::max(1.0, box.width * share - 0.8), 3, colour);
  }
  return svg;
}

}  // namespace muonwalk::sim
