#include "sim/analyser/trace_comparison.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/analyser/comparison_warnings.hpp"

namespace muonwalk::sim {
namespace {

// The lines of one collective, of whatever type and group, added up.
struct CollectiveSum {
  std::int64_t calls = 0;
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> message_bytes = 0;
};

CollectiveSum sum_of(const RankSummary& summary, Collective collective) {
  CollectiveSum sum;
  for (const CollectiveLine& line : summary.collectives) {
    if (line.collective != collective) continue;
    sum.calls += line.calls;
    sum.time_ns += line.time_ns;
    if (sum.message_bytes && line.message_bytes)
      *sum.message_bytes += *line.message_bytes;
    else
      sum.message_bytes.reset();
  }
  return sum;
}

std::optional<double> percent(std::optional<double> share) {
  return share ? std::optional<double>(100 * *share) : std::nullopt;
}

}  // namespace

std::vector<Figure> figures_of(const RankSummary& summary, std::size_t ranks) {
  const double n = static_cast<double>(std::max<std::size_t>(ranks, 1));
  const bool known = summary.basis != TimeBasis::none;
  const auto ms = [&](std::int64_t ns) {
    return known ? std::optional<double>(static_cast<double>(ns) / 1e6 / n) : std::nullopt;
  };
  const auto per_step = [&](std::int64_t ns) {
    return known && summary.steps > 0
               ? std::optional<double>(static_cast<double>(ns) / 1e6 / n / static_cast<double>(summary.steps))
               : std::nullopt;
  };
  const auto of_optimizer = [](const OptimizerShare& share, std::optional<double> value) {
    return share.ranges > 0 ? value : std::nullopt;
  };
  const OptimizerShare &device = summary.optimizer_device, &host = summary.optimizer_host;
  std::vector<Figure> figures = {
      {"steps", "", summary.steps > 0 ? std::optional<double>(static_cast<double>(summary.steps)) : std::nullopt},
      {"span", "ms", ms(summary.span_ns)},
      {"span, a step", "ms", per_step(summary.span_ns)},
      {"computation", "ms", ms(summary.computation_ns)},
      {"computation, a step", "ms", per_step(summary.computation_ns)},
      {"communication, union", "ms", ms(summary.communication_ns)},
      {"communication, sum", "ms", ms(summary.communication_sum_ns)},
      {"communication, sum, a step", "ms", per_step(summary.communication_sum_ns)},
      {"overlap", "ms", ms(summary.overlap_ns)},
      {"overlap of communication", "%", percent(summary.overlap_share())},
      {"copies", "ms", ms(summary.copies_ns)},
      {"idle", "ms", ms(summary.idle_ns)},
      {"optimizer, device", "ms", of_optimizer(device, static_cast<double>(device.time_ns) / 1e6 / n)},
      {"optimizer, share of the span", "%", of_optimizer(device, 100 * device.share())},
      {"optimizer, host", "ms", of_optimizer(host, static_cast<double>(host.time_ns) / 1e6 / n)},
      {"optimizer, share of the host", "%", of_optimizer(host, 100 * host.share())}};
  if (summary.waiting.matched_calls > 0) {
    figures.push_back({"transfer", "ms", ms(summary.waiting.transfer_ns)});
    figures.push_back({"waiting", "ms", ms(summary.waiting.waiting_ns)});
  }
  for (int c = 0; c <= static_cast<int>(Collective::other); ++c) {
    const Collective collective = static_cast<Collective>(c);
    const CollectiveSum sum = sum_of(summary, collective);
    if (sum.calls == 0) continue;
    const std::string name = collective_text(collective);
    figures.push_back({name + ", calls", "", static_cast<double>(sum.calls) / n});
    figures.push_back({name + ", sum", "ms", ms(sum.time_ns)});
    figures.push_back(
        {name + ", messages", "bytes",
         sum.message_bytes ? std::optional<double>(static_cast<double>(*sum.message_bytes) / n) : std::nullopt});
  }
  return figures;
}

std::optional<double> ComparedFigure::ratio() const {
  if (!a || !b || *a == 0) return std::nullopt;
  return *b / *a;
}

TraceComparison compare(Summary a, Summary b) {
  TraceComparison comparison;
  for (Figure& figure : figures_of(a.together, a.ranks.size()))
    comparison.figures.push_back({std::move(figure.name), std::move(figure.unit), figure.value, std::nullopt});
  for (Figure& figure : figures_of(b.together, b.ranks.size())) {
    const auto same = std::find_if(comparison.figures.begin(), comparison.figures.end(),
                                   [&](const ComparedFigure& each) { return each.name == figure.name; });
    if (same == comparison.figures.end())
      comparison.figures.push_back({std::move(figure.name), std::move(figure.unit), std::nullopt, figure.value});
    else
      same->b = figure.value;
  }
  comparison.warnings = comparison_warnings(a, b);
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  return comparison;
}

}  // namespace muonwalk::sim
