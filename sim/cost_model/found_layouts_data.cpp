#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/cost_model/found_layouts_output.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using Json = nlohmann::ordered_json;

Json terms_json(const std::vector<Term>& terms, const char* amount) {
  Json list = Json::array();
  for (const Term& term : terms) {
    Json inputs = Json::array();
    for (const TermInput& input : term.inputs) {
      Json each = {{"name", input.name}, {"value", input.value}, {"unit", input.unit}, {"source", input.source}};
      if (input.extrapolated) each["nearest_measured_at"] = input.nearest_at;
      inputs.push_back(each);
    }
    list.push_back({{"name", term.name},
                    {amount, term.amount},
                    {"formula", term.formula},
                    {"extrapolated", term.extrapolated()},
                    {"inputs", inputs}});
  }
  return list;
}

Json layout_json(const TrainingLayout& layout) {
  return {{"nodes", layout.nodes},
          {"dp", layout.dp},
          {"tp", layout.tp},
          {"pp", layout.pp},
          {"ep", layout.ep},
          {"zero", layout.zero},
          {"micro_batch_sequences", layout.micro_batch},
          {"accumulation", layout.accumulation},
          {"recomputation", recomputation_name(layout.recomputation)},
          {"chunks", layout.chunks}};
}

Json prediction_json(const StepPrediction& prediction, int gpus) {
  return {{"step_seconds", prediction.step_seconds()},
          {"tokens_per_second_per_gpu", prediction.tokens_per_second / gpus},
          {"memory_bytes", total(prediction.bytes)},
          {"fits", prediction.fits},
          {"seconds", terms_json(prediction.seconds, "seconds")},
          {"memory", terms_json(prediction.bytes, "bytes")}};
}

std::string document(const Json& json) { return json.dump(1) + "\n"; }

}  // namespace

std::string layouts_json(const LayoutSearch& search, const FoundLayouts& found) {
  Json layouts = Json::array();
  for (const FoundLayout& each : found.best) {
    Json json = {{"layout", layout_json(each.layout)},
                 {"strategy", each.strategy ? Json(std::string(1, each.strategy->letter)) : Json(nullptr)}};
    json.update(prediction_json(each.prediction, search.gpus));
    layouts.push_back(json);
  }
  return document({{"format", "muonwalk-scale-layouts"},
                   {"model", search.model.name},
                   {"cluster", search.cluster.name},
                   {"software", search.software.name},
                   {"gpus", search.gpus},
                   {"tried", found.tried},
                   {"fit", found.fit},
                   {"layouts", layouts}});
}

std::string layouts_csv(const FoundLayouts& found) {
  std::string csv =
      "nodes,dp,tp,pp,ep,zero,mbs,grad_acc,recomputation,strategy,step_seconds,tokens_per_second,memory_bytes,"
      "extrapolated\n";
  for (const FoundLayout& each : found.best) {
    const TrainingLayout& layout = each.layout;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.0f},{}\n", layout.nodes, layout.dp, layout.tp,
                       layout.pp, layout.ep, layout.zero, layout.micro_batch, layout.accumulation,
                       recomputation_name(layout.recomputation),
                       each.strategy ? std::string(1, each.strategy->letter) : "", each.prediction.step_seconds(),
                       each.prediction.tokens_per_second, total(each.prediction.bytes),
                       any_extrapolated(each.prediction.seconds) ? 1 : 0);
  }
  return csv;
}

std::string explanation_json(const StepQuestion& question, const StepPrediction& prediction) {
  Json json = {{"format", "muonwalk-scale-explanation"},
               {"model", question.model.name},
               {"cluster", question.cluster.name},
               {"software", question.software.name},
               {"layout", layout_json(question.layout)}};
  json.update(prediction_json(prediction, question.layout.ranks()));
  return document(json);
}

std::string explanation_csv(const StepPrediction& prediction) {
  std::string csv = "of,term,amount,unit,formula,extrapolated\n";
  const auto add = [&csv](const char* of, const std::vector<Term>& terms, const char* unit) {
    for (const Term& term : terms)
      csv += fmt::format("{},{},{:.6g},{},{},{}\n", of, csv_cell(term.name), term.amount, unit, csv_cell(term.formula),
                         term.extrapolated() ? 1 : 0);
  };
  add("time", prediction.seconds, "s");
  add("memory", prediction.bytes, "B");
  return csv;
}

}  // namespace muonwalk::sim
