#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace_summary.hpp"

namespace muonwalk::sim {

/// A figure of a summary: of the mean rank where there are several.
struct Figure {
  std::string name;             ///< "communication", "all_gather, calls"
  std::string unit;             ///< "ms", "%", "bytes", "GB/s", "" for a count
  std::optional<double> value;  ///< nothing where it is not known
};

/// The figures of a rank, or of sums over `ranks` ranks divided by their number; always in the same order.
std::vector<Figure> figures_of(const RankSummary& summary, std::size_t ranks);

struct ComparedFigure {
  std::string name;
  std::string unit;
  std::optional<double> a, b;

  /// b / a; nothing where one of them is not known, or a is 0.
  std::optional<double> ratio() const;
};

/// Two runs side by side.
struct Comparison {
  Summary a, b;
  std::vector<ComparedFigure> figures;
  std::vector<std::string> warnings;  ///< a sentence for each way in which the runs are not comparable
};

Comparison compare(Summary a, Summary b);

}  // namespace muonwalk::sim
