#include "sim/lesson_13/ledger_tables.hpp"

#include <fmt/format.h>

#include "src/text/text.hpp"

namespace muonwalk::sim {

namespace {

const char* const kNothing = "–";

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace

std::string ratio_text(std::int64_t bytes, std::int64_t others) {
  if (others == 0) return kNothing;
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(others));
}

std::string mb_text(std::int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

std::string ledger_table(const std::string& heading, const std::vector<LedgerRow>& rows, std::size_t baseline) {
  std::vector<std::vector<std::string>> cells = {
      {heading, "gradients", "DP gather", "TP gather", "weights", "all, in B", "to ZeRO-1"}};
  const auto cell = [](std::int64_t bytes) { return bytes == 0 ? std::string(kNothing) : number_text(bytes); };
  for (const LedgerRow& row : rows)
    cells.push_back({row.who, cell(row.sent.gradients), cell(row.sent.updates), cell(row.sent.slices),
                     cell(row.sent.weights), number_text(row.sent.total()),
                     ratio_text(row.sent.total(), rows.at(baseline).sent.total())});
  return joined(table_lines(cells, 1));
}

std::string ratio_table(const std::string& heading, const std::vector<ByteRatio>& ratios) {
  std::vector<std::vector<std::string>> cells = {{heading, "against", "bytes", "", "ratio"}};
  for (const ByteRatio& ratio : ratios)
    cells.push_back({ratio.what, ratio.against, mb_text(ratio.bytes), "/ " + mb_text(ratio.others),
                     ratio_text(ratio.bytes, ratio.others)});
  const std::vector<std::string> lines = table_lines(cells, 2);
  std::vector<std::string> text = {lines[0]};
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    text.push_back(lines[i + 1]);
    append(text, paragraph(ratios[i].remark, 6, 6));
  }
  return joined(text);
}

}  // namespace muonwalk::sim
