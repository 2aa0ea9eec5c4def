#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/trace/summary.hpp"

namespace muonwalk::sim {

/// A figure of a summary: of the mean rank where there are several.
struct Figure {
  std::string name;             ///< "communication", "all_gather, calls".
  std::string unit;             ///< "ms", "%", "bytes", "GB/s", "" for a count.
  std::optional<double> value;  ///< Nothing where it is not known.
  bool always = true;           ///< It stands in comparisons also where neither run knows it.
};

/// The figures of a rank, or of sums over `ranks` ranks divided by their number; always the same ones in the same
/// order.
std::vector<Figure> figures_of(const RankSummary& summary, std::size_t ranks);

/// A figure of two runs.
struct ComparedFigure {
  std::string name;  ///< The name of the Figure.
  std::string unit;  ///< The unit of the Figure.
  /// The figure of each run; nothing where it is not known.
  /// @{
  std::optional<double> a, b;
  /// @}

  /// b / a; nothing where one of them is not known, or a is 0.
  std::optional<double> ratio() const;
};

/// Two runs side by side.
struct TraceComparison {
  /// The runs.
  /// @{
  Summary a, b;
  /// @}
  std::vector<ComparedFigure> figures;  ///< In the order of figures_of.
  std::vector<std::string> warnings;    ///< A sentence for each way in which the runs are not comparable.
};

/// Sets two runs beside each other, figure by figure.
TraceComparison compare(Summary a, Summary b);

}  // namespace muonwalk::sim
