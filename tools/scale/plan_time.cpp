#include "tools/scale/plan_time.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kElementwiseBytes = 16, kSummedBytes = 8;

// What is summed up locally when a call's messages have arrived.
bool sums(CollectiveKind kind) { return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce; }

struct Part {
  TermId id;
  Spent PlanSeconds::*spent;
  const char *amount, *unit, *cost, *cost_unit;
};

constexpr Part kParts[] = {
    {TermId::machine_products, &PlanSeconds::products, "FLOPs", "FLOP", "mean seconds of one", "s/FLOP"},
    {TermId::machine_messages, &PlanSeconds::messages, "messages", "", "α", "s"},
    {TermId::machine_bytes, &PlanSeconds::bytes, "bytes", "B", "mean β", "s/B"},
    {TermId::machine_elementwise, &PlanSeconds::elementwise, "bytes", "B", "seconds of one", "s/B"},
    {TermId::machine_buffers, &PlanSeconds::buffers, "bytes", "B", "seconds of one", "s/B"}};

void add(Spent& sum, double times, const Spent& more) {
  sum.amount += times * more.amount;
  sum.seconds += times * more.seconds;
  if (more.reading.outside || sum.reading.value == 0) sum.reading = more.reading;
}

// The messages of a call are equally large, or nearly so.
void count_messages(const Traffic& traffic, const TransportCosts& transport, double ranks, PlanSeconds& sum) {
  if (traffic.messages_sent == 0) return;
  const double messages = static_cast<double>(traffic.messages_sent), bytes = static_cast<double>(traffic.bytes_sent);
  const CurveReading alpha = transport.message_seconds(ranks, 0);
  const CurveReading message = transport.message_seconds(ranks, bytes / messages);
  add(sum.messages, 1, {messages, messages * alpha.value, alpha});
  add(sum.bytes, 1, {bytes, messages * std::max(0.0, message.value - alpha.value), message});
}

}  // namespace

double touched_bytes(const Plan& plan) {
  double bytes = 0;
  Phase phase;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation)) {
      phase = work->phase;
      if (phase != phases::orthogonalize && work->flops > 0)
        bytes += kElementwiseBytes * static_cast<double>(work->shape.size());
    }
    if (const Call* call = std::get_if<Call>(&operation); call != nullptr && sums(call->kind))
      bytes += kSummedBytes * static_cast<double>(traffic_of(*call, plan).bytes_received) /
               static_cast<double>(element_size(call->type));
  }
  return bytes;
}

double taken_bytes(const Plan& plan) {
  double bytes = 0;
  bool begun = false;
  for (const Operation& operation : plan.operations) {
    begun = begun || !std::holds_alternative<Memory>(operation);
    const Memory* memory = std::get_if<Memory>(&operation);
    if (begun && memory != nullptr && memory->elements > 0) bytes += static_cast<double>(memory->bytes());
  }
  return bytes;
}

double PlanSeconds::seconds() const {
  double sum = 0;
  for (const Part& part : kParts) sum += (this->*part.spent).seconds;
  return sum;
}

PlanSeconds plan_seconds(const Plan& plan, const MachineCosts& machine, const StepConditions& conditions) {
  const TransportCosts& transport = machine.transport(conditions.transport);
  const MeasuredCurve& rates = machine.rate(conditions.products, conditions.precision);
  PlanSeconds sum;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase == phases::orthogonalize) {
      const CurveReading rate = rates.at(newton_schulz_flops(work->shape.rows, work->shape.cols, 1));
      add(sum.products, 1, {work->flops, work->flops / rate.value, rate});
    }
  for (const PlannedCall& each : calls_of(plan)) count_messages(each.traffic, transport, plan.grid.size(), sum);
  const double touched = touched_bytes(plan), taken = taken_bytes(plan);
  sum.elementwise = {touched, touched / machine.memory_bytes_per_second, {}};
  sum.buffers = {taken, taken / machine.new_memory_bytes_per_second, {}};
  return sum;
}

std::vector<Term> plan_time(const std::vector<PlanKind>& kinds, const MachineCosts& machine,
                            const StepConditions& conditions) {
  if (kinds.empty()) throw std::invalid_argument("the time of a step was asked for, and there is no plan of it");
  PlanSeconds all;
  double slowest = 0, ranks = 0;
  for (const PlanKind& kind : kinds) {
    const PlanSeconds one = plan_seconds(kind.plan, machine, conditions);
    const double alike = static_cast<double>(kind.ranks.size());
    for (const Part& part : kParts) add(all.*part.spent, alike, one.*part.spent);
    slowest = std::max(slowest, one.seconds());
    ranks += alike;
  }
  const char* plans = "the plans of all ranks";
  const auto cores =
      input<Formula>({"min(cores, ranks)", std::min<double>(machine.cores, ranks), "", "the machine and the grid"});
  std::vector<Term> terms;
  for (const Part& part : kParts) {
    const Spent& spent = all.*part.spent;
    const TermInput cost{part.cost,
                         spent.amount > 0 ? spent.seconds / spent.amount : 0,
                         part.cost_unit,
                         "measured on this machine",
                         spent.reading.outside,
                         spent.reading.nearest_at};
    terms.push_back(
        term_of(part.id, input<Formula>({part.amount, spent.amount, part.unit, plans}) * input<Formula>(cost) / cores));
  }
  terms.push_back(
      term_of(TermId::slowest_rank,
              at_least_0(input<Formula>({"slowest", slowest, "s", plans}) -
                         input<Formula>({"mean of all cores", all.seconds() / cores.value, "s", "the terms above"}))));
  return terms;
}

}  // namespace muonwalk::sim
