#pragma once

#include <string>
#include <vector>

namespace muonwalk::sim {

/// A number that goes into a term. The texts are literals, or live as long as the program.
struct TermInput {
  const char* name = "";    ///< "bytes"
  double value = 0;         ///< in `unit`
  const char* unit = "";    ///< "B", "s", "B/s", "FLOP", "" for a count
  const char* source = "";  ///< "the plan", "H100 data sheet"
  /// It was read from a curve outside of its measured range; then the nearest measured point.
  bool extrapolated = false;
  double nearest_at = 0;  ///< only where extrapolated
};

/// One term of a prediction, so that it can be taken apart: its amount, the formula, what went in.
struct Term {
  const char* name = "";          ///< "pipeline bubble"
  double amount = 0;              ///< seconds of a step, or bytes of memory
  const char* formula = "";       ///< "(pp − 1) · slot"
  std::vector<TermInput> inputs;  ///< of the formula, in the order in which they stand there

  /// One of its inputs is.
  bool extrapolated() const;
};

/// A number with at most four digits and a prefix for its unit: "1.234 ms", "46 GB"; a count, which has no unit, with
/// up to six.
std::string amount_text(double number, const std::string& unit);

/// The sum of the terms.
double total(const std::vector<Term>& terms);

/// Whether one of them is extrapolated.
bool any_extrapolated(const std::vector<Term>& terms);

/// Terms as lines of at most 100 columns: amount, share of the whole, formula, every input with its unit and source,
/// and, where one lies outside of what was measured, the nearest measured point. `unit` is "s" or "B".
std::string explain(const std::vector<Term>& terms, const char* unit);

}  // namespace muonwalk::sim
