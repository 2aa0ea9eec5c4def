#include "lessons/lesson_17_overlap/overlap_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kNeutral = 0.02;

std::string ms(std::int64_t ns) { return fmt::format("{:.2f}", static_cast<double>(ns) / 1e6); }

// What rank 0 sends in the gathers of the buckets.
Traffic gathered_by_rank_0(const PlannedWay& way) {
  Traffic traffic;
  for (const PlannedCall& each : calls_of(way.plans.at(0)))
    if (each.phase == phases::dp_gather && each.call.kind == CollectiveKind::send) traffic += each.traffic;
  return traffic;
}

}  // namespace

std::vector<Parameter> overlap_layers(int layers) {
  std::vector<Parameter> matrices;
  for (int layer = 0; layer < layers; ++layer) {
    matrices.push_back({fmt::format("{}.up", layer), {256, 128}, SplitDim::rows});
    matrices.push_back({fmt::format("{}.down", layer), {128, 256}, SplitDim::columns});
  }
  return matrices;
}

Layout layout_of_way(const OverlapWay& way, const std::vector<Parameter>& parameters, const Grid& grid) {
  LayoutOptions options;
  options.bucket_capacity = std::max<Index>(1, way.bucket / grid.tp());
  return plan_layout(parameters, grid, options);
}

void require_possible_way(const std::vector<OverlapWay>& ways, const std::string& way, const Grid& grid) {
  if (grid.pp() > 1)
    throw UsageError(
        fmt::format("--pp {} has no place here, where one step is looked at by itself; try --pp 1", grid.pp()));
  std::string known;
  for (const OverlapWay& each : ways) {
    if (way.empty() || way == each.name) return;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  throw UsageError(fmt::format("--way {} is not known; it takes one of: {}", as_typed(way), known));
}

std::vector<PlannedWay> planned_ways(const std::vector<OverlapWay>& ways, const std::vector<Parameter>& parameters,
                                     const Grid& grid, const MuonSettings& settings) {
  std::vector<PlannedWay> planned;
  for (const OverlapWay& way : ways)
    planned.push_back(planned_way(way.name, layout_of_way(way, parameters, grid), settings, way.schedule));
  return planned;
}

PlannedWay planned_way(const std::string& name, const Layout& layout, const MuonSettings& settings, Schedule schedule) {
  PlannedWay way{name, layout, {}};
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    way.plans.push_back(overlapped_plan(layout, layout.grid.place(rank), settings, schedule));
  return way;
}

std::string ways_table(const std::vector<PlannedWay>& ways) {
  std::vector<std::vector<std::string>> rows = {
      {"way", "buckets", "messages", "bytes sent", "Newton–Schulz", "peak elements"}};
  for (const PlannedWay& way : ways) {
    std::size_t buckets = 0;
    for (const Buffer& buffer : way.layout.buffers) buckets += buffer.buckets.size();
    const Traffic traffic = gathered_by_rank_0(way);
    double most = 0;
    Index peak = 0;
    for (const Plan& plan : way.plans) {
      most = std::max(most, flops(plan, phases::orthogonalize));
      peak = std::max(peak, peak_elements(plan));
    }
    rows.push_back({way.name, number_text(static_cast<long long>(buckets)), number_text(traffic.messages_sent),
                    bytes_text(traffic.bytes_sent), fmt::format("{:.1f} MFLOP", most / 1e6), number_text(peak)});
  }
  return joined_table(rows, 1);
}

std::string machine_table(const std::vector<PlannedWay>& ways, const PlayedMachine& machine) {
  std::vector<std::vector<std::string>> rows = {
      {link_speed_text(machine.link), "span", "computing", "waiting", "under way, added up", "hidden"}};
  for (const PlannedWay& way : ways) {
    const PlayedPlan played = play_slowest(way.plans, way.layout, machine);
    rows.push_back({way.name, ms(played.span_ns) + " ms", ms(played.computing_ns), ms(played.waiting_ns),
                    ms(played.under_way_ns()), percent_text(played.hidden())});
  }
  return joined_table(rows, 1);
}

std::string links_table(const std::vector<PlannedWay>& ways, const std::vector<LinkSpeed>& links,
                        double gigaflops_per_second) {
  if (ways.size() != 4) throw std::invalid_argument("links_table compares four ways");
  std::vector<std::vector<std::string>> rows = {{"spans, ms"}};
  for (const PlannedWay& way : ways) rows[0].push_back(way.name);
  rows[0].push_back("overlap");
  for (const LinkSpeed& link : links) {
    rows.push_back({link_speed_text(link)});
    std::vector<std::int64_t> spans;
    for (const PlannedWay& way : ways) {
      spans.push_back(play_slowest(way.plans, way.layout, {link, gigaflops_per_second}).span_ns);
      rows.back().push_back(ms(spans.back()));
    }
    rows.back().push_back(verdict_on(spans[2], std::min(spans[0], spans[1])));
  }
  return joined_table(rows, 1);
}

const std::vector<LinkSpeed>& overlap_links() {
  static const std::vector<LinkSpeed> links = {{100, 1},      {1, 20},     {0.1, 100}, {0.02, 200}, {0.002, 200},
                                               {0.0002, 200}, {0.1, 8000}, {1, 8000},  {1, 40000}};
  return links;
}

std::string overlap_tables(const std::vector<PlannedWay>& ways, const PlayedMachine& machine) {
  return fmt::format("{}\n\nplayed at {:g} GFLOP/s\n{}\n\n{}", ways_table(ways), machine.gigaflops_per_second,
                     machine_table(ways, machine), links_table(ways, overlap_links(), machine.gigaflops_per_second));
}

std::string verdict_on(std::int64_t span_ns, std::int64_t without_ns) {
  const double change = without_ns == 0 ? 0 : static_cast<double>(span_ns) / static_cast<double>(without_ns) - 1;
  if (std::abs(change) <= kNeutral) return "neutral";
  return change < 0 ? fmt::format("pays, −{:.0f} %", -100 * change) : fmt::format("loses, +{:.0f} %", 100 * change);
}

}  // namespace muonwalk::sim
