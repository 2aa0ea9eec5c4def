#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
constexpr double kMargin = SvgPicture::kMargin;
constexpr double kRight = kWidth - kMargin;
constexpr double kRowHeight = 34;
constexpr double kRowPitch = 48;
constexpr double kTellingShare = 0.6;  // a name shortened to less would say nothing

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

// Draws the parts of the picture. Rows begin at `left_`, where the longest of their labels ends.
class MapDrawing {
 public:
  MapDrawing(SvgPicture& picture, const Layout& layout, int marked_dp_rank)
      : picture_(picture), layout_(layout), dp_(layout.grid.dp()), marked_(marked_dp_rank) {
    for (const Buffer& buffer : layout.buffers)
      for (const Bucket& bucket : buffer.buckets)
        left_ = std::max(left_, kMargin + SvgPicture::kSmallLetter * text_width(range_text(bucket.range)) + 8);
  }

  void bucket_row(int buffer_idx, int bucket_idx, double top) {
    const Buffer& buffer = layout_.buffers[buffer_idx];
    const Bucket& bucket = buffer.buckets[bucket_idx];
    const Row row{bucket.range, left_, top};
    picture_.text(kMargin, top + 15, "mw-strong", fmt::format("bucket {}", bucket_idx));
    picture_.text(kMargin, top + 29, "mw-quiet mw-small", range_text(bucket.range));
    // Padding is the ground; the parameters cover the rest.
    for (const char* ground : {"mw-padding", "mw-hatching mw-rule"})
      picture_.box(left_, top, kRight - left_, kRowHeight, ground, "padding");
    for (const int p : bucket.parameters) parameter_run(buffer.parameters[p], row);
    for (int rank = 1; rank < dp_; ++rank) {
      const double x = row.x(layout_.dp_slice(buffer_idx, bucket_idx, rank).begin);
      picture_.line(x, top - 5, x, top + kRowHeight + 5, "mw-line");
    }
    for (int rank = 0; rank < dp_; ++rank) outline(layout_.dp_slice(buffer_idx, bucket_idx, rank), rank, row);
    for (const int p : bucket.parameters) name_in_row(buffer.parameters[p], row);
  }

  // "rank 0" over every shard, or only as many as there is room for.
  void rank_labels(double y) {
    const double width = (kRight - left_) / dp_;
    const bool roomy = width >= 8 * SvgPicture::kLetter;
    const int step = static_cast<int>(std::ceil(4 * SvgPicture::kLetter / width));
    picture_.text(kMargin, y, "mw-quiet", "DP rank");
    for (int rank = 0; rank < dp_; ++rank) {
      // The marked rank's number is always there; those that it would touch are not.
      const bool near_marked = marked_ >= 0 && std::abs(rank - marked_) < step;
      if (rank != marked_ && (rank % step != 0 || near_marked)) continue;
      picture_.text(left_ + width * (rank + 0.5), y,
                    fmt::format("mw-middle mw-r{}{}", rank % kColours, rank == marked_ ? " mw-strong" : ""),
                    (roomy ? "rank " : "") + std::to_string(rank));
    }
  }

  double legend(double y) {
    std::vector<std::pair<std::string, std::string>> entries;
    bool padding = false;
    for (const Buffer& buffer : layout_.buffers) {
      for (const DistMeta& meta : buffer.parameters)
        entries.emplace_back(
            fmt::format("mw-p{}", meta.parameter % kColours),
            fmt::format("{}  {}", visible_name(meta.name), shape_text(meta.shape.rows, meta.shape.cols)));
      padding = padding || buffer.padding > 0;
    }
    if (padding) entries.emplace_back("mw-hatching", "padding, of no parameter");
    if (marked_ >= 0)
      entries.emplace_back(frame_of(marked_), fmt::format("what DP rank {} owns", marked_));
    else if (dp_ > 1 && !layout_.buffers.empty())
      entries.emplace_back("mw-none mw-o0 mw-wide", "the DP rank that owns it");
    return picture_.legend(y, entries);
  }

 private:
  static std::string frame_of(int rank) { return fmt::format("mw-none mw-o{} mw-frame", rank % kColours); }

  // The outline of a shard in its owner's colour, above and below the parameters and a little inside of its boundaries;
  // around the marked one, a frame. Where there is no room for that, the frame alone.
  void outline(Range shard, int rank, const Row& row) {
    const double left = row.x(shard.begin), width = row.x(shard.end) - left;
    const std::string tip = fmt::format("DP rank {} owns elements {}", rank, range_text(shard));
    if (rank == marked_)
      picture_.box(left, row.top - 5, width, kRowHeight + 10, frame_of(rank), tip);
    else if (width > 12)
      picture_.box(left + 1.5, row.top - 3, width - 3, kRowHeight + 6,
                   fmt::format("mw-none mw-o{} mw-wide", rank % kColours), tip);
  }

  void parameter_run(const DistMeta& meta, const Row& row) {
    const std::vector<int> ranks = layout_.owners(meta);
    const double left = row.x(meta.global_range.begin), width = row.x(meta.global_range.end) - left;
    picture_.box(left, row.top, std::max(0.6, width), kRowHeight,
                 fmt::format("mw-p{} mw-line", meta.parameter % kColours),
                 fmt::format("{}: TP slice {}, elements {}, DP ranks {}", visible_name(meta.name),
                             shape_text(meta.shape.rows, meta.shape.cols), range_text(meta.global_range),
                             range_text({ranks.front(), ranks.back() + 1})));
  }

  // The parameter's name in the longest of its parts, so that no boundary runs through it; where it has no room there,
  // across the boundaries, and where it has none at all, shortened or left out. The legend has it in full.
  void name_in_row(const DistMeta& meta, const Row& row) {
    Range longest;
    for (int rank = 0; rank < dp_; ++rank) {
      const Range part = layout_.owned_range(meta, rank);
      if (part.size() > longest.size()) longest = part;
    }
    const std::string name = visible_name(meta.name);
    const int letters = text_width(name);
    const auto room = [&](Range range) {
      return static_cast<int>((row.x(range.end) - row.x(range.begin) - 6) / SvgPicture::kLetter);
    };
    const Range place = room(longest) >= letters ? longest : meta.global_range;
    if (room(place) >= kTellingShare * letters)
      picture_.text((row.x(place.begin) + row.x(place.end)) / 2, row.top + kRowHeight / 2 + 4,
                    fmt::format("mw-middle mw-halo mw-halo{}", meta.parameter % kColours), shorten(name, room(place)));
  }

  SvgPicture& picture_;
  const Layout& layout_;
  const int dp_;
  const int marked_;
  double left_ = 136;
};

}  // namespace

std::string buffer_map_svg(const Layout& layout, int marked_dp_rank) {
  if (marked_dp_rank < -1 || marked_dp_rank >= layout.grid.dp()) {
    throw UsageError(fmt::format("there is no DP rank {} to mark in {}; try 0 to {}, or -1 for none", marked_dp_rank,
                                 layout.grid.text(), layout.grid.dp() - 1));
  }
  SvgPicture picture(
      kWidth, "Map of the virtual buffer, " + layout.grid.text(),
      layout.buffers.empty()
          ? "no parameters, so there is no buffer"
          : fmt::format("Every DP rank owns {} of {} elements. Rows are drawn equally wide, whatever they hold.",
                        layout.shard_elements(0), layout.shard_elements(0) * layout.grid.dp()));
  picture.say(
      "Each row is a bucket of the virtual buffer of one TP rank, cut by lines into equal shards, one a DP rank.");
  MapDrawing drawing(picture, layout, marked_dp_rank);
  double y = 92;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    const std::string size = fmt::format("{}, {} of them padding", count_text(buffer.size, "element"), buffer.padding);
    picture.text(kMargin, y, "mw-prose mw-strong", fmt::format("Buffer {} of group {} · {}", b, buffer.group, size));
    picture.say(fmt::format("Buffer {} has {} in {}: {}.", b,
                            count_text(static_cast<Index>(buffer.parameters.size()), "parameter"),
                            count_text(static_cast<Index>(buffer.buckets.size()), "bucket"), size));
    drawing.rank_labels(y + 24);
    y += 36;
    for (std::size_t i = 0; i < buffer.buckets.size(); ++i, y += kRowPitch)
      drawing.bucket_row(static_cast<int>(b), static_cast<int>(i), y);
    y += 24;
  }
  if (marked_dp_rank >= 0) picture.say(fmt::format("The shards of DP rank {} are framed.", marked_dp_rank));
  y += drawing.legend(y - 14) + 4;
  return picture.svg(y);
}

}  // namespace muonwalk
