#include "sim/recording/strip_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/cluster/screen.hpp"
#include "sim/recording/strip.hpp"
#include "sim/recording/strip_words.hpp"
#include "src/layout/palette.hpp"
#include "src/layout/text_table.hpp"
#include "src/layout/xml_text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units; the viewer scales them. Narrow, so that letters stay readable on a phone.
constexpr double kWidth = 560;
constexpr double kMargin = 16;
constexpr double kRight = kWidth - kMargin;
constexpr double kLane = 84;             // where a lane begins at the earliest, right of the rank's label
constexpr double kArrows = 56;           // room for arrows between the columns
constexpr double kLetter = 6.7;          // of 11 units of a monospaced font, rounded up
constexpr double kLine = 14;
constexpr double kGlyphWidth = 52;
constexpr double kGlyphHeight = 40;
constexpr double kBarHeight = 12;
constexpr double kLanePadding = 9;
constexpr double kNarrow = 170;         // the narrowest column that a matrix and its words fit into

std::string style() {
  std::string light, dark;
  const auto add = [&](const std::string& selector, const char* property, Colour colour) {
    light += fmt::format(".mw-strip {}{{{}:{}}}\n", selector, property, colour.light);
    dark += fmt::format(".mw-strip {}{{{}:{}}}\n", selector, property, colour.dark);
  };
  add(".mw-paper", "fill", kPaper);
  add("text", "fill", kInk);
  add("text", "stroke", kPaper);
  add(".mw-quiet", "fill", kQuiet);
  add(".mw-whole", "fill", kPadding);
  add(".mw-edge", "stroke", kQuiet);
  add(".mw-cells", "stroke", kPaper);
  add(".mw-between", "stroke", kHatch);
  add(".mw-stays", "stroke", kQuiet);
  add(".mw-head-stays", "fill", kQuiet);
  for (int i = 0; i < kColours; ++i) {
    add(fmt::format(".mw-t{}", i), "fill", parameter_colour(i));
    add(fmt::format(".mw-r{}", i), "stroke", rank_colour(i));
    add(fmt::format(".mw-head{}", i), "fill", rank_colour(i));
  }
  return "<style>\n"
         ".mw-strip text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
         "stroke-width:3px;paint-order:stroke;stroke-linejoin:round}\n"
         ".mw-strip .mw-title{font:bold 15px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
         ".mw-strip .mw-prose{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
         ".mw-strip .mw-name{font-weight:bold;font-size:12px}\n"
         ".mw-strip .mw-said{white-space:pre}\n"
         ".mw-strip .mw-none{fill:none}\n"
         ".mw-strip .mw-arrow{fill:none;stroke-width:1.6}\n"
         ".mw-strip .mw-stays{stroke-dasharray:3 3;stroke-width:1.3;fill:none}\n" +
         light + "@media (prefers-color-scheme:dark){\n" + dark + "}\n</style>\n";
}

std::string text_at(double x, double y, const std::string& classes, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes, xml_text(text));
}

std::string rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n", x, y, width, height,
                     attributes);
}

std::string line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, attributes);
}

// A drawing of one thing and how high it is.
struct Piece {
  std::string svg;
  double height = 0;
};

// Numbers of real sizes, short enough for a picture; the exact ones are in its titles and its description.
std::string short_number(long long number) {
  if (number < 10'000) return fmt::format("{}", number);
  return number < 10'000'000 ? fmt::format("{}k", (number + 500) / 1000) : fmt::format("{}M", (number + 500'000) / 1'000'000);
}

std::string short_bytes(long long bytes) {
  if (bytes < 10'000) return bytes_text(bytes);
  if (bytes < 1'000'000) return fmt::format("{} kB", (bytes + 500) / 1000);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string short_part(const RecordedBlock& block) {
  if (block.of < 10'000) return part_text(block);
  return fmt::format("{} {}–{} of {}", block.unit, short_number(block.begin), short_number(block.end), short_number(block.of));
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

// Draws blocks in a column of some width.
class Blocks {
 public:
  Blocks(const Recording& recording, const Strip& strip) : recording_(&recording), strip_(&strip) {}

  // One below the other; many are drawn small. Where there is room for two beside each other, they share it.
  Piece column(const std::vector<const RecordedBlock*>& blocks, double x, double y, double width) const {
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

 private:
  Piece side_by_side(const std::vector<const RecordedBlock*>& blocks, double x, double y, double width) const {
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

  // A flat run is a bar with its words above; a matrix a rectangle of its own form with its words beside.
  Piece one(const RecordedBlock& block, double x, double y, double width) const {
    return block.flat ? run(block, x, y, width) : matrix(block, x, y, width);
  }

  // One of many: a small bar, and as many words as fit beside it.
  Piece row(const RecordedBlock& block, double x, double y, double width) const {
    constexpr double kBar = 36;
    const std::string size = block.flat ? short_number(block.cols) : block_shape_text(block);
    const std::string words = fmt::format("{} {}", block_name(block), is_whole(block) ? size : short_part(block));
    const int room = static_cast<int>((width - kBar - 6) / kLetter);
    return {titled(block, part_of(block, {x, y + 1, kBar, kBarHeight})) + text_at(x + kBar + 6, y + 11, "", fitted(words, room)),
            kLine};
  }

  struct Box {
    double x, y, width, height;
  };

  Piece run(const RecordedBlock& block, double x, double y, double width) const {
    Piece piece;
    const int room = static_cast<int>(width / kLetter);
    const std::string name = shorten(block_name(block), room);
    piece.svg += text_at(x, y + 11, "mw-name", name);
    double at = x + (text_width(name) + 1) * 7.3;
    double down = y + 11;
    for (const std::string& all_words : block_words(block)) {   // on the same line while there is room
      const std::string words = fitted(all_words, room);
      if (at + text_width(words) * kLetter > x + width) {
        at = x;
        down += kLine;
      }
      piece.svg += text_at(at, down, "mw-quiet", words);
      at += (text_width(words) + 2) * kLetter;
    }
    piece.svg += titled(block, part_of(block, {x, down + 5, width, kBarHeight}));
    piece.height = down + 5 + kBarHeight + 3 - y;
    return piece;
  }

  Piece matrix(const RecordedBlock& block, double x, double y, double width) const {
    const double rows = static_cast<double>(block.unit == "rows" ? block.of : block.rows);
    const double cols = static_cast<double>(block.unit == "columns" ? block.of : block.cols);
    const double scale = std::min(kGlyphWidth / std::max(1.0, cols), kGlyphHeight / std::max(1.0, rows));
    const Box box = {x, y, std::max(10.0, cols * scale), std::max(8.0, rows * scale)};
    Piece piece;
    piece.svg = titled(block, part_of(block, box) + cells(box, rows, cols));
    const double left = x + kGlyphWidth + 7;
    const int room = static_cast<int>((x + width - left) / kLetter);
    double down = y + 10;
    piece.svg += text_at(left, down, "mw-name", shorten(block_name(block), room));
    for (const std::string& words : block_words(block))
      piece.svg += text_at(left, down += kLine, "mw-quiet", fitted(words, room));
    piece.height = std::max(box.height, down + 4 - y);
    return piece;
  }

  // The whole as a pale box, and the part that is held in the tensor's colour.
  std::string part_of(const RecordedBlock& block, const Box& box) const {
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
    const std::string fill = fmt::format("class=\"mw-t{}\"", tensor.colour);
    return rectangle(box.x, box.y, box.width, box.height, "class=\"mw-whole\"") +
           rectangle(part.x, part.y, share > 0 ? std::max(1.0, part.width) : 0, part.height, fill) +
           rectangle(box.x, box.y, box.width, box.height, "class=\"mw-none mw-edge\" stroke-width=\"0.8\"") + seams(block, box);
  }

  // Lines between elements, where they are large enough to be seen one by one.
  static std::string cells(const Box& box, double rows, double cols) {
    std::string svg;
    if (box.height / rows < 4 || box.width / cols < 4) return svg;
    for (double row = 1; row < rows; ++row)
      svg += line(box.x, box.y + box.height * row / rows, box.x + box.width, box.y + box.height * row / rows,
                  "class=\"mw-cells\" stroke-width=\"0.6\"");
    for (double col = 1; col < cols; ++col)
      svg += line(box.x + box.width * col / cols, box.y, box.x + box.width * col / cols, box.y + box.height,
                  "class=\"mw-cells\" stroke-width=\"0.6\"");
    return svg;
  }

  static std::string titled(const RecordedBlock& block, const std::string& svg) {
    return fmt::format("<g><title>{}</title>\n{}</g>\n",
                       xml_text(fmt::format("{}: {}, {}, {}", block.name, part_text(block), block_shape_text(block),
                                            bytes_text(block.bytes))),
                       svg);
  }

  // A stripe in the colour of the rank that each part came from, at the left of rows and below everything else.
  std::string seams(const RecordedBlock& block, const Box& box) const {
    std::string svg;
    const auto found = strip_->seams.find(&block);
    if (found == strip_->seams.end()) return svg;
    for (const StripSeam& seam : found->second) {
      const double begin = static_cast<double>(seam.begin) / static_cast<double>(seam.of);
      const double share = static_cast<double>(seam.end - seam.begin) / static_cast<double>(seam.of);
      const std::string colour = fmt::format("class=\"mw-head{}\"", seam.rank % kColours);
      svg += seam.rows && !block.flat
                 ? rectangle(box.x - 5, box.y + box.height * begin, 3, std::max(1.0, box.height * share - 0.8), colour)
                 : rectangle(box.x + box.width * begin, box.y + box.height + 2, std::max(1.0, box.width * share - 0.8), 3, colour);
    }
    return svg;
  }

  const Recording* recording_;
  const Strip* strip_;
};

// Where a lane stands, and what arrives in it.
struct Lane {
  double top = 0;
  double height = 0;
  double middle() const { return top + height / 2; }
};

std::string arrow_svg(double x0, double y0, double x1, double y1, const std::string& line_class, const std::string& head_class,
                      const std::string& title) {
  const double middle = (x0 + x1) / 2, tip = x1 - 6;
  return fmt::format("<g><title>{0}</title><path d=\"M{1:.1f} {2:.1f}C{3:.1f} {2:.1f} {3:.1f} {4:.1f} {5:.1f} {4:.1f}\" "
                     "class=\"{6}\"/><path d=\"M{7:.1f} {4:.1f}l-7 -3.2v6.4z\" class=\"{8}\"/></g>\n",
                     xml_text(title), x0, y0, middle, y1, tip, line_class, x1, head_class);
}

// "3 × 40 B" out of a rank: the same to everybody, or the sum.
std::string sent_text(const std::vector<StripArrow>& arrows) {
  long long bytes = 0;
  bool equal = true;
  for (const StripArrow& arrow : arrows) {
    bytes += arrow.bytes;
    equal = equal && arrow.bytes == arrows.front().bytes;
  }
  if (arrows.size() == 1) return short_bytes(bytes);
  return equal ? fmt::format("{} × {}", arrows.size(), short_bytes(bytes / static_cast<long long>(arrows.size())))
               : fmt::format("{} in all", short_bytes(bytes));
}

std::vector<StripArrow> leaving_from(const Strip& strip, int rank) {
  std::vector<StripArrow> leaving;
  for (const StripArrow& arrow : strip.arrows)
    if (arrow.from == rank) leaving.push_back(arrow);
  return leaving;
}

// How wide the room between the columns is: the longest of the words about what is sent, and the arrows.
double gutter_width(const Strip& strip) {
  int letters = 0;
  for (std::size_t rank = 0; rank < strip.before.size(); ++rank) {
    const std::vector<StripArrow> leaving = leaving_from(strip, static_cast<int>(rank));
    if (!leaving.empty()) letters = std::max(letters, text_width(sent_text(leaving)));
  }
  return kArrows + letters * kLetter;
}

// Arrows for what travels, dashed ones for what a rank makes of what it has. They end in the order of their senders.
std::string arrows_svg(const Strip& strip, const std::vector<Lane>& lanes, double left, double x1) {
  const double x0 = x1 - kArrows + 6;
  const auto stays = [&](std::size_t rank) { return !strip.before[rank].empty() && !strip.after[rank].empty(); };
  std::string svg, words;
  for (std::size_t to = 0; to < lanes.size(); ++to) {
    std::vector<const StripArrow*> arriving;
    for (const StripArrow& arrow : strip.arrows)
      if (arrow.to == static_cast<int>(to)) arriving.push_back(&arrow);
    const auto own = std::find_if(arriving.begin(), arriving.end(),
                                  [&](const StripArrow* arrow) { return arrow->from > static_cast<int>(to); });
    if (stays(to)) arriving.insert(own, nullptr);   // what the rank has itself
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      const double room = std::min(lanes[to].height - 8, 10.0 * static_cast<double>(arriving.size()));
      const double y = lanes[to].middle() + room * ((static_cast<double>(i) + 0.5) / static_cast<double>(arriving.size()) - 0.5);
      const StripArrow* arrow = arriving[i];
      if (arrow == nullptr) {
        svg += arrow_svg(x0, lanes[to].middle(), x1, y, "mw-stays", "mw-head-stays", fmt::format("stays on rank {}", to));
        continue;
      }
      svg += arrow_svg(x0, lanes[static_cast<std::size_t>(arrow->from)].middle(), x1, y,
                       fmt::format("mw-arrow mw-r{}", arrow->from % kColours), fmt::format("mw-head{}", arrow->from % kColours),
                       fmt::format("rank {} sends {} to rank {} in {}", arrow->from, bytes_text(arrow->bytes), to,
                                   count_text(arrow->messages, "message")));
    }
    const std::vector<StripArrow> leaving = leaving_from(strip, static_cast<int>(to));
    if (!leaving.empty())
      words += text_at(left, lanes[to].middle() + 4, fmt::format("mw-head{}", to % kColours), sent_text(leaving));
  }
  return svg + words;
}

// The strip of one step, drawn from `top` on.
Piece strip_piece(const Recording& recording, int step, double top) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  const Strip strip = strip_of(recording, step);
  const Blocks blocks(recording, strip);
  const auto some = [](const auto& of_ranks) {
    return std::any_of(of_ranks.begin(), of_ranks.end(), [](const auto& of_rank) { return !of_rank.empty(); });
  };
  // Without a before there are no columns for it: what comes after, and words, have the room.
  const bool has_before = some(strip.before);
  const bool has_gutter = has_before || !strip.arrows.empty();
  double lane = kLane;
  for (const RecordedRank& rank : recording.ranks)
    lane = std::max(lane, kMargin + kLetter * (text_width(rank.label) - text_width("rank 0  ")) + 8);
  const double width = has_gutter ? gutter_width(strip) : 0;
  const double gutter = has_before ? lane + (kRight - lane - width) * 0.49 : lane;
  const double after = gutter + width;

  Piece piece;
  double y = top + 20;
  for (const std::string& words : wrap_text(fmt::format("{} · {}", recorded.number, recorded.title), 4, 62)) {
    piece.svg += text_at(kMargin, y, "mw-title", words);
    y += 19;
  }
  y -= 2;
  for (const std::string& words : wrap_text(strip.traffic, 2, 84)) {
    piece.svg += text_at(kMargin, y, "mw-prose mw-quiet", words);
    y += kLine;
  }
  y -= 4;
  if (has_before && some(strip.after)) {
    y += 12;
    piece.svg += text_at(lane, y, "mw-prose mw-quiet", "before") + text_at(after, y, "mw-prose mw-quiet", "after");
    y += 6;
  }
  std::vector<Lane> lanes;
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    piece.svg += line(kMargin, y, kRight, y, "class=\"mw-between\" stroke-width=\"0.8\"");
    const double inside = y + kLanePadding;
    const std::string& label = recording.ranks[rank].label;   // "rank 3  dp 1 tp 1"
    const std::size_t space = label.find("  ");
    piece.svg += text_at(kMargin, inside + 11, fmt::format("mw-name mw-head{}", rank % kColours), label.substr(0, space));
    double height = 14;
    if (space != std::string::npos) {
      piece.svg += text_at(kMargin, inside + 25, "mw-quiet", label.substr(space + 2));
      height = 27;
    }
    const Piece held = blocks.column(strip.before[rank], lane, inside, gutter - lane - 6);
    Piece holds = blocks.column(strip.after[rank], after, inside, kRight - after);
    const int room = static_cast<int>((kRight - after) / kLetter);
    for (const std::string& said : recorded.says[rank]) {   // spaces that align columns are kept where the line fits
      const auto lines = text_width(said) <= room ? std::vector<std::string>{said} : wrap_text(said, 2, room);
      for (const std::string& words : lines) {
        holds.svg += text_at(after, inside + holds.height + 11, "mw-said", words);
        holds.height += kLine;
      }
    }
    piece.svg += held.svg + holds.svg;
    height = std::max({height, held.height, holds.height});
    lanes.push_back({y, height + 2 * kLanePadding});
    y += height + 2 * kLanePadding;
  }
  if (has_gutter) piece.svg += arrows_svg(strip, lanes, gutter, after - 8);
  piece.height = y - top;
  return piece;
}

std::string page(const std::string& title, const std::string& description, const Piece& body) {
  const double height = body.height + 8;
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mw-strip\" role=\"img\" viewBox=\"0 0 {0} {1:.0f}\" "
                     "width=\"{0}\" height=\"{1:.0f}\">\n<title>{2}</title>\n<desc>{3}</desc>\n",
                     kWidth, height, xml_text(title), xml_text(description)) +
         style() + fmt::format("<rect x=\"0\" y=\"0\" width=\"{}\" height=\"{:.0f}\" rx=\"8\" class=\"mw-paper\"/>\n", kWidth, height) +
         body.svg + "</svg>\n";
}

}  // namespace

std::string strip_svg(const Recording& recording, int step) {
  const RecordedStep& recorded = recording.steps[static_cast<std::size_t>(step)];
  return page(fmt::format("{}, step {}: {}", recording.title, recorded.number, recorded.title), strip_words(recording, step),
              strip_piece(recording, step, 4));
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
  return page(fmt::format("Lesson {}, {}, step by step", recording.number, recording.title), words, all);
}

}  // namespace muonwalk::sim
