#include "lessons/lesson_23_two_hosts/link_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"

namespace muonwalk::sim {

PhaseOnLink& LinkUse::of(Phase phase) {
  const auto known = std::find_if(phases.begin(), phases.end(), [&](auto& each) { return each.phase == phase; });
  if (known != phases.end()) return *known;
  phases.push_back({phase});
  return phases.back();
}

PhaseOnLink LinkUse::total() const {
  PhaseOnLink sum{"all"};
  for (const PhaseOnLink& phase : phases) {
    for (const int host : {0, 1}) sum.bytes_out[host] += phase.bytes_out[host];
    sum.waits += phase.waits;
  }
  return sum;
}

double least_ms(const PhaseOnLink& phase, const Link& link) {
  const std::int64_t bytes = std::max(phase.bytes_out[0], phase.bytes_out[1]);
  const double sending = link.bits_per_second > 0 ? 8e3 * static_cast<double>(bytes) / link.bits_per_second : 0;
  return phase.waits * link.delay_ms + sending;
}

Link parse_link(const std::string& text, const std::string& name) {
  const std::vector<std::pair<std::string, double>> units = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"ms", 0}};
  Link link{name.empty() ? text : name};
  bool known = !text.empty();
  for (std::size_t at = 0; at <= text.size() && known;) {
    const std::string word = text.substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    char* end = nullptr;
    const double number = std::strtod(word.c_str(), &end);
    const auto unit = std::find_if(units.begin(), units.end(), [&](auto& each) { return each.first == end; });
    known = unit != units.end() && end != word.c_str() && std::isfinite(number) && number > 0 && number < 1e9;
    if (known) (unit->second > 0 ? link.bits_per_second : link.delay_ms) = number * std::max(unit->second, 1.0);
  }
  if (!known)
    throw UsageError(fmt::format(
        "--link {} is not a link; it takes a rate, a delay, or both, for example 1gbit, 10ms or 100mbit,2ms",
        as_typed(text)));
  return link;
}

std::string link_table(const std::string& of_what, const std::vector<std::pair<std::string, LinkUse>>& uses,
                       const std::vector<Link>& links, bool by_phase) {
  Table table({{of_what}, {"bytes out of a host", bytes_text}, {"waits", number_text}});
  for (const Link& link : links) table.column({link.name, Digits{1, "ms"}});
  const auto row = [&](const std::string& name, const PhaseOnLink& phase) {
    std::vector<Cell> cells = {name, std::max(phase.bytes_out[0], phase.bytes_out[1]), phase.waits};
    for (const Link& link : links) cells.push_back(least_ms(phase, link));
    table.row(cells);
  };
  for (const auto& [name, use] : uses) {
    if (by_phase) {
      table.row({name});
      for (const PhaseOnLink& phase : use.phases)
        if (phase.waits > 0) row("  " + std::string(phase.phase), phase);
    }
    row(by_phase ? "  all" : name, use.total());
  }
  return table.text();
}

}  // namespace muonwalk::sim
