#include "tools/scale/step_prediction.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/text/text.hpp"
#include "tools/scale/training_memory.hpp"

namespace muonwalk::sim {
namespace {

StepPrediction completed(const StepQuestion& question, StepPrediction prediction) {
  const TrainingLayout& layout = question.layout;
  const double tokens = static_cast<double>(layout.dp) * layout.micro_batch * layout.accumulation *
                        static_cast<double>(question.model.tokens);
  prediction.tokens_per_second = tokens / prediction.step_seconds();
  prediction.fits = fits(total(prediction.bytes), question.cluster, question.software);
  return prediction;
}

// In place of two moments for every parameter: one, half of that, for those of Muon.
void exchange_moments(const StepQuestion& question, std::vector<Term>& bytes) {
  const double share = question.model.muon_parameters() / question.model.parameters();
  for (Term& term : bytes)
    if (term.kind == &terms::two_moments)
      term = term_of(terms::muon_state,
                     input<Formula>({term.kind->name, term.amount, "B", "the same layout with AdamW"}) *
                         (number<Formula>(1, "1") - input<Formula>({"Muon's share", share, "", "the model's tensors"}) /
                                                        number<Formula>(2, "2")));
}

}  // namespace

StepPrediction predict_adamw(const StepQuestion& question) {
  StepPrediction prediction;
  prediction.seconds = training_seconds(question);
  prediction.bytes = training_bytes(question.model, question.layout, question.software);
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonCost& muon) {
  StepPrediction prediction = predict_adamw(question);
  prediction.seconds.insert(prediction.seconds.end(), muon.terms.begin(), muon.terms.end());
  prediction.muon = muon_share(question.model, question.layout, muon.flops, muon.ns_steps);
  prediction.muon_seconds = muon.seconds();
  prediction.muon_band = total_band(muon.terms);
  exchange_moments(question, prediction.bytes);
  // The optimizer's step comes when activations are gone: its memory counts only where it is more than theirs.
  double activations = 0;
  for (const Term& term : prediction.bytes)
    if (term.kind->when == TermKind::transient) activations += term.amount;
  if (muon.transient_bytes > activations)
    prediction.bytes.push_back(
        term_of(terms::gathered_matrices,
                input<Formula>({"the most at one time", muon.transient_bytes, "B", "the plan of the busiest rank"}) -
                    input<Formula>({"activations", activations, "B", "which are gone by then"})));
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonSetup& setup) {
  return predict_muon(question, muon_cost(question.model, question.layout, setup, question.cluster));
}

std::string muon_share_text(const StepPrediction& prediction) {
  const MuonShare& share = *prediction.muon;
  const double adamw = prediction.step_seconds() - prediction.muon_seconds;
  const auto [least, most] = prediction.muon_band;
  return fmt::format(
      "Muon's products over the model's: T · m / B = {} · {} / {} = {:.3g} %, times {:.3g} for ranks that repeat them "
      "or wait: {:.3g} %. In time, with its transfers: {:.3g} % of the step with AdamW, from {:.3g} to {:.3g} %",
      share.steps, number_text(std::llround(share.side)), number_text(std::llround(share.batch_tokens)),
      100 * share.once(), share.repeats, 100 * share.all(), 100 * prediction.muon_seconds / adamw, 100 * least / adamw,
      100 * most / adamw);
}

}  // namespace muonwalk::sim
