#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/errors.hpp"
#include "src/layout/buffer_map.hpp"
#include "src/layout/palette.hpp"
#include "src/layout/text_table.hpp"
#include "src/layout/xml_text.hpp"

namespace muonwalk {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kWidth = 960;
constexpr double kMargin = 24;
constexpr double kRight = kWidth - kMargin;
constexpr double kRowHeight = 34;
constexpr double kRowPitch = 48;
constexpr double kLetterWidth = 7.3;       // of 12 units of a monospaced font, rounded up
constexpr double kSmallLetterWidth = 6.4;  // of 10.5 units
constexpr double kTellingShare = 0.6;      // a name shortened to less would say nothing
constexpr double kLegendPitch = 22;

// A rule for light pages and, in the second list, for dark ones.
struct StyleSheet {
  std::string light;
  std::string dark;
  void add(const std::string& selector, const char* property, Colour colour) {
    light += fmt::format(".mw-map {}{{{}:{}}}\n", selector, property, colour.light);
    dark += fmt::format(".mw-map {}{{{}:{}}}\n", selector, property, colour.dark);
  }
};

std::string style() {
  StyleSheet sheet;
  sheet.add(".mw-paper", "fill", kPaper);
  sheet.add("text", "fill", kInk);
  sheet.add(".mw-quiet", "fill", kQuiet);
  sheet.add(".mw-padding", "fill", kPadding);
  sheet.add(".mw-hatch", "stroke", kHatch);
  sheet.add(".mw-edge", "stroke", kQuiet);
  sheet.add(".mw-gap", "stroke", kPaper);
  sheet.add(".mw-boundary", "stroke", kInk);
  for (int i = 0; i < kColours; ++i) {
    sheet.add(fmt::format(".mw-p{}", i), "fill", parameter_colour(i));
    sheet.add(fmt::format(".mw-halo{}", i), "stroke", parameter_colour(i));
    sheet.add(fmt::format(".mw-r{}", i), "fill", rank_colour(i));
    sheet.add(fmt::format(".mw-frame{}", i), "stroke", rank_colour(i));
  }
  return "<style>\n"
         ".mw-map text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\n"
         ".mw-map .mw-title{font:bold 17px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
         ".mw-map .mw-prose{font:13px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
         ".mw-map .mw-strong{font-weight:bold}\n"
         ".mw-map .mw-small{font-size:10.5px}\n"
         ".mw-map .mw-middle{text-anchor:middle}\n"
         ".mw-map .mw-none{fill:none}\n"
         ".mw-map .mw-halo{stroke-width:4px;paint-order:stroke;stroke-linejoin:round}\n" +
         sheet.light + "@media (prefers-color-scheme:dark){\n" + sheet.dark + "}\n</style>\n";
}

std::string text_at(double x, double y, const std::string& classes, const std::string& text) {
  return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\">{}</text>\n", x, y, classes, xml_text(text));
}

std::string rectangle(double x, double y, double width, double height, const std::string& attributes,
                      const std::string& inside = "") {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}>{}</rect>\n", x, y, width,
                     height, attributes, inside);
}

std::string line_down(double x, double top, double bottom, double stroke_width) {
  return fmt::format(
      "<line x1=\"{0:.2f}\" y1=\"{1:.2f}\" x2=\"{0:.2f}\" y2=\"{2:.2f}\" class=\"mw-boundary\" "
      "stroke-width=\"{3}\"/>\n",
      x, top, bottom, stroke_width);
}

// Where the elements of one bucket stand: every bucket takes the whole width, so that the shards of a DP rank stand
// below each other in all of them.
struct Row {
  Range range;
  double left = 0;
  double top = 0;
  double x(Index element) const {
    return left + (kRight - left) * static_cast<double>(element - range.begin) / static_cast<double>(range.size());
  }
};

// One entry of the legend: a swatch, and a name with something quiet behind it.
struct LegendEntry {
  std::string swatch_attributes;
  std::string name;
  std::string quiet;
  double width() const { return 22 + kLetterWidth * (text_width(name) + 1 + text_width(quiet) + 2); }
};

// Draws the parts of the picture. Rows begin at `left`, where the longest of their labels ends.
class Drawing {
 public:
  Drawing(const Layout& layout, int marked_dp_rank) : layout_(layout), dp_(layout.grid.dp()), marked_(marked_dp_rank) {
    for (const Buffer& buffer : layout.buffers) {
      for (const Bucket& bucket : buffer.buckets) {
        left_ = std::max(left_, kMargin + kSmallLetterWidth * text_width(range_text(bucket.range)) + 8);
      }
    }
  }

  std::string bucket_row(int buffer_idx, int bucket_idx, double top) const {
    const Buffer& buffer = layout_.buffers[buffer_idx];
    const Bucket& bucket = buffer.buckets[bucket_idx];
    const Row row{bucket.range, left_, top};
    const double width = kRight - left_;
    std::string svg = text_at(kMargin, top + 15, "mw-strong", fmt::format("bucket {}", bucket_idx)) +
                      text_at(kMargin, top + 29, "mw-quiet mw-small", range_text(bucket.range));
    // Padding is the ground; the parameters cover the rest.
    svg += rectangle(left_, top, width, kRowHeight, "class=\"mw-padding\"");
    svg += rectangle(left_, top, width, kRowHeight, "fill=\"url(#mw-hatching)\"", "<title>padding</title>");
    for (const int p : bucket.parameters) svg += parameter_run(buffer.parameters[p], row);
    svg += rectangle(left_, top, width, kRowHeight, "class=\"mw-none mw-edge\" stroke-width=\"1\"");
    for (int rank = 1; rank < dp_; ++rank) {
      svg += line_down(row.x(layout_.dp_slice(buffer_idx, bucket_idx, rank).begin), top - 5, top + kRowHeight + 5,
                       width / dp_ > 12 ? 1.5 : 0.5);
    }
    for (const int p : bucket.parameters) svg += name_in_row(buffer.parameters[p], row);
    if (is_marked()) {
      const Range slice = layout_.dp_slice(buffer_idx, bucket_idx, marked_);
      svg += rectangle(row.x(slice.begin), top - 5, row.x(slice.end) - row.x(slice.begin), kRowHeight + 10,
                       fmt::format("rx=\"3\" class=\"mw-none mw-frame{}\" stroke-width=\"3.5\"", marked_ % kColours));
    }
    return svg;
  }

  // "rank 0" over every shard, or only as many as there is room for.
  std::string rank_labels(double y) const {
    const double width = (kRight - left_) / dp_;
    const bool roomy = width >= 8 * kLetterWidth;
    int step = 1;
    while (width * step < 4 * kLetterWidth) ++step;
    std::string svg = text_at(kMargin, y, "mw-quiet", "DP rank");
    for (int rank = 0; rank < dp_; ++rank) {
      // The marked rank's number is always there; those that it would touch are not.
      const bool near_marked = is_marked() && std::abs(rank - marked_) < step;
      if (rank != marked_ && (rank % step != 0 || near_marked)) continue;
      svg +=
          text_at(left_ + width * (rank + 0.5), y,
                  rank == marked_ ? fmt::format("mw-middle mw-strong mw-r{}", rank % kColours) : "mw-middle mw-quiet",
                  (roomy ? "rank " : "") + std::to_string(rank));
    }
    return svg;
  }

  std::vector<LegendEntry> legend_entries() const {
    std::vector<LegendEntry> entries;
    bool padding = false;
    for (const Buffer& buffer : layout_.buffers) {
      for (const DistMeta& meta : buffer.parameters) {
        entries.push_back({fmt::format("class=\"mw-p{}\"", meta.parameter % kColours), meta.name,
                           shape_text(meta.shape.rows, meta.shape.cols)});
      }
      padding = padding || buffer.padding > 0;
    }
    if (padding) entries.push_back({"fill=\"url(#mw-hatching)\"", "padding", "belongs to no parameter"});
    if (is_marked()) {
      entries.push_back({fmt::format("class=\"mw-none mw-frame{}\" stroke-width=\"2.5\"", marked_ % kColours),
                         fmt::format("what DP rank {} owns", marked_), ""});
    }
    return entries;
  }

 private:
  bool is_marked() const { return marked_ >= 0; }

  std::string parameter_run(const DistMeta& meta, const Row& row) const {
    const std::vector<int> ranks = layout_.owners(meta);
    const double left = row.x(meta.global_range.begin);
    return rectangle(left, row.top, std::max(0.6, row.x(meta.global_range.end) - left), kRowHeight,
                     fmt::format("class=\"mw-p{} mw-gap\"", meta.parameter % kColours),
                     fmt::format("<title>{}: TP slice {}, elements {}, DP ranks {}</title>", xml_text(meta.name),
                                 shape_text(meta.shape.rows, meta.shape.cols), range_text(meta.global_range),
                                 range_text({ranks.front(), ranks.back() + 1})));
  }

  // The parameter's name in the longest of its parts, so that no boundary runs through it; where it has no room there,
  // across the boundaries, and where it has none at all, shortened or left out. The legend has it in full.
  std::string name_in_row(const DistMeta& meta, const Row& row) const {
    Range longest;
    for (int rank = 0; rank < dp_; ++rank) {
      const Range part = layout_.owned_range(meta, rank);
      if (part.size() > longest.size()) longest = part;
    }
    const int letters = text_width(meta.name);
    const auto room = [&](Range range) {
      return static_cast<int>((row.x(range.end) - row.x(range.begin) - 6) / kLetterWidth);
    };
    const Range place = room(longest) >= letters ? longest : meta.global_range;
    if (room(place) < kTellingShare * letters) return "";
    return text_at((row.x(place.begin) + row.x(place.end)) / 2, row.top + kRowHeight / 2 + 4,
                   fmt::format("mw-middle mw-halo mw-halo{}", meta.parameter % kColours),
                   shorten(meta.name, room(place)));
  }

  const Layout& layout_;
  const int dp_;
  const int marked_;
  double left_ = 136;
};

// As many columns as the longest entry leaves room for.
int legend_columns(const std::vector<LegendEntry>& entries) {
  double widest = kWidth / 4;
  for (const LegendEntry& entry : entries) widest = std::max(widest, entry.width());
  return std::max(1, static_cast<int>((kWidth - 2 * kMargin) / widest));
}

std::string legend(const std::vector<LegendEntry>& entries, int columns, double top) {
  const double column_width = (kWidth - 2 * kMargin) / columns;
  // Read down the columns, as the parameters lie one after the other.
  const std::size_t lines = (entries.size() + columns - 1) / columns;
  std::string svg;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    const double x = kMargin + column_width * static_cast<double>(i / lines);
    const double y = top + kLegendPitch * static_cast<double>(i % lines);
    const int room = static_cast<int>((column_width - 22) / kLetterWidth) - text_width(entry.quiet) - 1;
    const std::string name = shorten(entry.name, room);
    svg += rectangle(x, y, 14, 14, "rx=\"2\" class=\"mw-padding\"");
    svg += rectangle(x, y, 14, 14, "rx=\"2\" " + entry.swatch_attributes);
    svg += text_at(x + 22, y + 11, "mw-ink", name);
    if (!entry.quiet.empty()) {
      svg += text_at(x + 22 + kLetterWidth * (text_width(name) + 1), y + 11, "mw-quiet", entry.quiet);
    }
  }
  return svg;
}

// What the picture shows, in a sentence for those who can't see it.
std::string description(const Layout& layout, int marked_dp_rank) {
  std::string text =
      "Each row is a bucket of the virtual buffer of one TP rank, cut by lines into equal shards, one a DP rank.";
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    text += fmt::format(" Buffer {} has {} in {}: {}, {} of them padding.", b,
                        count_text(static_cast<Index>(buffer.parameters.size()), "parameter"),
                        count_text(static_cast<Index>(buffer.buckets.size()), "bucket"),
                        count_text(buffer.size, "element"), buffer.padding);
  }
  if (marked_dp_rank >= 0) text += fmt::format(" The shards of DP rank {} are framed.", marked_dp_rank);
  return text;
}

}  // namespace

std::string buffer_map_svg(const Layout& layout, int marked_dp_rank) {
  if (marked_dp_rank < -1 || marked_dp_rank >= layout.grid.dp()) {
    throw UsageError(fmt::format("there is no DP rank {} to mark in {}; try 0 to {}, or -1 for none", marked_dp_rank,
                                 layout.grid.text(), layout.grid.dp() - 1));
  }
  const Drawing drawing(layout, marked_dp_rank);
  std::string body = text_at(kMargin, 38, "mw-title", "Virtual buffer · " + layout.grid.text());
  body += text_at(
      kMargin, 60, "mw-prose mw-quiet",
      layout.buffers.empty()
          ? "no parameters, so there is no buffer"
          : fmt::format("Every DP rank owns {} of {} elements. Rows are drawn equally wide, whatever they hold.",
                        layout.shard_elements(), layout.shard_elements() * layout.grid.dp()));
  double y = 92;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    body += text_at(kMargin, y, "mw-prose mw-strong",
                    fmt::format("Buffer {} of group {} · {}, {} of them padding", b, buffer.group,
                                count_text(buffer.size, "element"), buffer.padding));
    body += drawing.rank_labels(y + 24);
    y += 36;
    for (std::size_t i = 0; i < buffer.buckets.size(); ++i) {
      body += drawing.bucket_row(static_cast<int>(b), static_cast<int>(i), y);
      y += kRowPitch;
    }
    y += 24;
  }
  const std::vector<LegendEntry> entries = drawing.legend_entries();
  const int columns = legend_columns(entries);
  body += legend(entries, columns, y - 14);
  y += kLegendPitch * static_cast<double>((entries.size() + columns - 1) / columns) + 4;

  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mw-map\" role=\"img\" viewBox=\"0 0 {0} {1}\" "
             "width=\"{0}\" height=\"{1}\">\n",
             kWidth, y) +
         "<title>" + xml_text("Map of the virtual buffer, " + layout.grid.text()) + "</title>\n<desc>" +
         xml_text(description(layout, marked_dp_rank)) + "</desc>\n" + style() +
         "<defs><pattern id=\"mw-hatching\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"mw-hatch\" "
         "stroke-width=\"3\"/></pattern></defs>\n" +
         rectangle(0, 0, kWidth, y, "rx=\"8\" class=\"mw-paper\"") + body + "</svg>\n";
}

}  // namespace muonwalk
