#include "sim/cost_model/step_prediction.hpp"

#include <algorithm>
#include <string_view>

#include "sim/cost_model/training_memory.hpp"

namespace muonwalk::sim {
namespace {

// 4 bytes each of m and v.
constexpr double kMomentBytes = 8, kMomentumBytes = 4;

StepPrediction completed(const StepQuestion& question, StepPrediction prediction) {
  const TrainingLayout& layout = question.layout;
  const double tokens = static_cast<double>(layout.dp) * layout.micro_batch * layout.accumulation *
                        static_cast<double>(question.model.tokens);
  prediction.tokens_per_second = tokens / prediction.step_seconds();
  prediction.fits = fits(total(prediction.bytes), question.cluster, question.software);
  return prediction;
}

// In place of two moments for every parameter: one for those of Muon.
void exchange_moments(const StepQuestion& question, std::vector<Term>& bytes) {
  const double share = question.model.muon_parameters() / question.model.parameters();
  for (Term& term : bytes)
    if (std::string_view(term.name) == kTwoMoments) {
      const double moments = term.amount;
      term.name = "Muon's momentum, AdamW's moments";
      term.amount = moments * (1 - share * (1 - kMomentumBytes / kMomentBytes));
      term.formula = "AdamW's two moments · (1 − Muon's share / 2)";
      term.inputs = {{"AdamW's two moments", moments, "B", "the same layout with AdamW"},
                     {"Muon's share", share, "", "the model's tensors"}};
    }
}

}  // namespace

StepPrediction predict_adamw(const StepQuestion& question) {
  StepPrediction prediction;
  prediction.seconds = training_seconds(question.model, question.cluster, question.layout, question.software);
  prediction.bytes = training_bytes(question.model, question.layout, question.software);
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonCost& muon) {
  StepPrediction prediction = predict_adamw(question);
  prediction.seconds.insert(prediction.seconds.end(), muon.terms.begin(), muon.terms.end());
  exchange_moments(question, prediction.bytes);
  // The optimizer's step comes when activations are gone: its memory counts only where it is more than theirs.
  double activations = 0;
  for (const Term& term : prediction.bytes)
    if (is_transient(term)) activations += term.amount;
  if (const double more = muon.transient_bytes - activations; more > 0)
    prediction.bytes.push_back({"Muon's gathered matrices, beyond the activations",
                                more,
                                "the most at one time − activations",
                                {{"the most at one time", muon.transient_bytes, "B", "the plan of the busiest rank"},
                                 {"activations", activations, "B", "which are gone by then"}}});
  return completed(question, std::move(prediction));
}

StepPrediction predict_muon(const StepQuestion& question, const MuonWay& way) {
  const TrainingLayout& layout = question.layout;
  return predict_muon(question,
                      muon_cost(question.model, layout.dp, layout.tp, layout.pp, layout.ep, way, question.cluster));
}

}  // namespace muonwalk::sim
