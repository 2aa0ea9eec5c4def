#pragma once

#include <nlohmann/json.hpp>

#include "src/comm/ledger.hpp"

namespace muonwalk::sim {

/// A ledger as a field of a Record, and back.
/// @{
nlohmann::json ledger_fields(const Ledger& ledger);
Ledger ledger_from(const nlohmann::json& lines);
/// @}

}  // namespace muonwalk::sim
