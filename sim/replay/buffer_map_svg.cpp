#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "sim/replay/buffer_map.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

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

SvgStyle style() {
  SvgStyle style(".mw-map", 12, 17, 13);
  style.rule(".mw-small", "font-size:10.5px");
  style.rule(".mw-none", "fill:none");
  style.colour(".mw-padding", "fill", kPadding);
  style.colour(".mw-hatch", "stroke", kHatch);
  style.colour(".mw-edge", "stroke", kQuiet);
  style.rule(".mw-owner", "stroke-width:2");
  style.colour(".mw-gap", "stroke", kInk);
  style.colour(".mw-boundary", "stroke", kInk);
  style.colours(".mw-p", "fill", parameter_colour);
  style.colours(".mw-halo", "stroke", parameter_colour);
  style.colours(".mw-r", "fill", rank_colour);
  style.colours(".mw-frame", "stroke", rank_colour);
  style.colours(".mw-of", "stroke", rank_colour);
  return style;
}

std::string line_down(double x, double top, double bottom, double stroke_width) {
  return svg_line(x, top, x, bottom, fmt::format("class=\"mw-boundary\" stroke-width=\"{}\"", stroke_width));
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
    for (const Buffer& buffer : layout.buffers)
      for (const Bucket& bucket : buffer.buckets)
        left_ = std::max(left_, kMargin + kSmallLetterWidth * text_width(range_text(bucket.range)) + 8);
  }

  std::string bucket_row(int buffer_idx, int bucket_idx, double top) const {
    const Buffer& buffer = layout_.buffers[buffer_idx];
    const Bucket& bucket = buffer.buckets[bucket_idx];
    const Row row{bucket.range, left_, top};
    const double width = kRight - left_;
    std::string svg = svg_text(kMargin, top + 15, "mw-strong", fmt::format("bucket {}", bucket_idx)) +
                      svg_text(kMargin, top + 29, "mw-quiet mw-small", range_text(bucket.range));
    // Padding is the ground; the parameters cover the rest.
    svg += svg_rectangle(left_, top, width, kRowHeight, "class=\"mw-padding\"");
    svg += svg_rectangle(left_, top, width, kRowHeight, "fill=\"url(#mw-hatching)\"", "<title>padding</title>");
    for (const int p : bucket.parameters) svg += parameter_run(buffer.parameters[p], row);
    svg += svg_rectangle(left_, top, width, kRowHeight, "class=\"mw-none mw-edge\" stroke-width=\"1\"");
    for (int rank = 1; rank < dp_; ++rank)
      svg += line_down(row.x(layout_.dp_slice(buffer_idx, bucket_idx, rank).begin), top - 5, top + kRowHeight + 5,
                       width / dp_ > 12 ? 1.5 : 0.5);
    for (int rank = 0; rank < dp_ && width / dp_ > 12; ++rank)
      svg += owner_outline(layout_.dp_slice(buffer_idx, bucket_idx, rank), rank, row);
    for (const int p : bucket.parameters) svg += name_in_row(buffer.parameters[p], row);
    if (is_marked()) {
      const Range slice = layout_.dp_slice(buffer_idx, bucket_idx, marked_);
      svg +=
          svg_rectangle(row.x(slice.begin), top - 5, row.x(slice.end) - row.x(slice.begin), kRowHeight + 10,
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
    std::string svg = svg_text(kMargin, y, "mw-quiet", "DP rank");
    for (int rank = 0; rank < dp_; ++rank) {
      // The marked rank's number is always there; those that it would touch are not.
      const bool near_marked = is_marked() && std::abs(rank - marked_) < step;
      if (rank != marked_ && (rank % step != 0 || near_marked)) continue;
      svg += svg_text(left_ + width * (rank + 0.5), y,
                      fmt::format("mw-middle mw-r{}{}", rank % kColours, rank == marked_ ? " mw-strong" : ""),
                      (roomy ? "rank " : "") + std::to_string(rank));
    }
    return svg;
  }

  std::vector<LegendEntry> legend_entries() const {
    std::vector<LegendEntry> entries;
    bool padding = false;
    for (const Buffer& buffer : layout_.buffers) {
      for (const DistMeta& meta : buffer.parameters) {
        entries.push_back({fmt::format("class=\"mw-p{}\"", meta.parameter % kColours), visible_name(meta.name),
                           shape_text(meta.shape.rows, meta.shape.cols)});
      }
      padding = padding || buffer.padding > 0;
    }
    if (padding) entries.push_back({"fill=\"url(#mw-hatching)\"", "padding", "belongs to no parameter"});
    if (dp_ > 1 && !layout_.buffers.empty() && !is_marked())
      entries.push_back({"class=\"mw-none mw-of0 mw-owner\"", "outline", "the DP rank that owns it"});
    if (is_marked()) {
      entries.push_back({fmt::format("class=\"mw-none mw-frame{}\" stroke-width=\"2.5\"", marked_ % kColours),
                         fmt::format("what DP rank {} owns", marked_), ""});
    }
    return entries;
  }

 private:
  bool is_marked() const { return marked_ >= 0; }

  // The outline of a shard in its owner's colour, above and below the parameters and a little inside of its boundaries.
  std::string owner_outline(Range shard, int rank, const Row& row) const {
    if (shard.empty() || rank == marked_) return "";
    const double left = row.x(shard.begin) + 1.5;
    return svg_rectangle(left, row.top - 3, row.x(shard.end) - 1.5 - left, kRowHeight + 6,
                         fmt::format("rx=\"3\" class=\"mw-none mw-of{} mw-owner\"", rank % kColours),
                         fmt::format("<title>DP rank {} owns elements {}</title>", rank, range_text(shard)));
  }

  std::string parameter_run(const DistMeta& meta, const Row& row) const {
    const std::vector<int> ranks = layout_.owners(meta);
    const double left = row.x(meta.global_range.begin), width = row.x(meta.global_range.end) - left;
    return svg_rectangle(left, row.top, std::max(0.6, width), kRowHeight,
                         fmt::format("class=\"mw-p{} mw-gap\" stroke-width=\"{:.2f}\"", meta.parameter % kColours,
                                     std::min(1.0, width / 4)),
                         fmt::format("<title>{}: TP slice {}, elements {}, DP ranks {}</title>",
                                     xml_text(visible_name(meta.name)), shape_text(meta.shape.rows, meta.shape.cols),
                                     range_text(meta.global_range), range_text({ranks.front(), ranks.back() + 1})));
  }

  // The parameter's name in the longest of its parts, so that no boundary runs through it; where it has no room there,
  // across the boundaries, and where it has none at all, shortened or left out. The legend has it in full.
  std::string name_in_row(const DistMeta& meta, const Row& row) const {
    Range longest;
    for (int rank = 0; rank < dp_; ++rank) {
      const Range part = layout_.owned_range(meta, rank);
      if (part.size() > longest.size()) longest = part;
    }
    const std::string name = visible_name(meta.name);
    const int letters = text_width(name);
    const auto room = [&](Range range) {
      return static_cast<int>((row.x(range.end) - row.x(range.begin) - 6) / kLetterWidth);
    };
    const Range place = room(longest) >= letters ? longest : meta.global_range;
    if (room(place) < kTellingShare * letters) return "";
    return svg_text((row.x(place.begin) + row.x(place.end)) / 2, row.top + kRowHeight / 2 + 4,
                    fmt::format("mw-middle mw-halo mw-halo{}", meta.parameter % kColours), shorten(name, room(place)));
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
    svg += svg_rectangle(x, y, 14, 14, "rx=\"2\" class=\"mw-padding\"");
    svg += svg_rectangle(x, y, 14, 14, "rx=\"2\" " + entry.swatch_attributes);
    svg += svg_text(x + 22, y + 11, "mw-ink", name);
    if (!entry.quiet.empty())
      svg += svg_text(x + 22 + kLetterWidth * (text_width(name) + 1), y + 11, "mw-quiet", entry.quiet);
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
  std::string body = svg_text(kMargin, 38, "mw-title", "Virtual buffer · " + layout.grid.text());
  body += svg_text(
      kMargin, 60, "mw-prose mw-quiet",
      layout.buffers.empty()
          ? "no parameters, so there is no buffer"
          : fmt::format("Every DP rank owns {} of {} elements. Rows are drawn equally wide, whatever they hold.",
                        layout.shard_elements(0), layout.shard_elements(0) * layout.grid.dp()));
  double y = 92;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    body += svg_text(kMargin, y, "mw-prose mw-strong",
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

  const std::string hatching =
      "<defs><pattern id=\"mw-hatching\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"mw-hatch\" "
      "stroke-width=\"3\"/></pattern></defs>\n";
  return svg_page("mw-map", kWidth, y, "Map of the virtual buffer, " + layout.grid.text(),
                  description(layout, marked_dp_rank), style(), hatching + body);
}

}  // namespace muonwalk
