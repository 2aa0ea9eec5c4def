// muonwalk-scale: says what a step of training costs on a cluster that nobody has at hand, and how far off it is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/terminal/reading_program.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/scale/layout_search.hpp"
#include "tools/scale/prediction_output.hpp"
#include "tools/scale/published_runs.hpp"
#include "tools/scale/published_steps.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/validation.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-scale";

// What was asked for on the command line.
struct Request {
  bool json = false;
  std::string model = "8B", cluster = "h100-efa", software = "nanotron", optimizer = "muon";
  int gpus = 0, most = 5;
  Batch batch;
  TrainingLayout layout;
  std::string recomputation = "none", strategy = "d";
  std::string runs;         // of predict and validate
  std::string run, answer;  // of predict
  bool accumulation_given = false;
};

bool with_muon(const Request& request) {
  if (request.optimizer == "muon") return true;
  if (request.optimizer == "adamw") return false;
  throw UsageError("--optimizer " + as_typed(request.optimizer) + " is not known; it is muon or adamw");
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
  const LayoutSearch search{model, cluster, software, request.gpus, request.batch, with_muon(request)};
  const FoundLayouts found = find_layouts(search, request.most);
  print_as(
      request.json, [&] { return layouts_json(search, found); }, [&] { return layouts_text(search, found); });
  return 0;
}

// More stages than layers, heads that TP does not divide, and what else can't run with any optimizer.
void require_runnable(const StepQuestion& question) {
  const TrainingLayout& layout = question.layout;
  stage_matrices(question.model, layout.pp, layout.ep);
  if (layout.chunks > 1 && question.model.layers < static_cast<Index>(layout.pp) * layout.chunks)
    throw UsageError(fmt::format("{} layers of {} can't be cut into pp {} × {} chunks; take fewer",
                                 question.model.layers, question.model.name, layout.pp, layout.chunks));
  const std::string why = why_it_cannot_run(question.model, layout, question.software);
  if (!why.empty()) throw UsageError(why);
}

// The micro-batches that make up the batch: as asked for, or about as many.
int accumulation_of(const Request& request) {
  const ModelShape& model = model_shape(request.model);
  const TrainingLayout& layout = request.layout;
  const Index sequences = batch_sequences(model, 1, request.batch), at_once = Index{layout.dp} * layout.micro_batch;
  if (request.batch.tokens > 0 && sequences % at_once != 0)
    throw UsageError(fmt::format("--batch-tokens {} are {}, which dp {} × micro-batches of {} do not divide; try {}",
                                 request.batch.tokens, count_text(sequences, "sequence"), layout.dp, layout.micro_batch,
                                 (sequences / at_once + 1) * at_once * model.tokens));
  return static_cast<int>(std::max<Index>(1, sequences / at_once));
}

int print_explanation(Request& request) {
  const Cluster cluster = cluster_of(request.cluster);
  TrainingLayout sizes = request.layout;
  sizes.accumulation += !request.accumulation_given;  // follows from the batch
  require_sizes(sizes);
  request.layout.nodes = (request.layout.ranks() + cluster.node() - 1) / cluster.node();
  request.layout.recomputation = parse_recomputation(request.recomputation);
  if (request.layout.accumulation == 0) request.layout.accumulation = accumulation_of(request);
  const StepQuestion question{model_shape(request.model), cluster, software_of(request.software), request.layout};
  require_sensible(question.layout, std::min(cluster.node(), question.layout.ranks()));
  require_runnable(question);
  StepPrediction prediction;
  if (with_muon(request)) {
    MuonSetup setup;
    const std::optional<Strategy> strategy = strategy_of(request.strategy);
    if (!strategy)
      throw UsageError("--strategy " + as_typed(request.strategy) +
                       " is not known; it is a letter from a to h, as in lesson 16");
    setup.strategy = *strategy;
    prediction = predict_muon(question, setup);
  } else {
    prediction = predict_adamw(question);
  }
  print_as(
      request.json, [&] { return explanation_json(question, prediction); },
      [&] { return explanation_text(question, prediction); });
  return 0;
}

int print_predicted_run(const Request& request) {
  require_distinct_files({{"--run", request.run, PathUse::reads}, {"--json", request.answer, PathUse::writes}});
  const TrainingRun run = read_training_run(request.run);
  const RunAnswer prediction = predict_run(run);
  const auto band = band_of(run);
  std::unique_ptr<FileBeside> answer;
  if (!request.answer.empty()) answer = text_file_beside(request.answer, run_json(run, prediction, band));
  for (const std::string& line : run_text(run, prediction, band)) print_line(line);
  finish_output();
  if (answer != nullptr) answer->commit();
  return 0;
}

int print_predicted_runs(const Request& request) {
  if (request.run.empty() == request.runs.empty())
    throw UsageError(request.run.empty()
                         ? "RUNS.csv is required, a table of runs, or --run FILE, a single one"
                         : "a table of runs and --run can't be predicted at once; leave one of them out");
  if (!request.run.empty()) return print_predicted_run(request);
  if (!request.answer.empty()) throw UsageError("--json is for --run; the predictions of a table are rows of CSV");
  for (const std::string& row : predicted_rows(read_layouts(request.runs))) print_line(row);
  return 0;
}

int print_validation(const Request& request) {
  // Before anything is printed: the table may be refused.
  const std::string runs =
      validation_text(request.runs.empty() ? carried_runs() : read_runs(request.runs), request.runs.empty());
  print_line("Each run at its own batch: 1,048,576 tokens per step in the table of runs, others as published.");
  print_line();
  print_line(published_steps_text());
  print_line();
  print_line(published_pairs_text());
  print_line();
  print_line(runs);
  return 0;
}

void add_question(CLI::App& command, Request& request) {
  command.add_option("--model", request.model, "a name of muonwalk-scale list (default 8B)");
  command.add_option("--cluster", request.cluster, "a name of muonwalk-scale list, or FILE.json (default h100-efa)");
  command.add_option("--software", request.software, "a name of muonwalk-scale list (default nanotron)");
}

int run(int argc, char** argv) {
  Request request;
  CLI::App app{"Predicts what a step of training costs, with Muon or AdamW, on clusters that nobody has at hand.",
               kName};
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "models, clusters and software that are known");

  CLI::App* plan = app.add_subcommand("plan", "the fastest layouts of a model on some GPUs, and why others are slower");
  add_question(*plan, request);
  plan->add_option("--gpus", request.gpus, "how many; all of them are used")
      ->required()
      ->check(CLI::Range(1, kMostOfALayout));
  plan->add_option("--optimizer", request.optimizer, "muon (default) or adamw");
  plan->add_option("--most", request.most, "how many layouts to print (default 5)")->check(CLI::Range(1, 1000));

  CLI::App* explanation = app.add_subcommand("explain", "one layout taken apart: every term with formula and sources");
  add_question(*explanation, request);
  TrainingLayout& layout = request.layout;
  explanation->add_option("--dp", layout.dp, "data-parallel ranks (default 1)");
  explanation->add_option("--tp", layout.tp, "tensor-parallel ranks (default 1)");
  explanation->add_option("--pp", layout.pp, "pipeline stages (default 1)");
  explanation->add_option("--ep", layout.ep, "expert-parallel ranks, among those of dp (default 1)");
  explanation->add_option("--chunks", layout.chunks, "pieces of a stage's layers, interleaved (default 1)");
  explanation->add_option("--zero", layout.zero, "0 or 1 (default 1)")->default_val(1);
  explanation->add_option("--micro-batch", layout.micro_batch, "sequences in a micro-batch (default 1)");
  explanation->add_option("--accumulation", layout.accumulation,
                          "micro-batches per step and DP rank (default: from the batch)");
  explanation->add_option("--recompute", request.recomputation, "none (default), selective or full");
  explanation->add_option("--optimizer", request.optimizer, "muon (default) or adamw");
  explanation->add_option("--strategy", request.strategy, "how Muon is distributed, a letter of lesson 16 (default d)");

  CLI::App* predict = app.add_subcommand("predict", "a run, or a table of runs, with what the model says of each");
  predict->add_option("RUNS.csv", request.runs, "columns model, nodes, dp, tp, pp, zero, mbs and grad_acc");
  predict->add_option("--run", request.run, "one run, with AdamW and with Muon: a file as docs/cost-model.md has it")
      ->type_name("FILE");
  predict->add_option("--json", request.answer, "of --run: also write the answer as JSON")->type_name("FILE");

  CLI::App* validate = app.add_subcommand("validate", "how far off the model is, on what was published and measured");
  validate->add_option("FILE", request.runs, "runs with results as CSV (default: those that the program carries)");

  for (CLI::App* command : {plan, explanation}) {
    command->add_flag("--json", request.json, "print JSON");
    command
        ->add_option("--batch-tokens", request.batch.tokens,
                     "tokens in a step (default: those of somebody who trained such a model; the first line says who)")
        ->check(CLI::Range(Index{1}, Index{1} << 40));
  }
  plan->add_option("--tokens-per-gpu", request.batch.per_gpu, "a batch that grows with the GPUs instead")
      ->check(CLI::Range(Index{1}, Index{1} << 20));
  explanation->get_option("--accumulation")->excludes("--batch-tokens");
  layout.accumulation = 0;
  if (!parse_command_line(app, argc, argv)) return 0;
  request.accumulation_given = explanation->count("--accumulation") > 0;
  return list->parsed()          ? print_list()
         : plan->parsed()        ? print_plan(request)
         : explanation->parsed() ? print_explanation(request)
         : predict->parsed()     ? print_predicted_runs(request)
                                 : print_validation(request);
}

}  // namespace

int main(int argc, char** argv) {
  return run_reading_program(kName, "try fewer GPUs, or a smaller table", [&] { return run(argc, argv); });
}
