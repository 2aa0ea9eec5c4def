#include "tools/scale/collective_time.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace muonwalk::sim {
namespace {

// One level that a group crosses, from the inside out.
struct Crossing {
  double width = 1;             // units of the level below that the group has in one of this level
  double inside = 1;            // its ranks in each of these
  double latency = 0;           // α
  double seconds_per_byte = 0;  // β of all links together that the group has out of one of these units
  bool measured = false;        // that is of a measured collective, with the levels inside
  std::optional<Outside> outside;

  // β of the links that one of its ranks has.
  double rank_seconds_per_byte() const { return seconds_per_byte * inside; }
  // Its ranks in one unit of this level.
  double ranks() const { return width * inside; }
};

using Crossings = std::vector<Crossing>;

// A reduce-scatter or an all-gather: each level is a ring of its own over what the level inside of it has left.
CollectiveSeconds level_by_level(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) {
    time.latency += (level.width - 1) * level.latency;
    // Of the whole buffer a rank has bytes / inside here, and sends (width − 1) / width of that.
    const double here = bytes / level.inside * (1 - 1 / level.width) * level.rank_seconds_per_byte();
    const double with_all_inside = bytes * (1 - 1 / level.ranks()) * level.seconds_per_byte;
    time.transfer = level.measured ? with_all_inside : time.transfer + here;
  }
  return time;
}

// Every rank has a piece for every other one, which gets it one after the other.
CollectiveSeconds to_everybody(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  const double piece = bytes / levels.back().ranks();
  for (const Crossing& level : levels) {
    const double others = level.ranks() - level.inside;
    time.latency += others * level.latency;
    time.transfer += others * piece * level.rank_seconds_per_byte();
  }
  return time;
}

CollectiveSeconds seconds_over(CollectiveKind kind, double bytes, const Crossings& levels) {
  CollectiveSeconds time;
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return level_by_level(levels, bytes);
    case CollectiveKind::all_reduce:
      time = level_by_level(levels, bytes);
      time.latency *= 2;
      time.transfer *= 2;
      return time;
    case CollectiveKind::all_to_all:
      return to_everybody(levels, bytes);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      time.latency = levels.back().latency;
      time.transfer = bytes * levels.back().rank_seconds_per_byte();
      return time;
    default:
      throw std::invalid_argument(fmt::format("no step of an optimizer has a {}", collective_name(kind)));
  }
}

Crossing crossing_of(CollectiveKind kind, const Cluster& cluster, const GroupSpread& spread, std::size_t l) {
  const NetworkLevel& level = cluster.levels[l];
  Crossing crossing;
  crossing.width = spread.widths[l];
  crossing.inside = spread.inside[l];
  crossing.latency = level.latency_seconds;
  double bytes_per_second = level.bytes_per_second * cluster.unit_below(l);  // out of a unit of the level below
  const bool half = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
  if (half || kind == CollectiveKind::all_reduce) {
    const MeasuredCurve& curve = half ? level.all_gather : level.all_reduce;
    if (curve.measured()) {
      const CurveReading reading = curve.at(crossing.width);
      bytes_per_second = reading.value;
      crossing.measured = true;
      crossing.outside = reading.outside;
    }
  }
  crossing.seconds_per_byte = spread.sharing[l] / bytes_per_second;
  return crossing;
}

}  // namespace

CollectiveSeconds collective_seconds(CollectiveKind kind, double bytes, const Cluster& cluster,
                                     const GroupSpread& spread) {
  if (!std::isfinite(bytes) || bytes < 0)
    throw std::invalid_argument(fmt::format("a collective of {:g} bytes was asked for", bytes));
  Crossings levels;
  for (std::size_t l = 0; l < spread.widths.size(); ++l)
    if (spread.widths[l] > 1) levels.push_back(crossing_of(kind, cluster, spread, l));
  const bool alone = levels.empty();
  if (alone) levels.emplace_back();
  CollectiveSeconds time = seconds_over(kind, bytes, levels);  // which refuses also where there is one rank
  if (alone) return {};
  // The bandwidth of a measured level has those inside of it in it, whatever was measured of these.
  for (const Crossing& level : levels)
    if (level.measured) time.outside = level.outside;
  return time;
}

}  // namespace muonwalk::sim
