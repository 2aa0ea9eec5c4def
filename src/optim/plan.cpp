#include "src/optim/plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"

namespace muonwalk {
namespace {

// A group of the plan's rank; one without ranks where the grid has none of this name.
Group rare_group(const std::string& name, const Plan& plan) {
  try {
    return plan.grid.group(name, plan.place.rank);
  } catch (const UsageError&) {
    return {};
  }
}

// The plan's rank in a group, and the group's size.
std::pair<int, int> seat_in(const std::string& group, const Plan& plan) {
  if (group == "dp") return {plan.place.dp, plan.grid.dp()};
  if (group == "tp") return {plan.place.tp, plan.grid.tp()};
  if (group == "pp") return {plan.place.pp, plan.grid.pp()};
  if (group == "world") return {plan.place.rank, plan.grid.size()};
  // Those that are asked for seldom, and made anew each time.
  if (const Group other = rare_group(group, plan); !other.ranks.empty())
    return {other.number_of(plan.place.rank), other.size()};
  throw std::invalid_argument("a plan calls the group \"" + group + "\", which no grid has");
}

// The same operation, whichever matrix it is about.
bool same_but_for_the_matrix(const Operation& a, const Operation& b) {
  if (a.index() != b.index()) return false;
  if (!std::holds_alternative<Work>(a)) return a == b;
  Work left = std::get<Work>(a);
  left.parameter = std::get<Work>(b).parameter;
  return left == std::get<Work>(b);
}

}  // namespace

// In a gather the others' elements come in and its own go to each of them; in a reduce-scatter, the other way round.
Traffic traffic_of(const Call& call, const Plan& plan) {
  const auto [rank, size] = seat_in(call.group, plan);
  const Index in = call.elements_in, out = call.elements_out;
  Traffic traffic;
  switch (call.kind) {
    case CollectiveKind::barrier:
      return barrier_traffic(size);
    case CollectiveKind::wait:
      return traffic;  // what it waits for is counted in the call that posted it
    case CollectiveKind::send:
      return send_traffic(in, call.type);
    case CollectiveKind::recv:
      return recv_traffic(out, call.type);
    case CollectiveKind::all_reduce:
      return all_reduce_traffic(rank, size, in, call.type);
    case CollectiveKind::broadcast:
      return broadcast_traffic(rank, call.peer, size, in, call.type);
    case CollectiveKind::all_gather:
      traffic.bytes_sent = (size - 1) * in * element_size(call.type);
      traffic.bytes_received = (out - in) * element_size(call.type);
      break;
    case CollectiveKind::reduce_scatter:
      traffic.bytes_sent = (in - out) * element_size(call.type);
      traffic.bytes_received = (size - 1) * out * element_size(call.type);
      break;
    case CollectiveKind::all_to_all:
      traffic.bytes_sent = in * element_size(call.type);
      traffic.bytes_received = out * element_size(call.type);
      break;
  }
  traffic.messages_sent = traffic.messages_received = size - 1;
  return traffic;
}

void Plan::work(Phase phase, Shape shape, double flops, const DistMeta* parameter) {
  operations.push_back(Work{phase, parameter == nullptr ? -1 : parameter->parameter, shape, flops});
}

void Plan::call(const std::string& group, CollectiveKind kind, ElementType type, Index in, Index out) {
  operations.push_back(Call{group, kind, type, in, out});
}

std::vector<PlannedCall> calls_of(const Plan& plan) {
  std::vector<PlannedCall> calls;
  Phase phase;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation)) phase = work->phase;
    if (const Call* call = std::get_if<Call>(&operation)) calls.push_back({phase, *call, traffic_of(*call, plan)});
  }
  return calls;
}

Ledger ledger_of(const Plan& plan) {
  Ledger ledger;
  for (const Operation& operation : plan.operations)
    if (const Call* call = std::get_if<Call>(&operation))
      ledger.add(call->group, call->kind, call->type, 1, traffic_of(*call, plan));
  return ledger;
}

Index peak_elements(const Plan& plan) {
  Index held = 0, peak = 0;
  for (const Operation& operation : plan.operations)
    if (const Memory* memory = std::get_if<Memory>(&operation)) peak = std::max(peak, held += memory->elements);
  return peak;
}

Index peak_bytes(const Plan& plan) {
  Index held = 0, peak = 0;
  for (const Operation& operation : plan.operations)
    if (const Memory* memory = std::get_if<Memory>(&operation)) peak = std::max(peak, held += memory->bytes());
  return peak;
}

double flops(const Plan& plan) {
  double sum = 0;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation)) sum += work->flops;
  return sum;
}

double flops(const Plan& plan, Phase phase) {
  double sum = 0;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase == phase) sum += work->flops;
  return sum;
}

Index count(const Plan& plan, Phase phase) {
  Index times = 0;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase == phase) ++times;
  return times;
}

std::vector<PlanKind> plan_kinds(const std::vector<Layout>& stages,
                                 const std::function<Plan(const Layout&, const Place&)>& plan) {
  std::vector<PlanKind> kinds;
  const Grid grid = stages.at(0).grid;
  for (int rank = 0; rank < grid.size(); ++rank) {
    const Place place = grid.place(rank);
    Plan mine = plan(stages.at(static_cast<std::size_t>(place.pp)), place);
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&mine](const PlanKind& other) {
      const auto &a = other.plan.operations, &b = mine.operations;
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_but_for_the_matrix);
    });
    if (kind != kinds.end())
      kind->ranks.push_back(rank);
    else
      kinds.push_back({std::move(mine), {rank}});
  }
  return kinds;
}

double flops(const std::vector<PlanKind>& kinds, Phase phase) {
  double sum = 0;
  for (const PlanKind& kind : kinds) sum += static_cast<double>(kind.ranks.size()) * flops(kind.plan, phase);
  return sum;
}

std::vector<PhaseMemory> phase_memory(const Plan& plan) {
  std::vector<PhaseMemory> phases;
  Index held = 0;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation))
      phases.push_back({std::string(work->phase), work->parameter, held, held});
    const Memory* memory = std::get_if<Memory>(&operation);
    if (memory == nullptr) continue;
    held += memory->bytes();
    if (!phases.empty()) phases.back().most = std::max(phases.back().most, held);
  }
  return phases;
}

std::vector<Memory> held_between_steps(const Plan& plan) {
  std::vector<Memory> held;
  for (const Operation& operation : plan.operations) {
    const Memory* memory = std::get_if<Memory>(&operation);
    if (memory == nullptr) break;
    const auto same = std::find_if(held.begin(), held.end(), [memory](const Memory& each) {
      return each.what == memory->what && each.type == memory->type;
    });
    if (same == held.end())
      held.push_back(*memory);
    else
      same->elements += memory->elements;
  }
  return held;
}

Index transient_bytes(const Plan& plan) {
  Index between_steps = 0;
  for (const Memory& each : held_between_steps(plan)) between_steps += each.bytes();
  return peak_bytes(plan) - between_steps;
}

void PhaseMeter::begin(Phase phase, const DistMeta* parameter) {
  end_phase();
  phases_.push_back({std::string(phase), parameter == nullptr ? -1 : parameter->parameter, meter_->live_bytes(),
                     meter_->live_bytes()});
}

std::vector<PhaseMemory> PhaseMeter::finish() {
  end_phase();
  return std::exchange(phases_, {});
}

void PhaseMeter::end_phase() {
  if (!phases_.empty()) phases_.back().most = meter_->peak_bytes();
  meter_->restart_peak_bytes();
}

}  // namespace muonwalk
