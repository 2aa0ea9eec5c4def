#include "tools/scale/validate_here.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/contenders.hpp"
#include "src/train/models.hpp"
#include "src/train/training.hpp"
#include "tools/scale/measuring.hpp"
#include "tools/scale/plan_time.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kAllRanks[] = "dp × tp";
constexpr std::uint64_t kSeed = 1;
// Ranks that wait for messages leave a third of the cores idle; where they have less than this, others have had them.
constexpr double kUndisturbed = 0.65;

// A kind of step.
struct Kind {
  std::string what;
  std::vector<Parameter> parameters;
  Products products;
  Precision precision;
  std::function<std::unique_ptr<Optimizer>()> make;
};

std::vector<Kind> kinds_of(const HereSettings& settings) {
  const MuonSettings muon = muon_settings(Precision::fp32, 1, Products::eigen);
  std::vector<Kind> kinds = {{"lesson 09, Muon", settings.small ? small_parameters() : proof_of_concept_parameters(),
                              muon.newton_schulz.products, muon.newton_schulz.precision,
                              [muon] { return std::make_unique<Muon>(muon); }}};
  for (const Who who : {all_reduce, zero1, muon_bf16, muon_fp32}) {
    const Contender& contender = contenders()[who];
    kinds.push_back({"lesson 13, " + contender.name, small_published_run_parameters(), Products::chain,
                     who == muon_bf16 ? Precision::bf16 : Precision::fp32,
                     [&contender] { return contender.make(1, Products::chain); }});
  }
  return kinds;
}

Layout layout_of(const Kind& kind, const Grid& grid) {
  LayoutOptions options;
  options.parameter_alignment = 1;  // one bucket without padding, as both lessons have it
  return plan_layout(kind.parameters, grid, options);
}

// Whether all ranks take another step: rank 0 knows the time.
bool go_on(Rank& rank, bool wanted) {
  Communicator& all = rank.group(kAllRanks);
  const float mine = wanted ? 1.0f : 0.0f;
  std::vector<float> told(static_cast<std::size_t>(all.size()));
  all.all_gather(&mine, Index{1}, told.data());
  return told[0] != 0.0f;
}

// What one rank does: steps, each begun by all ranks together. It says when each began and ended, and the processor
// time that it took; then the bytes that it sent in the last one; then in what these are not as planned.
void take_steps(Rank& rank, const Kind& kind, const HereSettings& settings) {
  const Layout layout = layout_of(kind, rank.grid);
  const RandomTraining data(kind.parameters, 1, kSeed);
  const std::unique_ptr<Optimizer> optimizer = kind.make();
  optimizer->start(layout, rank.place, first_buckets(layout, data, rank.place.tp));
  const std::vector<NamedMatrix> held = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
  const Buckets gradients = pack_slices(layout, data.own_gradients(0, rank.grid.dp(), rank.place.dp, held));
  const Ledger planned = ledger_of(optimizer->plan(layout, rank.place));

  std::vector<double> times;
  Ledger counted;
  const double end = seconds_now() + settings.seconds;
  for (int step = 0; go_on(rank, step < settings.steps || seconds_now() < end); ++step) {
    rank.group(kAllRanks).barrier();
    rank.ledger().clear();
    const double worked = rank_seconds(settings.world);
    times.push_back(seconds_now());
    optimizer->step({layout, rank.place, rank.dp(), rank.tp()}, gradients);
    times.push_back(seconds_now());
    times.push_back(rank_seconds(settings.world) - worked);
    counted = rank.ledger();
  }
  rank.say(line_of(times));
  rank.say(line_of({static_cast<double>(counted.total().bytes_sent)}));
  rank.say(first_difference(planned, counted));
}

// Of the quickest step: from the first rank's beginning to the last one's end, and the processor time of all ranks.
void find_quickest(const std::vector<std::vector<double>>& times, StepHere& step) {
  step.measured_seconds = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 2 < times.at(0).size(); i += 3) {
    double began = std::numeric_limits<double>::infinity(), ended = 0, worked = 0;
    for (const std::vector<double>& of_rank : times) {
      began = std::min(began, of_rank.at(i));
      ended = std::max(ended, of_rank.at(i + 1));
      worked += of_rank.at(i + 2);
    }
    if (ended - began >= step.measured_seconds) continue;
    step.measured_seconds = ended - began;
    step.processor_share = worked / (step.measured_seconds * std::min(cores_here(), step.grid.size()));
  }
}

void measure(StepHere& step, const Kind& kind, const HereSettings& settings) {
  Options options;
  options.grid = step.grid;
  options.world = settings.world;
  options.transport = settings.world == WorldKind::threads ? TransportKind::memory : TransportKind::gloo;
  options.threads = 1;
  options.set_up.groups = {{kAllRanks, {}}};
  const auto said = said_by_ranks(options, step.what, [&](Rank& rank) { take_steps(rank, kind, settings); });
  std::vector<std::vector<double>> times;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    times.push_back(numbers_of(said[rank].at(0)));
    step.counted_bytes += std::llround(numbers_of(said[rank].at(1)).at(0));
    if (step.difference.empty() && !said[rank].at(2).empty())
      step.difference = fmt::format("rank {}: {}", rank, said[rank].at(2));
  }
  find_quickest(times, step);
}

void predict(StepHere& step, const Kind& kind, const MachineCosts& machine, const HereSettings& settings) {
  const std::unique_ptr<Optimizer> optimizer = kind.make();
  const std::vector<PlanKind> plans =
      plan_kinds({layout_of(kind, step.grid)},
                 [&](const Layout& layout, const Place& place) { return optimizer->plan(layout, place); });
  for (const PlanKind& plan : plans)
    step.predicted_bytes += static_cast<long long>(plan.ranks.size()) * ledger_of(plan.plan).total().bytes_sent;
  const TransportKind transport = settings.world == WorldKind::threads ? TransportKind::memory : TransportKind::gloo;
  for (const Term& term : plan_time(plans, machine, {transport, kind.products, kind.precision})) {
    step.predicted_seconds += term.amount;
    for (const TermInput& input : term.inputs) step.extrapolated = step.extrapolated || input.extrapolated;
  }
}

void require_sensible(const HereSettings& settings) {
  for (const int ranks : settings.ranks)
    if (ranks < 2 || ranks > kMostRanks || ranks % 2 != 0)
      throw UsageError(fmt::format("{} ranks can't be validated here; take even numbers from 2 to {}, for example 8",
                                   ranks, kMostRanks));
}

}  // namespace

std::vector<StepHere> validate_here(const MachineCosts& machine, const HereSettings& settings) {
  require_sensible(settings);
  std::vector<StepHere> steps;
  for (const Kind& kind : kinds_of(settings))
    for (const int ranks : settings.ranks) {
      StepHere step;
      step.what = kind.what;
      step.grid = Grid().dp(ranks / 2).tp(2);
      predict(step, kind, machine, settings);
      measure(step, kind, settings);
      steps.push_back(std::move(step));
    }
  return steps;
}

std::string here_table(const std::vector<StepHere>& steps) {
  Table table({{"milliseconds of a step"},
               {"ranks", number_text},
               {"predicted", Side::right},
               {"measured", Digits{2}},
               {"error", Side::right},
               {"cores had", Digits{0, "%"}},
               {"bytes sent", Side::right}});
  std::vector<double> errors, undisturbed;
  bool marked = false;
  std::string differences;
  for (const StepHere& step : steps) {
    table.row({step.what, step.grid.size(),
               fixed_text(1e3 * step.predicted_seconds, 2) + (step.extrapolated ? "*" : ""),
               1e3 * step.measured_seconds, fmt::format("{:+.0f} %", 100 * step.error()), 100 * step.processor_share,
               number_text(step.counted_bytes) + (step.bytes_equal() ? " ✔" : " ✘")});
    if (!step.bytes_equal())
      differences += fmt::format(
          "{}\n", fmt::join(paragraph(fmt::format("{} on {}: {} bytes were predicted; {}", step.what, step.grid.text(),
                                                  number_text(step.predicted_bytes), step.difference),
                                      0, 2),
                            "\n"));
    errors.push_back(std::abs(step.error()));
    if (step.processor_share > kUndisturbed) undisturbed.push_back(errors.back());
    marked = marked || step.extrapolated;
  }
  std::string text = table.text() + "\n" + differences;
  if (differences.empty()) text += "✔ as many bytes as were predicted, line by line of every rank's ledger\n";
  if (marked) text += "* a figure in it lies outside of what was measured\n";
  if (errors.empty()) return text;
  text += fmt::format("median error of the times: {}\n", percent_text(quantile(errors, 0.5)));
  if (!undisturbed.empty() && undisturbed.size() < errors.size())
    text += fmt::format("of the {} whose ranks had more than {} of the cores: {}\n",
                        count_text(static_cast<std::int64_t>(undisturbed.size()), "step"), percent_text(kUndisturbed),
                        percent_text(quantile(undisturbed, 0.5)));
  return text;
}

}  // namespace muonwalk::sim
