#include "src/layout/ownership_table.hpp"

#include <algorithm>

#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/words.hpp"

namespace muonwalk {
namespace {

// The most characters of a name in a table.
constexpr int kNameWidth = 40;

std::string reach(std::size_t owners) {
  if (owners == 1) return "in one shard";
  if (owners == 2) return "crosses one boundary";
  return "spans " + std::to_string(owners) + " ranks";
}

// The table with the columns of some DP ranks.
std::string part(const Layout& layout, int first_rank, int end_rank) {
  Table table({{"parameter"}, {"bucket"}, {"global range"}});
  for (int dp = first_rank; dp < end_rank; ++dp) table.column({"dp " + std::to_string(dp)});
  table.column({""});
  const std::map<std::string, std::string> names = layout.short_names(kNameWidth);
  for (const Buffer& buffer : layout.buffers) {
    for (const DistMeta& meta : buffer.parameters) {
      std::vector<Cell> row = {names.at(meta.name),
                               std::to_string(meta.bucket_idx) + " of buffer " + std::to_string(meta.buffer_idx),
                               range_text(meta.global_range)};
      for (int dp = first_rank; dp < end_rank; ++dp) {
        const Range local = layout.local_range(meta, dp);
        row.emplace_back(local.empty() ? "·" : range_text(local));
      }
      row.emplace_back(reach(layout.owners(meta).size()));
      table.row(row);
    }
  }
  return table.text() + "\n";
}

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string& line : split_at(text, '\n')) widest = std::max(widest, text_width(line));
  return widest;
}

}  // namespace

std::string ownership_table(const Layout& layout, int columns) {
  const int dp = layout.grid.dp();
  for (int ranks_a_part = dp;; --ranks_a_part) {
    std::string text;
    for (int first = 0; first < dp; first += ranks_a_part) {
      text += (first > 0 ? "\n" : "") + part(layout, first, std::min(first + ranks_a_part, dp));
    }
    if (ranks_a_part == 1 || widest_line(text) <= columns) return text;
  }
}

std::string holders_text(const Layout& layout, int columns) {
  const std::string more = ", …";
  std::string text;
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const std::string ranks = std::to_string(layout.owners(meta).size() * static_cast<std::size_t>(layout.grid.tp()));
    const std::string words =
        text.empty() ? visible_name(meta.name) + " " + ranks + " ranks" : ", " + visible_name(meta.name) + " " + ranks;
    const bool last = &meta == &layout.buffers[0].parameters.back();
    if (text_width(text + words + (last ? "" : more)) > columns) return text.empty() ? "…" : text + more;
    text += words;
  }
  return text;
}

}  // namespace muonwalk
