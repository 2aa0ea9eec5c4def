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

// The one that is outside of what was measured, or else the first one that was read.
CurveReading more_outside(const CurveReading& a, const CurveReading& b) { return b.outside || a.value == 0 ? b : a; }

void count_product(const Work& work, const MeasuredCurve& rates, PlanSeconds& sum) {
  const CurveReading rate = rates.at(newton_schulz_flops(work.shape.rows, work.shape.cols, 1));
  sum.flops += work.flops;
  sum.in_products += work.flops / rate.value;
  sum.rate = more_outside(sum.rate, rate);
}

// The messages of a call are equally large, or nearly so.
void count_messages(const Traffic& traffic, const TransportCosts& transport, double ranks, PlanSeconds& sum) {
  if (traffic.messages_sent == 0) return;
  const double messages = static_cast<double>(traffic.messages_sent), bytes = static_cast<double>(traffic.bytes_sent);
  const CurveReading alpha = transport.message_seconds(ranks, 0);
  const CurveReading message = transport.message_seconds(ranks, bytes / messages);
  sum.messages += messages;
  sum.bytes += bytes;
  sum.in_messages += messages * alpha.value;
  sum.in_bytes += messages * std::max(0.0, message.value - alpha.value);
  sum.alpha = more_outside(sum.alpha, alpha);
  sum.message = more_outside(sum.message, message);
}

TermInput read_from(const char* name, double value, const char* unit, const CurveReading& reading) {
  return {name, value, unit, "measured on this machine", reading.outside, reading.nearest_at};
}

double mean(double all, double count) { return count > 0 ? all / count : 0; }

// Of all ranks.
struct Sum {
  PlanSeconds all;
  double slowest = 0;
  double ranks = 0;
};

Sum sum_of(const std::vector<PlanKind>& kinds, const MachineCosts& machine, const StepConditions& conditions) {
  Sum sum;
  for (const PlanKind& kind : kinds) {
    const PlanSeconds one = plan_seconds(kind.plan, machine, conditions);
    const double ranks = static_cast<double>(kind.ranks.size());
    for (double PlanSeconds::*member :
         {&PlanSeconds::flops, &PlanSeconds::messages, &PlanSeconds::bytes, &PlanSeconds::touched, &PlanSeconds::taken,
          &PlanSeconds::in_products, &PlanSeconds::in_messages, &PlanSeconds::in_bytes, &PlanSeconds::in_memory,
          &PlanSeconds::in_buffers})
      sum.all.*member += ranks * one.*member;
    sum.all.alpha = more_outside(sum.all.alpha, one.alpha);
    sum.all.message = more_outside(sum.all.message, one.message);
    sum.all.rate = more_outside(sum.all.rate, one.rate);
    sum.slowest = std::max(sum.slowest, one.seconds());
    sum.ranks += ranks;
  }
  return sum;
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

PlanSeconds plan_seconds(const Plan& plan, const MachineCosts& machine, const StepConditions& conditions) {
  const TransportCosts& transport = machine.transport(conditions.transport);
  const double ranks = plan.grid.size();
  PlanSeconds sum;
  for (const Operation& operation : plan.operations)
    if (const Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase == phases::orthogonalize)
      count_product(*work, machine.rate(conditions.products, conditions.precision), sum);
  for (const PlannedCall& each : calls_of(plan)) count_messages(each.traffic, transport, ranks, sum);
  sum.touched = touched_bytes(plan);
  sum.taken = taken_bytes(plan);
  sum.in_memory = sum.touched / machine.memory_bytes_per_second;
  sum.in_buffers = sum.taken / machine.new_memory_bytes_per_second;
  return sum;
}

std::vector<Term> plan_time(const std::vector<PlanKind>& kinds, const MachineCosts& machine,
                            const StepConditions& conditions) {
  if (kinds.empty()) throw std::invalid_argument("the time of a step was asked for, and there is no plan of it");
  const Sum sum = sum_of(kinds, machine, conditions);
  const double cores = std::min<double>(machine.cores, sum.ranks);
  const TermInput shared = {"min(cores, ranks)", cores, "", "the machine and the grid"};
  const char* plan = "the plans of all ranks";

  const char* machine_source = "measured on this machine";
  const PlanSeconds& all = sum.all;
  std::vector<Term> terms = {
      {TermId::machine_products,
       all.in_products / cores,
       "FLOPs / (mean rate · min(cores, ranks))",
       {{"FLOPs", all.flops, "FLOP", plan},
        read_from("mean rate", mean(all.flops, all.in_products), "FLOP/s", all.rate),
        shared}},
      {TermId::machine_messages,
       all.in_messages / cores,
       "messages · α / min(cores, ranks)",
       {{"messages", all.messages, "", plan},
        read_from("α", mean(all.in_messages, all.messages), "s", all.alpha),
        shared}},
      {TermId::machine_bytes,
       all.in_bytes / cores,
       "bytes · mean β / min(cores, ranks)",
       {{"bytes", all.bytes, "B", plan},
        read_from("mean β", mean(all.in_bytes, all.bytes), "s/B", all.message),
        shared}},
      {TermId::machine_elementwise,
       all.in_memory / cores,
       "bytes / (rate · min(cores, ranks))",
       {{"bytes", all.touched, "B", plan}, {"rate", machine.memory_bytes_per_second, "B/s", machine_source}, shared}},
      {TermId::machine_buffers,
       all.in_buffers / cores,
       "bytes / (rate · min(cores, ranks))",
       {{"bytes", all.taken, "B", plan},
        {"rate", machine.new_memory_bytes_per_second, "B/s", machine_source},
        shared}}};
  const double even = sum.all.seconds() / cores;
  terms.push_back({TermId::slowest_rank,
                   std::max(0.0, sum.slowest - even),
                   "max(0, slowest − mean of all cores)",
                   {{"slowest", sum.slowest, "s", plan}, {"mean of all cores", even, "s", "the terms above"}}});
  return terms;
}

}  // namespace muonwalk::sim
