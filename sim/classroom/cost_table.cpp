#include "sim/classroom/cost_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/classroom/step_lines.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Every kind of line that some rank predicted or counted, in the order of first use.
std::vector<LedgerLine> all_kinds(const std::vector<RankCost>& ranks) {
  Ledger all;
  for (const RankCost& rank : ranks)
    for (const Ledger& ledger : {rank.predicted, rank.counted}) all.add(ledger, 1);
  return all.lines();
}

// What one rank predicted and counted in one kind of line. The bytes received are compared as well, though not printed.
struct Pair {
  long long calls = 0;
  Traffic predicted, counted;
  bool calls_equal = true;
  bool equal() const { return predicted == counted && calls_equal; }
  bool operator==(const Pair& o) const {
    return predicted == o.predicted && counted == o.counted && calls == o.calls && calls_equal == o.calls_equal;
  }
};

Pair pair_of(const RankCost& rank, const LedgerLine& kind) {
  const LedgerLine predicted = rank.predicted.line_like(kind), counted = rank.counted.line_like(kind);
  return {counted.calls, predicted.traffic, counted.traffic, counted.calls == predicted.calls};
}

// How wide the columns are; the ranks and the messages need theirs.
struct Widths {
  int name, predicted, counted, before_mark;
};
constexpr Widths kWide = {38, 14, 13, 3}, kNarrow = {33, 11, 10, 2};
constexpr const char* kSum = "sent, each call as predicted";
constexpr int kRankColumns = 14, kMessageColumns = 9;

// A line of the table; two where the name is long.
std::string row(const std::string& what, const std::string& who, const std::string& predicted,
                const std::string& counted, const std::string& messages, const std::string& mark) {
  const auto cell = [](const std::string& text, int width, bool left) {
    return left ? pad_right(text + " ", width) : pad_left(" " + text, width);
  };
  const Widths& widths = output_columns() < kColumns ? kNarrow : kWide;
  // A long name has a line to itself.
  if (text_width(what) >= widths.name)
    return "  " + what + "\n      " + row("", who, predicted, counted, messages, mark);
  // Numbers from the least to the most stand under both headings. A long one takes room from the messages.
  const int room = predicted.empty() ? widths.predicted + widths.counted : widths.counted;
  const std::string bytes = cell(counted, room, false);
  const int left_for_messages = room + kMessageColumns - text_width(bytes);
  std::string line = "  " + cell(what, widths.name, true) + cell(who, kRankColumns, true) +
                     (predicted.empty() ? "" : cell(predicted, widths.predicted, false)) + bytes +
                     cell(messages, left_for_messages, false) +
                     std::string(static_cast<std::size_t>(widths.before_mark), ' ') + mark;
  return line.erase(line.find_last_not_of(' ') + 1);
}

// One line of the table for ranks that moved the same.
struct RanksLine {
  std::vector<int> ranks;
  std::string what;                                                // where lines are not drawn together
  long long calls = 0, predicted = 0, counted = 0, messages = -1;  // −1: none are counted
  bool equal = true;
};

// Draws the lines of one thing together, if all are as predicted: from the smallest number to the largest one.
class CostLines {
 public:
  CostLines(CostTable& table, int ranks, bool every_set) : table_(table), ranks_(ranks), every_set_(every_set) {}

  template <class Text>
  void add(const std::string& together, const std::vector<RanksLine>& lines, const Text& text, bool times) {
    for (const RanksLine& line : lines) table_.equal = table_.equal && line.equal;
    const bool all_equal = std::all_of(lines.begin(), lines.end(), [](const RanksLine& line) { return line.equal; });
    if (every_set_ || !all_equal || lines.size() < 2) {
      for (const RanksLine& line : lines)
        table_.lines.push_back(row(line.what, ranks_text(line.ranks, ranks_), text(line.predicted), text(line.counted),
                                   line.messages < 0 ? "" : std::to_string(line.messages), line.equal ? "✔" : "✘"));
      return;
    }
    const auto span = [&](long long RanksLine::*of, const auto& in_words) {
      const auto [least, most] = std::minmax_element(
          lines.begin(), lines.end(), [of](const RanksLine& x, const RanksLine& y) { return x.*of < y.*of; });
      return span_text((*least).*of, (*most).*of, in_words);
    };
    std::vector<int> members;
    for (const RanksLine& line : lines) members.insert(members.end(), line.ranks.begin(), line.ranks.end());
    std::sort(members.begin(), members.end());
    const auto number = [](long long value) { return std::to_string(value); };
    const std::string calls = times ? " × " + span(&RanksLine::calls, number) : "";
    table_.lines.push_back(row(together + (calls == " × 1" ? "" : calls), ranks_text(members, ranks_), "",
                               span(&RanksLine::counted, text),
                               lines[0].messages < 0 ? "" : span(&RanksLine::messages, number), "✔"));
  }

 private:
  CostTable& table_;
  int ranks_;
  bool every_set_;
};

}  // namespace

CostTable cost_table(const std::vector<RankCost>& ranks, const std::string& why_no_count, bool every_set) {
  CostTable table;
  table.lines.push_back(row("sent by a rank", "", "predicted", "counted", "messages", ""));
  CostLines lines(table, static_cast<int>(ranks.size()), every_set);
  for (const LedgerLine& kind : all_kinds(ranks)) {
    std::vector<RanksLine> of_kind;
    const std::string name =
        fmt::format("{} over {}, {}", collective_name(kind.kind), kind.group, element_name(kind.type));
    for (const auto& [pair, members] :
         sets_of_equal(ranks.size(), [&](std::size_t r) { return pair_of(ranks[r], kind); })) {
      // Nothing was to be sent and nothing was; who receives or waits never sends.
      const bool says_nothing =
          pair.calls == 0 || kind.kind == CollectiveKind::recv || kind.kind == CollectiveKind::wait;
      if (says_nothing && pair.equal() && pair.counted.bytes_sent == 0) continue;
      of_kind.push_back({members, pair.calls == 1 ? name : fmt::format("{} × {}", name, pair.calls), pair.calls,
                         pair.predicted.bytes_sent, pair.counted.bytes_sent, pair.counted.messages_sent, pair.equal()});
    }
    lines.add(name, of_kind, bytes_text, true);
  }
  CostTable sum;
  std::vector<RanksLine> of_rank;  // the sum of its calls
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Traffic sent = ranks[r].counted.total();
    of_rank.push_back({{static_cast<int>(r)}, kSum, 0, sent.bytes_sent, sent.bytes_sent, sent.messages_sent});
  }
  CostLines(sum, static_cast<int>(ranks.size()), false).add(kSum, of_rank, bytes_text, false);
  table.sum = lines_text(sum.lines);
  if (table.lines.size() == 1) table.lines.push_back(row("nothing", "every rank", "0 B", "0 B", "0", "✔"));

  if (std::all_of(ranks.begin(), ranks.end(), [](const RankCost& rank) { return rank.kernel_sent.has_value(); })) {
    using Sent = std::tuple<long long, long long, long long>;
    std::vector<RanksLine> of_kernel;
    for (const auto& [sent, members] : sets_of_equal(ranks.size(), [&](std::size_t r) {
           return Sent{ranks[r].counted.total().bytes_sent, ranks[r].header_sent, *ranks[r].kernel_sent};
         })) {
      const auto& [payload, headers, kernel] = sent;
      of_kernel.push_back({members, fmt::format("TCP, with {} of headers", bytes_text(headers)), 0, payload + headers,
                           kernel, -1, payload + headers == kernel});
    }
    lines.add("TCP with headers, as Linux counts it", of_kernel, bytes_text, false);
  } else if (!why_no_count.empty()) {
    table.lines.push_back("  TCP: Linux was not asked, because " + why_no_count);
  }
  if (std::any_of(ranks.begin(), ranks.end(), [](const RankCost& rank) { return rank.predicted_peak >= 0; })) {
    using Peak = std::pair<Index, Index>;
    std::vector<RanksLine> of_peak;
    for (const auto& [peak, members] : sets_of_equal(ranks.size(), [&](std::size_t r) {
           return Peak{ranks[r].predicted_peak, ranks[r].counted_peak};
         }))
      of_peak.push_back({members, "peak elements held", 0, peak.first, peak.second, -1, peak.first == peak.second});
    lines.add(
        "peak elements held", of_peak, [](long long elements) { return number_text(elements); }, false);
  }
  // The table shows what was sent; a difference may also lie in what was received, or in the number of calls.
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::string difference = first_difference(ranks[r].predicted, ranks[r].counted);
    if (difference.empty()) continue;
    for (const std::string& line :
         wrap_text(fmt::format("first difference: rank {}, {}", r, difference), 2, output_columns() - 8))
      table.lines.push_back("  " + line);
    break;
  }
  return table;
}

}  // namespace muonwalk::sim
