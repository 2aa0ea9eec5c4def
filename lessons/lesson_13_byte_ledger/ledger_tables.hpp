#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/train/sent_bytes.hpp"

namespace muonwalk::sim {

/// A line per optimizer with the bytes that one rank sends: by what they are for, their sum, and that over the sum of
/// row `baseline`, which is AdamW with ZeRO-1. Throws std::out_of_range where there is no such row.
std::string ledger_table(const std::string& heading, const std::vector<std::pair<std::string, SentBytes>>& rows,
                         std::size_t baseline);

/// What the published ratios are ratios of, with remarks about what is compared or left out; and what becomes of the
/// upper bound where weights, or weights and gradients, travel in bf16.
std::string published_ratios();

}  // namespace muonwalk::sim
