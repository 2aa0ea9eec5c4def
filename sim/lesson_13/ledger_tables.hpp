#pragma once

#include <string>
#include <vector>

#include "sim/lesson_13/sent_bytes.hpp"

namespace muonwalk::sim {

/// One line of a ledger: who takes the step, and what one rank sends for it.
struct LedgerRow {
  std::string who;  ///< "ZeRO-1 AdamW"
  SentBytes sent;   ///< by one rank
};

/// A line per row: bytes by what they are for, their sum, and that over the sum of row `baseline`
/// (ZeRO-1). At most 100 columns.
std::string ledger_table(const std::string& heading, const std::vector<LedgerRow>& rows, std::size_t baseline);

/// A ratio of two numbers of bytes, and what it is a ratio of.
struct ByteRatio {
  std::string what;         ///< "all that Muon sends, dp 2 × tp 2"
  std::int64_t bytes = 0;   ///< of that
  std::string against;      ///< "ZeRO-1 AdamW, the same grid"
  std::int64_t others = 0;  ///< of that
  std::string remark;       ///< what is compared here, or left out
};

/// "1.70": to two digits after the point; a dash where `others` is 0.
std::string ratio_text(std::int64_t bytes, std::int64_t others);

/// "63.4 MB", of 10⁶ bytes.
std::string mb_text(std::int64_t bytes);

/// Ratios side by side, each with a remark in a second line. At most 100 columns.
std::string ratio_table(const std::string& heading, const std::vector<ByteRatio>& ratios);

}  // namespace muonwalk::sim
