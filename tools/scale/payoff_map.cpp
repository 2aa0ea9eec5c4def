#include "tools/scale/payoff_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/scale/layout_search.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kMostLinkGigabytes = 256;  // per second and GPU
constexpr int kMostMapTp = 64;
constexpr int kMostTpOfLinks = 8;

// The same cluster with links of this speed between its nodes, and as much faster or slower ones further out.
Cluster with_links(const Cluster& cluster, double bytes_per_second) {
  Cluster other = cluster;
  const double factor = bytes_per_second / cluster.levels[1].bytes_per_second;
  for (std::size_t l = 1; l < other.levels.size(); ++l) {
    NetworkLevel& level = other.levels[l];
    level.bytes_per_second *= factor;
    for (MeasuredCurve* curve : {&level.all_reduce, &level.all_gather})
      for (MeasuredCurve::Point& point : curve->points) point.value *= factor;
  }
  other.levels[1].bytes_per_second = bytes_per_second;  // to the bit
  return other;
}

const Obstacle* obstacle_of(const ModelShape& model, const Cluster& cluster, int gpus, int tp) {
  if (gpus < tp) return &obstacles::too_few;
  if (gpus % tp != 0 || !can_be_cut(model, tp)) return &obstacles::tp;
  return lies_evenly(cluster, gpus / tp, tp, 1) && lies_evenly(cluster, 1, gpus, 1) ? nullptr : &obstacles::nodes;
}

void add_step(const PayoffQuestion& question, const Cluster& cluster, PayoffCell& cell) {
  const std::vector<TrainingLayout> layouts = layouts_on(question.model, cluster, question.software, cell.dp, cell.tp,
                                                         1, default_sequences(question.model, cell.gpus));
  if (!layouts.empty()) cell.step = compare_steps(question.model, cluster, question.software, layouts);
  if (!cell.step) cell.step_obstacle = layouts.empty() ? &obstacles::batch : &obstacles::memory;
}

PayoffCell cell_of(const PayoffQuestion& question, const Cluster& cluster, int gpus, int tp) {
  PayoffCell cell;
  cell.gpus = gpus;
  cell.tp = tp;
  cell.dp = gpus % tp == 0 ? gpus / tp : 0;
  cell.link_bytes_per_second = cluster.levels[cluster.levels.size() > 1 ? 1 : 0].bytes_per_second;
  cell.obstacle = cell.step_obstacle = obstacle_of(question.model, cluster, gpus, tp);
  if (cell.obstacle != nullptr) return cell;
  cell.communication = compare_communication(question.model, cell.dp, tp, cluster);
  add_step(question, cluster, cell);
  return cell;
}

// The largest power of two, up to 8, that divides a node, and with which the model can be cut.
int tp_of_links(const ModelShape& model, const Cluster& cluster) {
  int tp = 1;
  while (tp < kMostTpOfLinks && cluster.node() % (2 * tp) == 0 && can_be_cut(model, 2 * tp)) tp *= 2;
  return tp;
}

// Powers of two up to a node, then nodes in powers of two, then as many whole nodes as there may be.
std::vector<int> rows_of(const Cluster& cluster, int from, int most) {
  const int node = cluster.node();
  std::vector<int> rows;
  for (int gpus = 2; gpus < node && gpus <= most; gpus *= 2) rows.push_back(gpus);
  for (long gpus = node; gpus <= most; gpus *= 2) rows.push_back(static_cast<int>(gpus));
  const int last = most > node ? most / node * node : most;
  if (rows.empty() || rows.back() < last) rows.push_back(last);
  rows.erase(std::remove_if(rows.begin(), rows.end(), [from](int gpus) { return gpus < from; }), rows.end());
  return rows;
}

std::vector<std::string> notes_of(const PayoffQuestion& question, const PayoffMap& map) {
  std::vector<std::string> notes = {
      "Communication: the seconds for which Muon's optimizer sends on dp × tp GPUs, over those of AdamW with data "
      "parallelism alone on as many. Below 1, Muon pays; above 1 the gain is inverted.",
      "Muon reduce-scatters float32 gradients, gathers float32 weights, and gathers updates in bf16 over dp and tp, "
      "strategy (a); AdamW all-reduces float32 gradients. Only the matrices that Muon takes count.",
      "Tensor parallelism sends activations as well, on Muon's side alone; they are not part of it.",
      "Step: the predicted time of a whole step with Muon over that with AdamW and ZeRO-1 in the same layout, with the "
      "letter of the fastest strategy that has the bits of Muon on one process."};
  const bool measured =
      std::any_of(question.cluster.levels.begin() + 1, question.cluster.levels.end(),
                  [](const NetworkLevel& level) { return level.all_reduce.measured() || level.all_gather.measured(); });
  if (map.columns == MapColumns::links) {
    notes.push_back(fmt::format("All cells have tp {}; what changes with the column is the speed of {} alone.", map.tp,
                                visible_name(question.cluster.levels[1].name)));
    if (measured)
      notes.push_back(fmt::format(
          "Bandwidths were measured at {:.4g} GB/s; in the other columns they grow and shrink in proportion.",
          map.own_link_bytes_per_second / kGigabyte));
  }
  return notes;
}

}  // namespace

const char* map_columns_name(MapColumns columns) { return columns == MapColumns::links ? "links" : "grid"; }

MapColumns parse_map_columns(const std::string& word) {
  for (const MapColumns each : {MapColumns::links, MapColumns::grid})
    if (word == map_columns_name(each)) return each;
  throw UsageError("--over " + as_typed(word) + " is not known; it is links or grid");
}

std::string PayoffMap::subject() const { return visible_name(model, 24) + " on " + visible_name(cluster, 24); }

PayoffMap payoff_map(const PayoffQuestion& question) {
  const Cluster& cluster = question.cluster;
  const bool links = question.columns == MapColumns::links;
  if (question.most_gpus < 2)
    throw UsageError(fmt::format("a map up to {} GPUs has nothing to compare; take 2 or more", question.most_gpus));
  if (links && cluster.levels.size() < 2)
    throw UsageError(fmt::format("{} has one level, and no links between nodes to make a map over; take --over grid",
                                 in_quotes(cluster.name)));
  if (links && question.most_gpus < cluster.node())
    throw UsageError(
        fmt::format("a map over links begins with a node of {} GPUs, and {} are fewer; take more, or --over grid",
                    cluster.node(), question.most_gpus));
  PayoffMap map;
  map.model = question.model.name;
  map.cluster = cluster.name;
  map.columns = question.columns;
  if (cluster.levels.size() > 1) map.own_link_bytes_per_second = cluster.levels[1].bytes_per_second;
  if (links) map.tp = tp_of_links(question.model, cluster);
  map.gpus = rows_of(cluster, links ? cluster.node() : 2, question.most_gpus);
  for (int value = 1; value <= (links ? kMostLinkGigabytes : kMostMapTp); value *= 2)
    map.column_values.push_back(links ? value * kGigabyte : value);
  for (const int gpus : map.gpus) {
    map.cells.emplace_back();
    for (const double value : map.column_values)
      map.cells.back().push_back(links ? cell_of(question, with_links(cluster, value), gpus, map.tp)
                                       : cell_of(question, cluster, gpus, static_cast<int>(value)));
  }
  map.notes = notes_of(question, map);
  return map;
}

std::vector<PayoffMap> payoff_maps(const PayoffQuestion& question) {
  std::vector<PayoffMap> maps = {payoff_map(question)};
  PayoffQuestion other = question;
  other.columns = question.columns == MapColumns::links ? MapColumns::grid : MapColumns::links;
  const bool no_links = question.cluster.levels.size() < 2 || question.most_gpus < question.cluster.node();
  if (other.columns == MapColumns::grid || !no_links) maps.push_back(payoff_map(other));
  return maps;
}

}  // namespace muonwalk::sim
