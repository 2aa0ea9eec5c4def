#include "sim/cluster/ledger_record.hpp"

namespace muonwalk::sim {

nlohmann::json ledger_fields(const Ledger& ledger) {
  nlohmann::json lines = nlohmann::json::array();
  for (const LedgerLine& line : ledger.lines())
    lines.push_back({line.group, static_cast<int>(line.kind), static_cast<int>(line.type), line.calls,
                     line.traffic.bytes_sent, line.traffic.bytes_received, line.traffic.messages_sent,
                     line.traffic.messages_received});
  return lines;
}

Ledger ledger_from(const nlohmann::json& lines) {
  Ledger ledger;
  for (const auto& line : lines)
    ledger.add(line[0], static_cast<CollectiveKind>(line[1].get<int>()), static_cast<ElementType>(line[2].get<int>()),
               line[3], Traffic{line[4], line[5], line[6], line[7]});
  return ledger;
}

}  // namespace muonwalk::sim
