#include "sim/replay/buffer_map.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

constexpr int kFewestColumns = 60;
constexpr int kRoomyShard = 6;  // characters; a shard is drawn narrower only when it has fewer elements
constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

char letter(const DistMeta& meta) { return kLetters[meta.parameter % (sizeof kLetters - 1)]; }

// How all buckets are drawn: one scale for the whole map, so that lengths can be compared.
struct Drawing {
  int label_width = 0;     // "bucket 0 "
  int ranks_per_line = 1;  // many DP ranks are drawn on several lines
  Index elements_a_letter = 1;
};

Index shard_size(const Layout& layout, const Bucket& bucket) { return bucket.range.size() / layout.grid.dp(); }

Drawing plan_drawing(const Layout& layout, int columns) {
  Index largest_shard = 1;
  Index largest_end = 0;
  std::size_t most_buckets = 1;
  for (const Buffer& buffer : layout.buffers) {
    largest_end = std::max(largest_end, buffer.size);
    most_buckets = std::max(most_buckets, buffer.buckets.size());
    for (const Bucket& bucket : buffer.buckets) largest_shard = std::max(largest_shard, shard_size(layout, bucket));
  }
  Drawing drawing;
  drawing.label_width = text_width("bucket " + std::to_string(most_buckets - 1)) + 1;
  // The longest range stands to the right of the row, after two spaces; the first bar is counted here, too.
  const int range_width = text_width(range_text({largest_end, largest_end + 2}));
  const int room = std::max(2, columns - drawing.label_width - 2 - range_width - 1);
  const int narrowest = static_cast<int>(std::min<Index>(kRoomyShard, largest_shard));
  const int dp = layout.grid.dp();
  const int most_a_line = std::clamp(room / (narrowest + 1), 1, dp);
  const int lines = (dp + most_a_line - 1) / most_a_line;
  drawing.ranks_per_line = (dp + lines - 1) / lines;
  const Index letters_a_shard = std::max(1, room / drawing.ranks_per_line - 1);
  drawing.elements_a_letter = (largest_shard + letters_a_shard - 1) / letters_a_shard;
  return drawing;
}

// The letter of what fills most of `run`; the first wins a tie.
std::string letter_of_run(const Buffer& buffer, const Bucket& bucket, Range run, std::set<int>& drawn) {
  const DistMeta* most = nullptr;
  Index most_elements = 0;
  Index padding = run.size();
  for (const int p : bucket.parameters) {
    const Index elements = intersection(buffer.parameters[p].global_range, run).size();
    padding -= elements;
    if (elements > most_elements) {
      most_elements = elements;
      most = &buffer.parameters[p];
    }
  }
  if (most == nullptr || padding > most_elements) return "·";
  drawn.insert(most->parameter);
  return std::string(1, letter(*most));
}

// "DP rank  0      1      2": each number over the first letter of its shard. A number without room is left out.
std::string rank_heading(const Drawing& drawing, int first_rank, int end_rank, int shard_width) {
  std::string line = pad_right("DP rank", drawing.label_width);
  for (int rank = first_rank; rank < end_rank; ++rank) {
    const int column = drawing.label_width + 1 + (rank - first_rank) * (shard_width + 1);
    if (text_width(line) >= column && rank > first_rank) continue;
    line = pad_right(line, column) + std::to_string(rank);
  }
  return line + "\n";
}

std::string bucket_rows(const Layout& layout, int buffer_idx, int bucket_idx, const Drawing& drawing,
                        std::string& heading, std::set<int>& drawn) {
  const Buffer& buffer = layout.buffers[buffer_idx];
  const Bucket& bucket = buffer.buckets[bucket_idx];
  const int dp = layout.grid.dp();
  const Index letters = (shard_size(layout, bucket) + drawing.elements_a_letter - 1) / drawing.elements_a_letter;
  std::string text;
  for (int first = 0; first < dp; first += drawing.ranks_per_line) {
    const int end = std::min(dp, first + drawing.ranks_per_line);
    std::string line = pad_right("bucket " + std::to_string(bucket_idx), drawing.label_width) + "|";
    for (int rank = first; rank < end; ++rank) {
      const Range slice = layout.dp_slice(buffer_idx, bucket_idx, rank);
      for (Index i = 0; i < letters; ++i) {
        const Index begin = slice.begin + i * drawing.elements_a_letter;
        line += letter_of_run(buffer, bucket, {begin, std::min(begin + drawing.elements_a_letter, slice.end)}, drawn);
      }
      line += "|";
    }
    const std::string wanted = rank_heading(drawing, first, end, static_cast<int>(letters));
    if (wanted != heading) text += wanted;
    heading = wanted;
    const Range covered = {layout.dp_slice(buffer_idx, bucket_idx, first).begin,
                           layout.dp_slice(buffer_idx, bucket_idx, end - 1).end};
    text += line + "  " + range_text(covered) + "\n";
  }
  return text;
}

std::string legend(const Layout& layout, const Buffer& buffer, const std::set<int>& drawn, int columns) {
  std::vector<std::vector<std::string>> rows = {{" ", "parameter", "TP slice", "elements", "DP ranks"}};
  bool all_drawn = true;
  for (const DistMeta& meta : buffer.parameters) {
    const bool is_drawn = drawn.count(meta.parameter) > 0;
    all_drawn = all_drawn && is_drawn;
    const std::vector<int> ranks = layout.owners(meta);
    rows.push_back({std::string(1, letter(meta)) + (is_drawn ? "" : "*"), meta.name,
                    shape_text(meta.shape.rows, meta.shape.cols), range_text(meta.global_range),
                    range_text({ranks.front(), ranks.back() + 1})});
  }
  if (buffer.padding > 0) rows.push_back({"·", "padding", "", count_text(buffer.padding, "element")});
  // Names take what the numbers leave of the line.
  int taken = 2;
  for (const std::size_t column : {0, 2, 3, 4}) {
    int widest = 0;
    for (const auto& row : rows)
      if (column < row.size()) widest = std::max(widest, text_width(row[column]));
    taken += widest + 2;
  }
  Table table({{rows[0][0]}, {rows[0][1]}, {rows[0][2]}, {rows[0][3]}, {rows[0][4]}});
  for (std::size_t r = 1; r < rows.size(); ++r) {
    rows[r][1] = visible_name(rows[r][1], std::max(9, columns - taken));
    table.row({rows[r].begin(), rows[r].end()});
  }
  return table.text() + "\n" + (all_drawn ? "" : "* too small to be drawn at this scale\n");
}

// Phrases on a line, " · " between them, and on a new line where they do not fit.
std::string joined_phrases(const std::vector<std::string>& phrases, int columns) {
  return fmt::format("{}\n", fmt::join(wrap_items("", phrases, columns), "\n"));
}

}  // namespace

std::string buffer_map_text(const Layout& layout, int columns) {
  if (columns < kFewestColumns)
    throw std::invalid_argument("a map needs at least " + std::to_string(kFewestColumns) + " columns, not " +
                                std::to_string(columns));
  if (layout.buffers.empty()) return "no parameters, so there is no buffer\n";

  const Drawing drawing = plan_drawing(layout, columns);
  const Index all = layout.shard_elements(0) * layout.grid.dp();
  std::string text = joined_phrases(
      {layout.grid.text(),
       "every DP rank owns " + std::to_string(layout.shard_elements(0)) + " of " + std::to_string(all) + " elements",
       drawing.elements_a_letter == 1 ? "a letter is an element"
                                      : "a letter is up to " + std::to_string(drawing.elements_a_letter) + " elements"},
      columns);
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    text += "\n" + joined_phrases({"buffer " + std::to_string(b) + " of group " + std::to_string(buffer.group),
                                   count_text(static_cast<Index>(buffer.parameters.size()), "parameter"),
                                   count_text(static_cast<Index>(buffer.buckets.size()), "bucket"),
                                   count_text(buffer.size, "element") + ", " + std::to_string(buffer.padding) +
                                       " of them padding"},
                                  columns);
    std::set<int> drawn;
    std::string heading;
    for (std::size_t i = 0; i < buffer.buckets.size(); ++i)
      text += bucket_rows(layout, static_cast<int>(b), static_cast<int>(i), drawing, heading, drawn);
    text += "\n" + legend(layout, buffer, drawn, columns);
  }
  return text;
}

}  // namespace muonwalk
