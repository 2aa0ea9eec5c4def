#include "sim/lesson_23/link_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/text/text.hpp"

namespace muonwalk::sim {

std::string link_table(const std::string& of_what, const std::vector<std::pair<std::string, LinkUse>>& uses,
                       const std::vector<NamedLink>& links, bool by_phase) {
  std::vector<std::vector<std::string>> rows = {{of_what, "bytes out of a host", "waits"}};
  for (const auto& [name, link] : links) rows[0].push_back(name);
  const auto line = [&](const std::string& name, const PhaseOnLink& phase) {
    std::vector<std::string> row = {name, bytes_text(std::max(phase.bytes_out[0], phase.bytes_out[1])),
                                    number_text(phase.waits)};
    for (const auto& [ignored, link] : links) row.push_back(fmt::format("{:.1f} ms", least_ms(phase, link)));
    rows.push_back(row);
  };
  for (const auto& [name, use] : uses) {
    if (by_phase) {
      rows.push_back({name});
      for (const PhaseOnLink& phase : use.phases) line("  " + std::string(phase.phase), phase);
    }
    line(by_phase ? "  all" : name, use.total());
  }
  return joined_table(rows, 1);
}

}  // namespace muonwalk::sim
