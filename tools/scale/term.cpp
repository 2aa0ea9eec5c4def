#include "tools/scale/term.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

enum class When { during_micro_batches, at_the_end, kept, transient, on_this_machine };

struct TermFacts {
  TermId id;
  const char* name;
  When when;
  TermCall call = {CollectiveKind::wait, nullptr};  // no group: it is none
};

constexpr TermFacts kTerms[] = {
    {TermId::products, "products of the layers", When::during_micro_batches},
    {TermId::attention, "attention", When::during_micro_batches},
    {TermId::elementwise, "norms, residuals, activations", When::during_micro_batches},
    {TermId::gradients_added, "gradients added up", When::during_micro_batches},
    {TermId::output_layer, "output layer", When::during_micro_batches},
    {TermId::loss, "loss", When::during_micro_batches},
    {TermId::tp_transfers, "TP transfers", When::during_micro_batches},
    {TermId::tp_latency, "TP latency between nodes", When::during_micro_batches},
    {TermId::expert_tokens, "tokens to their experts and back", When::during_micro_batches},
    {TermId::next_stage, "activations to the next stage", When::during_micro_batches},
    {TermId::host, "waiting for the host", When::during_micro_batches},
    {TermId::slow_host, "waiting for the host, on the slow path", When::during_micro_batches},
    {TermId::fill_and_drain, "pipeline fills and drains", When::during_micro_batches},
    {TermId::memory_mapped, "memory mapped anew", When::during_micro_batches},
    {TermId::gradient_sum,
     "gradients summed over DP, not hidden",
     When::at_the_end,
     {CollectiveKind::all_reduce, "dp"}},
    {TermId::weight_gather, "weights gathered over DP (ZeRO-1)", When::at_the_end, {CollectiveKind::all_gather, "dp"}},
    {TermId::adamw, "AdamW", When::at_the_end},
    {TermId::tied_table,
     "the tied table's two gradients summed",
     When::at_the_end,
     {CollectiveKind::all_reduce, kFirstAndLastStage}},
    {TermId::newton_schulz, "Newton–Schulz", When::at_the_end},
    {TermId::to_workers, "all-to-all to workers and back", When::at_the_end, {CollectiveKind::all_to_all, "dp"}},
    {TermId::dp_gather, "DP gather", When::at_the_end, {CollectiveKind::all_gather, "dp"}},
    {TermId::dp_transfers, "DP transfers", When::at_the_end, {CollectiveKind::recv, "dp"}},
    {TermId::tp_gather, "TP gather", When::at_the_end, {CollectiveKind::all_gather, "tp"}},
    {TermId::tp_sums, "TP sums of Gram pieces", When::at_the_end, {CollectiveKind::all_reduce, "tp"}},
    {TermId::weights, "weights, bf16", When::kept},
    {TermId::gradients, "gradients, fp32", When::kept},
    {TermId::fresh_gradients, "gradients as they come, bf16", When::kept},
    {TermId::master_weights, "weights, fp32", When::kept},
    {TermId::two_moments, "AdamW's two moments", When::kept},
    {TermId::muon_state, "Muon's momentum, AdamW's moments", When::kept},
    {TermId::activations, "activations", When::transient},
    {TermId::gathered_inputs, "inputs gathered from TP ranks", When::transient},
    {TermId::logits, "logits", When::transient},
    {TermId::working_layer, "the layer that is worked on", When::transient},
    {TermId::gathered_matrices, "Muon's gathered matrices, beyond the activations", When::kept},
    {TermId::machine_products, "products", When::on_this_machine},
    {TermId::machine_messages, "messages", When::on_this_machine},
    {TermId::machine_bytes, "bytes", When::on_this_machine},
    {TermId::machine_elementwise, "elementwise", When::on_this_machine},
    {TermId::machine_buffers, "new buffers", When::on_this_machine},
    {TermId::slowest_rank, "the slowest rank", When::on_this_machine}};

const TermFacts& facts_of(TermId id) {
  for (const TermFacts& each : kTerms)
    if (each.id == id) return each;
  throw std::logic_error("a term is not in the list of terms");
}

std::string with_prefix(double number, const std::string& unit) {
  constexpr int kDigits = 4;
  return unit == "s" && number != 0 && std::abs(number) < 1000 ? seconds_text(number, kDigits)
                                                               : prefixed_text(number, unit, kDigits);
}

std::string input_text(const TermInput& input) {
  std::string text = fmt::format("{} = {}", input.name, amount_text(input.value, input.unit));
  if (input.source[0] != '\0') text += fmt::format(" ({})", input.source);
  if (input.extrapolated)
    text += fmt::format(", outside of what was measured: the nearest point, at {}",
                        amount_text(input.nearest_at, input.unit));
  return text;
}

using Form = Formula::Form;

std::string bracketed(const Formula& formula, bool brackets) {
  return brackets ? "(" + formula.text + ")" : formula.text;
}

void add_input(std::vector<TermInput>& inputs, const TermInput& more) {
  const auto same = [&more](const TermInput& each) { return std::string_view(each.name) == more.name; };
  if (std::none_of(inputs.begin(), inputs.end(), same)) inputs.push_back(more);
}

Formula joined(const Formula& a, const char* sign, const Formula& b, Form form, double value) {
  const bool product = form == Form::product, divides = std::string_view(sign) == "/";
  const bool right =
      b.form == Form::sum ? product || std::string_view(sign) == "−" : divides && b.form == Form::product;
  Formula result{value, bracketed(a, product && a.form == Form::sum) + " " + sign + " " + bracketed(b, right), a.inputs,
                 form};
  for (const TermInput& each : b.inputs) add_input(result.inputs, each);
  return result;
}

}  // namespace

const char* term_name(TermId id) { return facts_of(id).name; }
bool ends_step(TermId id) { return facts_of(id).when == When::at_the_end; }
bool is_transient(TermId id) { return facts_of(id).when == When::transient; }
const TermCall* call_of(TermId id) {
  const TermCall& call = facts_of(id).call;
  return call.group == nullptr ? nullptr : &call;
}

Formula operator*(const Formula& a, const Formula& b) { return joined(a, "·", b, Form::product, a.value * b.value); }
Formula operator/(const Formula& a, const Formula& b) { return joined(a, "/", b, Form::product, a.value / b.value); }
Formula operator+(const Formula& a, const Formula& b) { return joined(a, "+", b, Form::sum, a.value + b.value); }
Formula operator-(const Formula& a, const Formula& b) { return joined(a, "−", b, Form::sum, a.value - b.value); }

template <>
Formula input<Formula>(const TermInput& named) {
  return {named.value, named.name, {named}, Form::atom};
}
template <>
Formula number<Formula>(double value, const char* text) {
  return {value, text, {}, Form::atom};
}

Formula at_least_0(Formula formula) {
  return {std::max(0.0, formula.value), "max(0, " + formula.text + ")", std::move(formula.inputs), Form::atom};
}

Formula with(Formula formula, const TermInput& more) {
  add_input(formula.inputs, more);
  return formula;
}

Term term_of(TermId id, Formula formula, double bytes_sent) {
  Term term{id, formula.value, std::move(formula.text), std::move(formula.inputs), bytes_sent};
  if (bytes_sent > 0) term.inputs.push_back({"bytes sent", bytes_sent, "B", "by one rank, as a ring sends them"});
  return term;
}

std::string amount_text(double number, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.6g}", number) : with_prefix(number, unit);
}

bool Term::extrapolated() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const TermInput& input) { return input.extrapolated; });
}

double total(const std::vector<Term>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const Term& term) { return sum + term.amount; });
}

bool any_extrapolated(const std::vector<Term>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.extrapolated(); });
}

std::vector<std::string> explain(const std::vector<Term>& terms, const char* unit) {
  const double all = total(terms);
  std::vector<std::string> lines;
  for (const Term& term : terms) {
    lines.push_back(fmt::format("{}  {}{}", pad_right(term.name(), 44), pad_left(with_prefix(term.amount, unit), 12),
                                all > 0 ? pad_left(percent_text(term.amount / all), 10) : ""));
    append(lines, paragraph(fmt::format("= {}", term.formula), 4, 6));
    for (const TermInput& input : term.inputs) append(lines, paragraph(input_text(input), 6, 8));
  }
  lines.push_back(fmt::format("{}  {}", pad_right("all", 44), pad_left(with_prefix(all, unit), 12)));
  return lines;
}

}  // namespace muonwalk::sim
