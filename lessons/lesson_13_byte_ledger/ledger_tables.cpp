#include "lessons/lesson_13_byte_ledger/ledger_tables.hpp"

#include <optional>

#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/sent_bytes.hpp"

namespace muonwalk::sim {
namespace {

// What all ranks send together: where a matrix has one owner, each sends something else.
std::int64_t sent_by_all(Who who, const Layout& layout) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    sum += planned(contenders()[who], layout, layout.grid.place(rank)).total();
  return sum;
}

}  // namespace

std::string ledger_table(const std::string& heading, const std::vector<std::pair<std::string, SentBytes>>& rows,
                         std::size_t baseline) {
  const auto cell = [](std::int64_t bytes) { return bytes == 0 ? Cell(std::nullopt) : Cell(bytes); };
  const std::int64_t all = rows.at(baseline).second.total();
  Table table({{heading},
               {"gradients", number_text},
               {"DP gather", number_text},
               {"TP gather", number_text},
               {"weights", number_text},
               {"all, in B", number_text},
               {"to ZeRO-1", Side::right}});
  for (const auto& [who, sent] : rows)
    table.row({who, cell(sent.gradients), cell(sent.updates), cell(sent.slices), cell(sent.weights), sent.total(),
               ratio_text(sent.total(), all)});
  return table.text();
}

std::string published_ratios() {
  struct Ratio {
    const char* what;
    std::int64_t bytes;
    const char* against;
    std::int64_t others;
    const char* remark;
  };
  const Grid square = Grid().dp(2).tp(2), line = Grid().dp(4);
  const SentBytes muon = published(muon_bf16, square);
  const std::int64_t reduced = published(all_reduce, line).total();
  const auto on_line = [&](Who who, Halved halved) { return published(who, line, halved).total(); };
  const std::vector<Ratio> ratios = {
      {"Muon's two gathers, dp 2 × tp 2", muon.gathers(), "AdamW, all-reduce, dp 4", reduced,
       "what the 0.57 compared, in bytes: two layouts, two types, no gradients and no weights of Muon"},
      {"all of Muon, dp 2 × tp 2", muon.total(), "AdamW, all-reduce, dp 4", reduced,
       "nothing left out, still two layouts: close to 0.57, by coincidence"},
      {"all of Muon, dp 2 × tp 2", muon.total(), "AdamW, ZeRO-1, dp 2 × tp 2", published(zero1, square).total(),
       "like for like: the same layout, the same types, nothing left out"},
      {"Muon in bf16, dp 4", on_line(muon_bf16, Halved::nothing), "AdamW, ZeRO-1, dp 4",
       on_line(zero1, Halved::nothing),
       "4 + 2 + 4 B an element to 4 + 4: the 1.25 of Moonlight's paper, its upper bound. In 2 B, too:"},
      {"  weights: 4 + 2 + 2 B", on_line(muon_bf16, Halved::weights), "  4 + 2 B", on_line(zero1, Halved::weights), ""},
      {"  gradients as well: 2 + 2 + 2 B", on_line(muon_bf16, Halved::weights_and_gradients), "  2 + 2 B",
       on_line(zero1, Halved::weights_and_gradients), ""},
      {"Muon, an owner for each matrix", sent_by_all(muon_bf16, published_layout(line, Ownership::matrices)),
       "AdamW, ZeRO-1, all ranks", sent_by_all(zero1, published_layout(line)),
       "no DP gather: that paper's lower bound, 1"}};
  Table table({{"what is compared"}, {"against"}, {"bytes", Side::right}, {"", Side::right}, {"ratio", Side::right}});
  for (const auto& [what, bytes, against, others, remark] : ratios)
    table.row({what, against, megabytes_text(bytes), "/ " + megabytes_text(others), ratio_text(bytes, others)});
  const std::vector<std::string> lines = table.lines();
  std::string text = lines[0];
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    text += "\n" + lines[i + 1];
    if (*ratios[i].remark != '\0')
      for (const std::string& remark : paragraph(ratios[i].remark, 6, 6)) text += "\n" + remark;
  }
  return text;
}

}  // namespace muonwalk::sim
