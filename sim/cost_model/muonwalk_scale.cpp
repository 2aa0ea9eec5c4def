// muonwalk-scale: says what a step of training costs on a cluster that nobody has at hand, and how far off it is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "sim/cost_model/found_layouts_output.hpp"
#include "sim/cost_model/layout_search.hpp"
#include "sim/cost_model/machine_costs.hpp"
#include "sim/cost_model/measure_machine.hpp"
#include "sim/cost_model/predicted_trace.hpp"
#include "sim/cost_model/published_runs.hpp"
#include "sim/cost_model/sweet_spot_map.hpp"
#include "sim/cost_model/validate_here.hpp"
#include "sim/cost_model/validation.hpp"
#include "sim/terminal/reading_program.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "src/text/names.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-scale";

// What was asked for on the command line.
struct Request {
  bool json = false, csv = false;
  std::string model = "8B", cluster = "h100-efa", software = "nanotron", optimizer = "muon";
  int gpus = 0, sequences = 0, most = 5;
  TrainingLayout layout;
  std::string recomputation = "none", strategy = "d";
  std::string over = "links", svg, html, trace;
  std::string runs;     // of predict and validate
  bool here = false;    // of validate
  std::string machine;  // of measure and validate --here
};

// Prints what the request asks for: JSON, CSV or text. The first two end with a newline of their own.
template <class Json, class Csv, class Text>
void print_as(const Request& request, const Json& json, const Csv& csv, const Text& text) {
  if (!request.json && !request.csv) {
    for (const std::string& line : text()) print_line(line);
    return;
  }
  std::string document = request.json ? json() : csv();
  document.pop_back();
  print_line(document);
}

bool with_muon(const Request& request) {
  if (request.optimizer == "muon") return true;
  if (request.optimizer == "adamw") return false;
  throw UsageError("--optimizer " + as_typed(request.optimizer) + " is not known; it is muon or adamw");
}

Strategy strategy_of(const std::string& letter) {
  for (const Strategy& each : strategies())
    if (letter == std::string(1, each.letter)) return each;
  throw UsageError("--strategy " + as_typed(letter) + " is not known; it is a letter from a to h, as in lesson 16");
}

int print_list() {
  const auto line = [](const char* what, const std::vector<std::string>& names) {
    print_line(fmt::format("{:9} {}", what, fmt::join(names, ", ")));
  };
  line("models", model_shape_names());
  line("clusters", cluster_names());
  line("software", software_names());
  return 0;
}

int print_plan(const Request& request) {
  const Cluster cluster = cluster_of(request.cluster);
  const ModelShape& model = model_shape(request.model);
  const TrainingSoftware& software = software_of(request.software);
  const LayoutSearch search{model, cluster, software, request.gpus, request.sequences, with_muon(request)};
  const FoundLayouts found = find_layouts(search, request.most);
  print_as(
      request, [&] { return layouts_json(search, found); }, [&] { return layouts_csv(found); },
      [&] { return layouts_text(search, found); });
  return 0;
}

int print_explanation(Request& request) {
  const Cluster cluster = cluster_of(request.cluster);
  request.layout.nodes = (request.layout.ranks() + cluster.node() - 1) / cluster.node();
  request.layout.recomputation = parse_recomputation(request.recomputation);
  const StepQuestion question{model_shape(request.model), cluster, software_of(request.software), request.layout};
  require_sensible(question.layout, std::min(cluster.node(), question.layout.ranks()));
  if (!request.trace.empty()) require_distinct_files({{"--trace", request.trace, PathUse::writes, "", ""}});
  StepPrediction prediction;
  if (with_muon(request)) {
    MuonWay way;
    way.strategy = strategy_of(request.strategy);
    prediction = predict_muon(question, way);
  } else {
    prediction = predict_adamw(question);
  }
  if (!request.trace.empty()) write_predicted_trace(request.trace, question, prediction);
  print_as(
      request, [&] { return explanation_json(question, prediction); }, [&] { return explanation_csv(prediction); },
      [&] { return explanation_text(question, prediction); });
  return 0;
}
