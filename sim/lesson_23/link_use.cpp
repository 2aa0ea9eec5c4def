#include "sim/lesson_23/link_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {

namespace {

// The calls of a plan, by group and in order: the n-th of a group is the same call on all of its ranks.
std::map<std::string, std::vector<PlannedCall>> calls_by_group(const Plan& plan) {
  std::map<std::string, std::vector<PlannedCall>> calls;
  for (const PlannedCall& each : calls_of(plan)) calls[each.call.group].push_back(each);
  return calls;
}

std::int64_t bytes_to(const Call& own, const Call& of_peer) {
  const std::int64_t size = static_cast<std::int64_t>(element_size(own.type));
  if (own.kind == CollectiveKind::all_gather) return own.elements_in * size;
  if (own.kind == CollectiveKind::reduce_scatter) return of_peer.elements_out * size;
  throw std::logic_error(fmt::format("link_use does not know what a {} sends to whom", collective_name(own.kind)));
}

PhaseOnLink& entry(std::vector<PhaseOnLink>& phases, Phase phase) {
  const auto known = std::find_if(phases.begin(), phases.end(), [&](auto& each) { return each.phase == phase; });
  if (known != phases.end()) return *known;
  phases.push_back({phase});
  return phases.back();
}

}  // namespace

HostOfRank place_on_hosts(const Grid& grid, const std::string& placement) {
  const bool across = placement == "tp-across";
  if (!across && placement != "tp-inside")
    throw UsageError(fmt::format("--placement {} is not known; it takes tp-inside or tp-across", as_typed(placement)));
  if (grid.pp() > 1)
    throw UsageError(fmt::format("--pp {} has no place on two hosts, which share dp and tp; try lesson 09", grid.pp()));
  const int shared = across ? grid.tp() : grid.size();
  if (shared % 2 != 0)
    throw UsageError(
        fmt::format("{} has {} {} with --placement {}, and two hosts can't have one half each; try --dp 2 "
                    "--tp 2",
                    grid.text(), shared, across ? "in each TP group" : "ranks", placement));
  HostOfRank host_of;
  for (int rank = 0; rank < grid.size(); ++rank) host_of.push_back(2 * (across ? grid.place(rank).tp : rank) / shared);
  return host_of;
}

PhaseOnLink LinkUse::total() const {
  PhaseOnLink sum{"all"};
  for (const PhaseOnLink& phase : phases) {
    for (const int host : {0, 1}) sum.bytes_out[host] += phase.bytes_out[host];
    sum.messages += phase.messages;
    sum.waits += phase.waits;
  }
  return sum;
}

LinkUse link_use(const std::vector<Plan>& plans, const HostOfRank& host_of) {
  std::vector<std::map<std::string, std::vector<PlannedCall>>> calls;
  for (const Plan& plan : plans) calls.push_back(calls_by_group(plan));
  LinkUse use;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    std::map<Phase, int> waits;
    for (const auto& [name, own] : calls[rank]) {
      const Group group = plans[rank].grid.group(name, static_cast<int>(rank));
      for (std::size_t n = 0; n < own.size(); ++n) {
        bool crosses = false;
        for (const int peer : group.ranks) {
          const auto other = static_cast<std::size_t>(peer);
          if (host_of[other] == host_of[rank]) continue;
          crosses = true;
          PhaseOnLink& phase = entry(use.phases, own[n].phase);
          phase.bytes_out[host_of[rank]] += bytes_to(own[n].call, calls[other].at(name).at(n).call);
          ++phase.messages;
        }
        if (crosses) ++waits[own[n].phase];
      }
    }
    for (const auto& [phase, count] : waits) {
      int& most = entry(use.phases, phase).waits;
      most = std::max(most, count);
    }
  }
  // In the order of a step, and not in that of the groups' names.
  std::vector<PhaseOnLink> ordered;
  for (const Plan& plan : plans)
    for (const Operation& operation : plan.operations)
      if (const Work* work = std::get_if<Work>(&operation))
        for (const PhaseOnLink& phase : use.phases)
          if (phase.phase == work->phase) entry(ordered, phase.phase) = phase;
  use.phases = ordered;
  return use;
}

double least_ms(const PhaseOnLink& phase, const Link& link) {
  const std::int64_t bytes = std::max(phase.bytes_out[0], phase.bytes_out[1]);
  const double sending = link.bits_per_second > 0 ? 8e3 * static_cast<double>(bytes) / link.bits_per_second : 0;
  return phase.waits * link.delay_ms + sending;
}

Link parse_link(const std::string& text) {
  const std::vector<std::pair<std::string, double>> units = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"ms", 0}};
  Link link;
  bool known = !text.empty();
  for (std::size_t at = 0; at <= text.size() && known;) {
    const std::string word = text.substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    char* end = nullptr;
    const double number = std::strtod(word.c_str(), &end);
    const auto unit = std::find_if(units.begin(), units.end(), [&](auto& each) { return each.first == end; });
    known = unit != units.end() && end != word.c_str() && std::isfinite(number) && number > 0 && number < 1e9;
    if (known) (unit->second > 0 ? link.bits_per_second : link.delay_ms) = number * std::max(unit->second, 1.0);
  }
  if (!known)
    throw UsageError(
        fmt::format("--link {} is not a link; it takes a rate, a delay, or both, for example 1gbit, 10ms "
                    "or 100mbit,2ms",
                    as_typed(text)));
  return link;
}

}  // namespace muonwalk::sim
