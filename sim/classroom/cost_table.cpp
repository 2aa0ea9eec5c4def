#include "sim/classroom/cost_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

bool same_line(const LedgerLine& a, const LedgerLine& b) {
  return a.group == b.group && a.kind == b.kind && a.type == b.type;
}

const LedgerLine* find_line(const Ledger& ledger, const LedgerLine& wanted) {
  for (const LedgerLine& line : ledger.lines())
    if (same_line(line, wanted)) return &line;
  return nullptr;
}

// Every kind of line that some rank predicted or counted, in the order of first use.
std::vector<LedgerLine> all_kinds(const std::vector<RankCost>& ranks) {
  std::vector<LedgerLine> kinds;
  for (const RankCost& rank : ranks)
    for (const Ledger* ledger : {&rank.predicted, &rank.counted})
      for (const LedgerLine& line : ledger->lines())
        if (std::none_of(kinds.begin(), kinds.end(), [&](const LedgerLine& k) { return same_line(k, line); }))
          kinds.push_back(line);
  return kinds;
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
  const LedgerLine* predicted = find_line(rank.predicted, kind);
  const LedgerLine* counted = find_line(rank.counted, kind);
  Pair pair;
  if (predicted != nullptr) pair.predicted = predicted->traffic;
  if (counted != nullptr) pair.counted = counted->traffic;
  pair.calls = counted != nullptr ? counted->calls : 0;
  pair.calls_equal = pair.calls == (predicted != nullptr ? predicted->calls : 0);
  return pair;
}

// Ranks sorted by equal values, in order of the first rank of each set.
template <class Value, class Of>
std::vector<std::pair<Value, std::vector<int>>> sets_of_equal(std::size_t ranks, const Of& of) {
  std::vector<std::pair<Value, std::vector<int>>> sets;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Value value = of(r);
    auto set = std::find_if(sets.begin(), sets.end(), [&](const auto& s) { return s.first == value; });
    if (set == sets.end()) set = sets.insert(sets.end(), {value, {}});
    set->second.push_back(static_cast<int>(r));
  }
  return sets;
}

// How wide the columns are; the ranks and the messages need theirs.
struct Widths {
  int name, predicted, counted, before_mark;
};
constexpr Widths kWide = {38, 14, 13, 3}, kNarrow = {33, 11, 10, 2};
constexpr int kRankColumns = 14, kMessageColumns = 9;

// A line of the table; two where the name is long.
std::string row(const std::string& what, const std::string& who, const std::string& predicted,
                const std::string& counted, const std::string& messages, const std::string& mark) {
  const auto cell = [](const std::string& text, int width, bool left) {
    const std::string space(static_cast<std::size_t>(std::max(1, width - text_width(text))), ' ');
    return left ? text + space : space + text;
  };
  const Widths& widths = output_columns() < kColumns ? kNarrow : kWide;
  // A long name has a line to itself.
  if (text_width(what) >= widths.name)
    return "  " + what + "\n      " + row("", who, predicted, counted, messages, mark);
  // A long number takes some of the room before the messages.
  const std::string bytes = cell(counted, widths.counted, false);
  const int left_for_messages = widths.counted + kMessageColumns - text_width(bytes);
  std::string line = "  " + cell(what, widths.name, true) + cell(who, kRankColumns, true) +
                     cell(predicted, widths.predicted, false) + bytes + cell(messages, left_for_messages, false) +
                     std::string(static_cast<std::size_t>(widths.before_mark), ' ') + mark;
  return line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

CostTable cost_table(const std::vector<RankCost>& ranks, const std::string& why_no_count) {
  CostTable table;
  const int size = static_cast<int>(ranks.size());
  table.lines.push_back(row("sent by a rank", "", "predicted", "counted", "messages", ""));
  const auto mark = [&](bool equal) {
    table.equal = table.equal && equal;
    return std::string(equal ? "✔" : "✘");
  };
  for (const LedgerLine& kind : all_kinds(ranks)) {
    const auto sets = sets_of_equal<Pair>(ranks.size(), [&](std::size_t r) { return pair_of(ranks[r], kind); });
    for (const auto& [pair, members] : sets) {
      // Nothing was to be sent and nothing was; waiting never sends.
      const bool says_nothing = pair.calls == 0 || kind.kind == CollectiveKind::wait;
      if (says_nothing && pair.equal() && pair.counted.bytes_sent == 0) {
        mark(true);
        continue;
      }
      const std::string times = pair.calls == 1 ? "" : fmt::format(" × {}", pair.calls);
      table.lines.push_back(
          row(fmt::format("{} over {}, {}{}", collective_name(kind.kind), kind.group, element_name(kind.type), times),
              ranks_text(members, size), bytes_text(pair.predicted.bytes_sent), bytes_text(pair.counted.bytes_sent),
              fmt::format("{}", pair.counted.messages_sent), mark(pair.equal())));
    }
  }
  if (table.lines.size() == 1) table.lines.push_back(row("nothing", "every rank", "0 B", "0 B", "0", mark(true)));

  const bool kernel_known = std::all_of(ranks.begin(), ranks.end(), [](const RankCost& r) { return r.kernel_known; });
  if (kernel_known) {
    using Sent = std::tuple<long long, long long, long long>;
    const auto sets = sets_of_equal<Sent>(ranks.size(), [&](std::size_t r) {
      return Sent{ranks[r].counted.total().bytes_sent, ranks[r].header_sent, ranks[r].kernel_sent};
    });
    for (const auto& [sent, members] : sets) {
      const auto& [payload, headers, kernel] = sent;
      table.lines.push_back(row(fmt::format("kernel, with {} of headers", bytes_text(headers)),
                                ranks_text(members, size), bytes_text(payload + headers), bytes_text(kernel), "",
                                mark(payload + headers == kernel)));
    }
  }
  if (!kernel_known && !why_no_count.empty()) table.lines.push_back("  kernel: not asked, because " + why_no_count);
  const bool peak_predicted =
      std::any_of(ranks.begin(), ranks.end(), [](const RankCost& r) { return r.predicted_peak >= 0; });
  if (peak_predicted) {
    using Peak = std::pair<Index, Index>;
    const auto sets = sets_of_equal<Peak>(ranks.size(), [&](std::size_t r) {
      return Peak{ranks[r].predicted_peak, ranks[r].counted_peak};
    });
    for (const auto& [peak, members] : sets)
      table.lines.push_back(row("peak elements held", ranks_text(members, size), number_text(peak.first),
                                number_text(peak.second), "", mark(peak.first == peak.second)));
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
