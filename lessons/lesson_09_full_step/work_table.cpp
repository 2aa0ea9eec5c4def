#include "lessons/lesson_09_full_step/work_table.hpp"

#include <fmt/format.h>

#include "src/layout/ownership_table.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kHoldersWidth = 40;  // what 100 columns leave of a line

// Who does each matrix of the first stage that has any; the buffers of other groups are not Muon's.
std::string holders_of(const Layout& stage) {
  const Layout hidden = stage.of_group(kHiddenMatrices);
  return hidden.buffers.empty() ? "" : holders_text(hidden, kHoldersWidth);
}

}  // namespace

std::string work_table(const Plan& serial, const std::vector<WorkOfLayout>& layouts) {
  const double once = flops(serial, phases::orthogonalize);
  if (once == 0) return "work    there is no Newton–Schulz in a step";
  const double unit = once < 1e9 ? 1e6 : 1e9;
  std::vector<std::vector<std::string>> rows = {
      {"work    Newton–Schulz in a step", unit == 1e6 ? "MFLOP" : "GFLOP", "× the work", "ranks that do it"}};
  const auto add = [&](const std::string& name, double work, const std::string& ranks) {
    rows.push_back({"        " + name, fmt::format("{:.2f}", work / unit), fmt::format("{:.2f}", work / once), ranks});
  };
  add("one process", once, "");
  for (const WorkOfLayout& each : layouts)
    add(each.name, flops(each.kinds, phases::orthogonalize), holders_of(each.stages[0]));
  const Grid& grid = layouts.front().stages.front().grid;
  const int ranks = grid.dp() * grid.tp();
  add("upper bound", once * ranks, ranks == 1 ? "one rank does all" : fmt::format("all {} do everything", ranks));
  // Numbers end at the right, and what follows them begins at the left.
  std::string text;
  std::vector<std::vector<std::string>> numbers;
  for (const auto& row : rows) numbers.push_back({row[0], row[1], row[2]});
  const std::vector<std::string> lines = table_lines(numbers, 1);
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i > 0 ? "\n" : "") + lines[i] + (rows[i][3].empty() ? "" : "   " + rows[i][3]);
  return text;
}

}  // namespace muonwalk::sim
