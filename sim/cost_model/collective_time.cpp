#include "sim/cost_model/collective_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

struct NamedAlgorithm {
  CollectiveAlgorithm algorithm;
  const char* name;
};

constexpr NamedAlgorithm kAlgorithms[] = {
    {CollectiveAlgorithm::ring, "ring"},           {CollectiveAlgorithm::tree, "tree"},
    {CollectiveAlgorithm::halving, "halving"},     {CollectiveAlgorithm::pairwise, "pairwise"},
    {CollectiveAlgorithm::two_level, "two-level"}, {CollectiveAlgorithm::direct, "direct"}};

// One level that a group crosses, from the inside out.
struct Crossing {
  double width = 1;             // units of the level below that the group has in one of this level
  double inside = 1;            // its ranks in each of these
  double latency = 0;           // α
  double seconds_per_byte = 0;  // β of all links together that the group has out of one of these units
  bool measured = false;        // that is of a measured collective, with the levels inside
  bool extrapolated = false;    // and read outside of its range
  double nearest_at = 0;        // whose nearest point this is then

  // β of the links that one of its ranks has.
  double rank_seconds_per_byte() const { return seconds_per_byte * inside; }
  // Its ranks in one unit of this level.
  double ranks() const { return width * inside; }
};

using Crossings = std::vector<Crossing>;

bool scatters_or_gathers(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
}

double depth(double width) { return std::ceil(std::log2(width) - 1e-9); }

[[noreturn]] void refuse(CollectiveKind kind, CollectiveAlgorithm algorithm) {
  throw std::invalid_argument(fmt::format("{} has no {}", algorithm_name(algorithm), collective_name(kind)));
}

void add(CollectiveSeconds& sum, const CollectiveSeconds& more, double times = 1) {
  sum.latency += times * more.latency;
  sum.transfer += times * more.transfer;
}

// The β of the slowest level, as the group crosses all of them at once.
double slowest(const Crossings& levels) {
  double most = 0;
  for (const Crossing& level : levels) most = std::max(most, level.seconds_per_byte);
  return most;
}

// A ring through all ranks: how often a piece that goes once around passes each level.
double hops(const Crossings& levels, std::size_t l) {
  double units = 1;
  for (std::size_t outer = l + 1; outer < levels.size(); ++outer) units *= levels[outer].width;
  return (levels[l].width - 1) * units;
}

CollectiveSeconds once_around(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (std::size_t l = 0; l < levels.size(); ++l) time.latency += hops(levels, l) * levels[l].latency;
  time.transfer = bytes * slowest(levels);
  return time;
}

CollectiveSeconds up_a_tree(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) time.latency += depth(level.width) * level.latency;
  time.transfer = bytes * slowest(levels);
  return time;
}

// Halves that are exchanged with ever nearer ranks: what goes over a level is for the ranks on its other side.
CollectiveSeconds by_halves(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (std::size_t l = levels.size(); l > 0; --l) {
    const Crossing& level = levels[l - 1];
    time.latency += depth(level.width) * level.latency;
    time.transfer += bytes * (1 - 1 / level.width) * level.rank_seconds_per_byte();
    bytes /= level.width;
  }
  return time;
}

// Every rank has `piece` bytes for every other one.
CollectiveSeconds to_everybody(const Crossings& levels, double piece, bool at_once) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) {
    const double others = level.ranks() - level.inside;
    const double seconds = others * piece * level.rank_seconds_per_byte();
    time.latency += others * level.latency;
    time.transfer = at_once ? std::max(time.transfer, seconds) : time.transfer + seconds;
  }
  return time;
}

// From the inside out, each level a ring of its own over what the level inside of it has left.
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

CollectiveSeconds all_to_all_by_levels(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) {
    time.latency += (level.width - 1) * level.latency;
    time.transfer += bytes * (1 - 1 / level.width) * level.rank_seconds_per_byte();
  }
  return time;
}

CollectiveSeconds broadcast_by_levels(const Crossings& levels, double bytes) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) {
    time.latency += (level.width - 1) * level.latency;
    time.transfer += bytes * level.seconds_per_byte;
  }
  return time;
}

// A reduce-scatter or an all-gather.
CollectiveSeconds half_of_all_reduce(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                                     const Crossings& levels) {
  const double ranks = levels.back().ranks();
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return once_around(levels, bytes * (ranks - 1) / ranks);
    case CollectiveAlgorithm::halving:
      return by_halves(levels, bytes);
    case CollectiveAlgorithm::pairwise:
    case CollectiveAlgorithm::direct:
      return to_everybody(levels, bytes / ranks, algorithm == CollectiveAlgorithm::direct);
    case CollectiveAlgorithm::two_level:
      return level_by_level(levels, bytes);
    case CollectiveAlgorithm::tree:
      break;
  }
  refuse(kind, algorithm);
}

CollectiveSeconds all_reduce(CollectiveAlgorithm algorithm, double bytes, const Crossings& levels) {
  CollectiveSeconds time;
  if (algorithm == CollectiveAlgorithm::tree)
    add(time, up_a_tree(levels, bytes), 2);
  else
    add(time, half_of_all_reduce(CollectiveKind::all_reduce, algorithm, bytes, levels), 2);
  return time;
}

CollectiveSeconds all_to_all(CollectiveAlgorithm algorithm, double bytes, const Crossings& levels) {
  switch (algorithm) {
    case CollectiveAlgorithm::pairwise:
    case CollectiveAlgorithm::direct:
      return to_everybody(levels, bytes / levels.back().ranks(), algorithm == CollectiveAlgorithm::direct);
    case CollectiveAlgorithm::two_level:
      return all_to_all_by_levels(levels, bytes);
    default:
      refuse(CollectiveKind::all_to_all, algorithm);
  }
}

CollectiveSeconds broadcast(CollectiveAlgorithm algorithm, double bytes, const Crossings& levels) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return once_around(levels, bytes);
    case CollectiveAlgorithm::tree:
      return up_a_tree(levels, bytes);
    case CollectiveAlgorithm::two_level:
      return broadcast_by_levels(levels, bytes);
    case CollectiveAlgorithm::direct:
      return to_everybody(levels, bytes, true);
    default:
      refuse(CollectiveKind::broadcast, algorithm);
  }
}

// Two ranks of the group that are as far apart as they can be.
CollectiveSeconds one_message(double bytes, const Crossings& levels) {
  const Crossing& level = levels.back();
  CollectiveSeconds time;
  time.latency = level.latency;
  time.transfer = bytes * level.rank_seconds_per_byte();
  return time;
}

CollectiveSeconds barrier(const Crossings& levels) {
  CollectiveSeconds time;
  for (const Crossing& level : levels) time.latency += depth(level.width) * level.latency;
  return time;
}

CollectiveSeconds of_several_ranks(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                                   const Crossings& levels) {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return half_of_all_reduce(kind, algorithm, bytes, levels);
    case CollectiveKind::all_reduce:
      return all_reduce(algorithm, bytes, levels);
    case CollectiveKind::all_to_all:
      return all_to_all(algorithm, bytes, levels);
    case CollectiveKind::broadcast:
      return broadcast(algorithm, bytes, levels);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return one_message(bytes, levels);
    case CollectiveKind::barrier:
      return barrier(levels);
    case CollectiveKind::wait:
      break;
  }
  throw std::invalid_argument("a wait sends nothing; its time is that of the call that it waits for");
}

// The same for any number of ranks. One rank does not send, but what can't be asked for is refused all the same.
CollectiveSeconds seconds_over(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                               const Crossings& levels) {
  const CollectiveSeconds time = of_several_ranks(kind, algorithm, bytes, levels);
  return levels.back().ranks() > 1 ? time : CollectiveSeconds();
}

void require_sensible(CollectiveAlgorithm algorithm, double bytes, int ranks) {
  if (ranks < 1) throw std::invalid_argument(fmt::format("a collective of {} ranks was asked for", ranks));
  if (!std::isfinite(bytes) || bytes < 0)
    throw std::invalid_argument(fmt::format("a collective of {:g} bytes was asked for", bytes));
  if (algorithm == CollectiveAlgorithm::halving && (ranks & (ranks - 1)) != 0)
    throw std::invalid_argument(
        fmt::format("halving takes a number of ranks that is a power of two, and there are {}", ranks));
}

// The level of a cluster as a group crosses it.
Crossing crossing_of(CollectiveKind kind, const Cluster& cluster, const GroupSpread& spread, std::size_t l) {
  const NetworkLevel& level = cluster.levels[l];
  Crossing crossing;
  crossing.width = spread.widths[l];
  crossing.inside = spread.within(l);
  crossing.latency = level.latency_seconds;
  double bytes_per_second = level.bytes_per_second * cluster.unit_below(l);  // out of a unit of the level below
  const MeasuredCurve* curve = kind == CollectiveKind::all_reduce ? &level.all_reduce
                               : scatters_or_gathers(kind)        ? &level.all_gather
                                                                  : nullptr;
  if (curve != nullptr && curve->measured()) {
    const CurveReading reading = curve->at(crossing.width);
    bytes_per_second = reading.value;
    crossing.measured = true;
    crossing.extrapolated = reading.outside;
    crossing.nearest_at = reading.nearest_at;
  }
  crossing.seconds_per_byte = spread.sharing[l] / bytes_per_second;
  return crossing;
}

// Marks a time into which a figure went that was read outside of its range; that of a measured level has those inside
// of it in it.
void mark_extrapolated(CollectiveAlgorithm algorithm, const Crossings& levels, CollectiveSeconds& time) {
  for (const Crossing& level : levels) {
    const bool alone = algorithm == CollectiveAlgorithm::two_level && level.measured;
    if (level.extrapolated) {
      time.read_at = level.width;
      time.nearest_at = level.nearest_at;
    }
    time.extrapolated = level.extrapolated || (time.extrapolated && !alone);
  }
}

}  // namespace

const char* algorithm_name(CollectiveAlgorithm algorithm) {
  for (const NamedAlgorithm& each : kAlgorithms)
    if (each.algorithm == algorithm) return each.name;
  throw std::logic_error("an algorithm has no name");
}

CollectiveAlgorithm parse_algorithm(const std::string& word) {
  for (const NamedAlgorithm& each : kAlgorithms)
    if (word == each.name) return each.algorithm;
  throw UsageError(fmt::format("no algorithm is called {}; take ring, tree, halving, pairwise, two-level or direct",
                               in_quotes(word)));
}

CollectiveAlgorithm algorithm_of_a_step(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::recv ? CollectiveAlgorithm::pairwise
                                                                            : CollectiveAlgorithm::two_level;
}

CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes, int ranks,
                                     const LinkCost& link) {
  require_sensible(algorithm, bytes, ranks);
  if (algorithm == CollectiveAlgorithm::two_level)
    throw std::invalid_argument("two-level needs a cluster, which has levels");
  Crossing only;
  only.width = ranks;
  only.latency = link.latency_seconds;
  only.seconds_per_byte = link.seconds_per_byte;
  return seconds_over(kind, algorithm, bytes, {only});
}

CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                                     const Cluster& cluster, const GroupSpread& spread) {
  require_sensible(algorithm, bytes, spread.ranks);
  Crossings levels;
  for (std::size_t l = 0; l < spread.widths.size(); ++l)
    if (spread.widths[l] > 1) levels.push_back(crossing_of(kind, cluster, spread, l));
  if (levels.empty()) levels.emplace_back();  // one rank
  CollectiveSeconds time = seconds_over(kind, algorithm, bytes, levels);
  mark_extrapolated(algorithm, levels, time);
  return time;
}

}  // namespace muonwalk::sim
