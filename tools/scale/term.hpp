#pragma once

#include <string>
#include <vector>

#include "src/comm/call.hpp"

namespace muonwalk::sim {

/// A number that goes into a term. The texts are literals, or live as long as the program.
struct TermInput {
  const char* name = "";      ///< "bytes"
  double value = 0;           ///< The number, in `unit`.
  const char* unit = "";      ///< "B", "s", "B/s", "FLOP", or "" for a count.
  const char* source = "";    ///< "the plan", "H100 data sheet"
  bool extrapolated = false;  ///< It was read from a curve outside its measured range.
  double nearest_at = 0;      ///< Where extrapolated: the nearest measured point.
};

/// What a term stands for. This, and not its name, is what other code asks.
enum class TermId {
  // Seconds of a pipeline's micro-batches.
  products,
  attention,
  elementwise,
  gradients_added,
  output_layer,
  loss,
  tp_transfers,
  tp_latency,
  expert_tokens,
  next_stage,
  host,
  slow_host,
  fill_and_drain,
  memory_mapped,
  // Seconds after the last micro-batch.
  gradient_sum,
  weight_gather,
  adamw,
  tied_table,
  newton_schulz,
  dp_gather,
  dp_transfers,
  tp_gather,
  tp_sums,
  to_workers,
  // Bytes that stay.
  weights,
  gradients,
  fresh_gradients,
  master_weights,
  two_moments,
  muon_state,
  // Bytes that are free again when the optimizer steps; and what it then needs beyond them.
  activations,
  gathered_inputs,
  logits,
  working_layer,
  gathered_matrices,
  // Seconds of a step on one machine.
  machine_products,
  machine_messages,
  machine_bytes,
  machine_elementwise,
  machine_buffers,
  slowest_rank
};

/// A collective that a term is the time of: how a predicted trace draws it.
struct TermCall {
  CollectiveKind kind;  ///< Which one.
  const char* group;    ///< "dp", "tp", or kFirstAndLastStage.
};

/// The group of the two stages that share a tied table.
constexpr const char* kFirstAndLastStage = "first and last stage";

/// "pipeline fills and drains".
const char* term_name(TermId id);
/// Whether a term's seconds come after the last micro-batch of a step.
bool ends_step(TermId id);
/// Whether a term's memory is free again when the optimizer steps.
bool is_transient(TermId id);
/// The collective that a term is the time of, or nullptr.
const TermCall* call_of(TermId id);

/// One term of a prediction, so that it can be taken apart.
struct Term {
  TermId id;                           ///< What it is.
  double amount = 0;                   ///< Seconds of a step, or bytes of memory.
  std::string formula = {};            ///< How the amount comes about: "(pp − 1) · slot".
  std::vector<TermInput> inputs = {};  ///< The numbers in the formula, in the order in which they stand there.
  double bytes_sent = 0;               ///< Where the term is a collective: what one rank sends in it.

  const char* name() const { return term_name(id); }
  /// Whether one of its inputs is extrapolated.
  bool extrapolated() const;
};

/// The sum of the terms.
double total(const std::vector<Term>& terms);

/// Whether one of them is extrapolated.
bool any_extrapolated(const std::vector<Term>& terms);

/// A number with at most four digits and a prefix for its unit, "1.234 ms", "46 GB"; a count, which has no unit, with
/// up to six digits.
std::string amount_text(double number, const std::string& unit);

/// Terms as lines of at most 100 columns: amount, share of the whole, formula, every input with its unit and source,
/// and, where one lies outside of what was measured, the nearest measured point. `unit` is "s" or "B".
std::string explain(const std::vector<Term>& terms, const char* unit);

/// A number that knows how it came about. A formula is written once, as a template over its numbers: with double it is
/// fast enough for a search over many layouts, with Formula it explains itself.
struct Formula {
  enum class Form { atom, product, sum };

  double value = 0;
  std::string text;               ///< "m · layers / rate"
  std::vector<TermInput> inputs;  ///< The named numbers in it, each once.
  Form form = Form::atom;         ///< What the text is, which decides where it needs brackets.
};

Formula operator*(const Formula& a, const Formula& b);
Formula operator/(const Formula& a, const Formula& b);
Formula operator+(const Formula& a, const Formula& b);
Formula operator-(const Formula& a, const Formula& b);

/// A named number.
template <class Number>
Number input(const TermInput& named);
template <>
inline double input<double>(const TermInput& named) {
  return named.value;
}
template <>
Formula input<Formula>(const TermInput& named);
/// A number without a name, as `text`: "6", "2 B".
template <class Number>
Number number(double value, const char* text);
template <>
inline double number<double>(double value, const char*) {
  return value;
}
template <>
Formula number<Formula>(double value, const char* text);
/// The number, or 0 where it is below that.
/// @{
inline double at_least_0(double number) { return number > 0 ? number : 0; }
Formula at_least_0(Formula formula);
/// @}
/// A number whose inputs say more than the formula does: a size that a rate depends on.
/// @{
inline double with(double number, const TermInput&) { return number; }
Formula with(Formula formula, const TermInput& more);
/// @}

/// The term whose amount is the value of this formula. What a collective sends is one of its inputs, too.
Term term_of(TermId id, Formula formula, double bytes_sent = 0);

}  // namespace muonwalk::sim
