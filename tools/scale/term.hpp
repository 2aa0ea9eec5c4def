#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/comm/call.hpp"

namespace muonwalk::sim {

/// A number that goes into a term. The texts are literals, or live as long as the program.
struct TermInput {
  const char* name = "";    ///< "bytes"
  double value = 0;         ///< The number, in `unit`.
  const char* unit = "";    ///< "B", "s", "B/s", "FLOP", or "" for a count.
  const char* source = "";  ///< "the plan", "H100 data sheet"
  std::optional<double> nearest_at =
      {};                    ///< The nearest measured point, where this one lies outside of what was measured.
  double low = 0, high = 0;  ///< The band in which it may lie, as far as anybody measured it; 0: none is known.
  bool elsewhere = false;    ///< It was measured on other machines alone.
};

/// What a term stands for. Other code asks for one of these, and not for its name.
struct TermKind {
  /// When the seconds pass, or until when the bytes are there.
  enum When {
    in_micro_batches,  ///< Seconds of a pipeline's micro-batches.
    at_the_end,        ///< Seconds after the last micro-batch.
    kept,              ///< Bytes that stay.
    transient          ///< Bytes that are free again when the optimizer steps.
  };

  const char* name;                                  ///< "pipeline fills and drains"
  When when;                                         ///< Where a term of this kind belongs.
  CollectiveKind collective = CollectiveKind::wait;  ///< Of what Muon sends: by which one, RunAnswer::sent.
};

/// All kinds of terms.
namespace terms {
/// A kind of term; its name says what it stands for.
/// @{
inline constexpr TermKind products{"products of the layers", TermKind::in_micro_batches};
inline constexpr TermKind attention{"attention", TermKind::in_micro_batches};
inline constexpr TermKind elementwise{"norms, residuals, activations", TermKind::in_micro_batches};
inline constexpr TermKind gradients_added{"gradients added up", TermKind::in_micro_batches};
inline constexpr TermKind output_layer{"output layer", TermKind::in_micro_batches};
inline constexpr TermKind loss{"loss", TermKind::in_micro_batches};
inline constexpr TermKind tp_transfers{"TP transfers", TermKind::in_micro_batches};
inline constexpr TermKind tp_latency{"TP latency between nodes", TermKind::in_micro_batches};
inline constexpr TermKind expert_tokens{"tokens to their experts and back", TermKind::in_micro_batches};
inline constexpr TermKind next_stage{"activations to the next stage", TermKind::in_micro_batches};
inline constexpr TermKind host{"waiting for the host", TermKind::in_micro_batches};
inline constexpr TermKind slow_host{"waiting for the host, on the slow path", TermKind::in_micro_batches};
inline constexpr TermKind fill_and_drain{"pipeline fills and drains", TermKind::in_micro_batches};
inline constexpr TermKind memory_mapped{"memory mapped anew", TermKind::in_micro_batches};

inline constexpr TermKind gradient_sum{"gradients summed over DP, not hidden", TermKind::at_the_end};
inline constexpr TermKind weight_gather{"weights gathered over DP (ZeRO-1)", TermKind::at_the_end};
inline constexpr TermKind adamw{"AdamW", TermKind::at_the_end};
inline constexpr TermKind tied_table{"the tied table's two gradients summed", TermKind::at_the_end};
inline constexpr TermKind newton_schulz{"Newton–Schulz", TermKind::at_the_end};
inline constexpr TermKind dp_gather{"DP gather", TermKind::at_the_end, CollectiveKind::all_gather};
inline constexpr TermKind dp_transfers{"DP transfers", TermKind::at_the_end, CollectiveKind::recv};
inline constexpr TermKind tp_gather{"TP gather", TermKind::at_the_end, CollectiveKind::all_gather};
inline constexpr TermKind tp_sums{"TP sums of Gram pieces", TermKind::at_the_end, CollectiveKind::all_reduce};
inline constexpr TermKind to_workers{"all-to-all to workers and back", TermKind::at_the_end,
                                     CollectiveKind::all_to_all};

inline constexpr TermKind weights{"weights, bf16", TermKind::kept};
inline constexpr TermKind gradients{"gradients, fp32", TermKind::kept};
inline constexpr TermKind fresh_gradients{"gradients as they come, bf16", TermKind::kept};
inline constexpr TermKind master_weights{"weights, fp32", TermKind::kept};
inline constexpr TermKind two_moments{"AdamW's two moments", TermKind::kept};
inline constexpr TermKind muon_state{"Muon's momentum, AdamW's moments", TermKind::kept};
inline constexpr TermKind gathered_matrices{"Muon's gathered matrices, beyond the activations", TermKind::kept};
inline constexpr TermKind activations{"activations", TermKind::transient};
inline constexpr TermKind gathered_inputs{"inputs gathered from TP ranks", TermKind::transient};
inline constexpr TermKind logits{"logits", TermKind::transient};
inline constexpr TermKind working_layer{"the layer that is worked on", TermKind::transient};
/// @}
}  // namespace terms

/// One term of a prediction, so that it can be taken apart.
struct Term {
  const TermKind* kind;                ///< One of the namespace `terms`.
  double amount = 0;                   ///< Seconds of a step, or bytes of memory.
  std::string formula = {};            ///< How the amount comes about: "(pp − 1) · slot".
  std::vector<TermInput> inputs = {};  ///< The numbers in the formula, in the order in which they stand there.
  double bytes_sent = 0;               ///< Where the term is a collective: what one rank sends in it.

  /// Whether one of its inputs lies outside of what was measured, or was measured elsewhere.
  bool extrapolated() const;
  /// The amount at the upper and at the lower end of the band of an efficiency, to which products are in inverse
  /// proportion (what an output layer sends over TP is taken for a part of them); the amount itself, twice, without a
  /// band.
  std::pair<double, double> band() const;
};

/// The sum of the terms.
double total(const std::vector<Term>& terms);

/// The sum of their bands.
std::pair<double, double> total_band(const std::vector<Term>& terms);

/// Whether one of the terms is extrapolated.
bool any_extrapolated(const std::vector<Term>& terms);

/// A number of at most four digits with a unit, "1.234 ms", "46 GB"; a count, without a unit, up to six.
std::string amount_text(double number, const std::string& unit);

/// Terms as lines of at most 100 columns: amount, share of the whole, formula, every input with its unit and source,
/// and, where one lies outside of what was measured, the nearest measured point. `unit` is "s" or "B".
std::vector<std::string> explain(const std::vector<Term>& terms, const char* unit);

/// A number that knows how it came about. A formula is written once: of numbers with names it explains itself; of
/// numbers without, it is their value alone, which is fast enough for a search over many layouts.
struct Formula {
  enum class Form { atom, product, sum };

  /// A number without a name, and what it stands as in a formula: "2 B", "4/3"; its digits where nothing else is said.
  Formula(double number, const char* written = "") : value(number), text(written) {}
  /// A named number.
  explicit Formula(const TermInput& named) : value(named.value), text(named.name), inputs{named} {}

  double value;
  std::string text;                    ///< "m · layers / rate"
  std::vector<TermInput> inputs = {};  ///< The named numbers in it, each once; none: it explains nothing.
  Form form = Form::atom;              ///< What the text is, which decides where it needs brackets.
};

Formula operator*(const Formula& a, const Formula& b);
Formula operator/(const Formula& a, const Formula& b);
Formula operator+(const Formula& a, const Formula& b);
Formula operator-(const Formula& a, const Formula& b);

/// The number, or 0 where it is below that.
Formula at_least_0(Formula formula);
/// The same number with one more input, which does not stand in the formula: a size that a rate depends on.
Formula with(Formula formula, const TermInput& more);

/// The term whose amount is the value of this formula. What a collective sends is one of its inputs, too.
Term term_of(const TermKind& kind, Formula formula, double bytes_sent = 0);

}  // namespace muonwalk::sim
