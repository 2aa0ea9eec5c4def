#include "tests/optim/recorded_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/optim/steps.hpp"
#include "tests/optim/rank_fibers.hpp"

namespace muonwalk::test {
namespace {

class CallRecorder : public CallObserver {
 public:
  explicit CallRecorder(std::vector<Seen>& seen) : seen_(seen) {}
  void begins(const Call& call) override { seen_.push_back({"", -1, call, 0, 0}); }

 private:
  std::vector<Seen>& seen_;
};

std::string text_of(const Seen& seen) {
  return seen.phase.empty() ? text(seen.call) : fmt::format("\"{}\" of parameter {}", seen.phase, seen.parameter);
}

// Steps `first` to `end` − 1 of the case: from the beginning, or from what each rank has saved.
std::vector<SavedState> states_after(const Case& c, const MakeOptimizer& make, const std::vector<SavedState>& saved,
                                     int first, int end) {
  const Layout layout = c.layout();
  std::vector<SavedState> states(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    const std::size_t number = static_cast<std::size_t>(rank.place.rank);
    const auto optimizer = make();
    if (saved.empty())
      optimizer->start(layout, rank.place, pack_buckets(layout, pointers(c.weights()), rank.place.tp));
    else
      optimizer->resume(layout, rank.place, saved[number]);
    for (int step = first; step < end; ++step) {
      if (!c.rates.empty()) optimizer->scale_learning_rates(c.rates[static_cast<std::size_t>(step)]);
      optimizer->step({layout, rank.place, rank.dp, rank.tp}, handed_gradients(c, layout, rank, step, *optimizer));
    }
    states[number] = optimizer->save();
  });
  return states;
}

bool same_buckets(const Buckets& a, const Buckets& b) {
  const auto same = [](const Flat& left, const Flat& right) {
    return left.size() == right.size() &&
           (left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& left, const auto& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
  });
}

}  // namespace

Buckets handed_gradients(const Case& c, const Layout& layout, TestRank& rank, int step, const Optimizer& optimizer) {
  Buckets own = pack_buckets(layout, pointers(c.gradients(step, rank.place.dp)), rank.place.tp);
  if (!optimizer.takes_summed_gradients()) return own;
  for (std::size_t b = 0; b < own.size(); ++b)
    for (std::size_t k = 0; k < own[b].size(); ++k)
      own[b][k] = reduce_gradients(rank.dp, own[b][k], layout.dp_counts(static_cast<int>(b), static_cast<int>(k)));
  return own;
}

std::vector<SavedState> final_states(const Case& c, const MakeOptimizer& make, int pause) {
  const std::vector<SavedState> paused = pause == 0 ? std::vector<SavedState>() : states_after(c, make, {}, 0, pause);
  return states_after(c, make, paused, pause, c.steps);
}

std::string first_difference(const SavedState& a, const SavedState& b) {
  if (a.optimizer != b.optimizer) return "optimizer";
  if (a.steps != b.steps) return "steps";
  if (!same_buckets(a.weights, b.weights)) return "weights";
  if (a.kept.size() != b.kept.size()) return "not as many things kept";
  for (std::size_t i = 0; i < a.kept.size(); ++i)
    if (a.kept[i].name != b.kept[i].name || !same_buckets(a.kept[i].buckets, b.kept[i].buckets)) return a.kept[i].name;
  return "";
}

std::vector<std::vector<RecordedStep>> record_steps(const Case& c, const MakeOptimizer& make) {
  const Layout layout = c.layout();
  const std::vector<NamedMatrix> weights = c.weights();
  std::vector<std::vector<RecordedStep>> ranks(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    std::vector<Seen> seen;
    CallRecorder recorder(seen);
    rank.dp.observe(recorder);
    rank.tp.observe(recorder);
    const auto optimizer = make();
    optimizer->start(layout, rank.place, pack_buckets(layout, pointers(weights), rank.place.tp));
    const auto observer = [&](Phase phase, const DistMeta* meta) {
      seen.push_back(
          {std::string(phase), meta == nullptr ? -1 : meta->parameter, {}, rank.meter.live(), rank.meter.live_bytes()});
    };
    for (int step = 0; step < c.steps; ++step) {
      const Buckets gradients = handed_gradients(c, layout, rank, step, *optimizer);
      if (!c.rates.empty()) optimizer->scale_learning_rates(c.rates[static_cast<std::size_t>(step)]);
      RecordedStep recorded;
      rank.ledger = Ledger();
      seen.clear();
      recorded.held_before = rank.meter.live();
      recorded.bytes_before = rank.meter.live_bytes();
      rank.meter.restart_peak();
      rank.meter.restart_peak_bytes();
      optimizer->step({layout, rank.place, rank.dp, rank.tp, observer}, gradients);
      recorded.peak = rank.meter.peak();
      recorded.peak_bytes = rank.meter.peak_bytes();
      recorded.held_after = rank.meter.live();
      recorded.seen = seen;
      recorded.counted = rank.ledger;
      recorded.kept = optimizer->kept_elements();
      MemoryMeter uncounted;
      const MeterScope scope(uncounted);
      recorded.slices = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
      ranks[static_cast<std::size_t>(rank.place.rank)].push_back(std::move(recorded));
    }
  });
  return ranks;
}

std::string first_difference(const Plan& plan, const RecordedStep& recorded) {
  std::int64_t held = 0, held_bytes = 0;
  std::size_t next = 0;
  bool begun = false;  // the memory before the first phase is what the step is handed
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (const Memory* memory = std::get_if<Memory>(&plan.operations[i])) {
      held += memory->elements;
      held_bytes += memory->bytes();
      continue;
    }
    if (!begun && held != recorded.held_before)
      return fmt::format("the plan begins with {} elements, the rank with {}", held, recorded.held_before);
    if (!begun && held_bytes != recorded.bytes_before)
      return fmt::format("the plan begins with {} bytes, the rank with {}", held_bytes, recorded.bytes_before);
    begun = true;
    if (next == recorded.seen.size()) return fmt::format("operation {} was planned, but the step had ended", i);
    const Seen& seen = recorded.seen[next++];
    if (const Call* call = std::get_if<Call>(&plan.operations[i])) {
      if (!seen.phase.empty() || seen.call != *call)
        return fmt::format("operation {} was planned as {}, but was {}", i, text(*call), text_of(seen));
      continue;
    }
    const Work& work = std::get<Work>(plan.operations[i]);
    if (seen.phase != work.phase || seen.parameter != work.parameter)
      return fmt::format("operation {} was planned as \"{}\" of parameter {}, but was {}", i, std::string(work.phase),
                         work.parameter, text_of(seen));
    if (seen.held != held)
      return fmt::format("as operation {} begins, {} elements are held by the plan and {} by the rank", i, held,
                         seen.held);
    if (seen.held_bytes != held_bytes)
      return fmt::format("as operation {} begins, {} bytes are held by the plan and {} by the rank", i, held_bytes,
                         seen.held_bytes);
  }
  if (next < recorded.seen.size()) return "was not planned: " + text_of(recorded.seen[next]);
  if (held != recorded.held_after)
    return fmt::format("the plan ends with {} elements, the rank with {}", held, recorded.held_after);
  if (held != recorded.held_before) return "the step left something over";
  if (peak_elements(plan) != recorded.peak)
    return fmt::format("a peak of {} elements was planned, {} were held", peak_elements(plan), recorded.peak);
  if (peak_bytes(plan) != recorded.peak_bytes)
    return fmt::format("a peak of {} bytes was planned, {} were held", peak_bytes(plan), recorded.peak_bytes);
  return muonwalk::first_difference(ledger_of(plan), recorded.counted);
}

std::vector<std::vector<NamedMatrix>> reference_steps(const Case& c, const Optimizer& optimizer) {
  const auto serial = optimizer.reference(c.weights());
  std::vector<std::vector<NamedMatrix>> steps;
  for (int step = 0; step < c.steps; ++step) {
    std::vector<std::vector<Matrix>> leaves;
    for (int leaf = 0; leaf < c.grid.dp(); ++leaf) leaves.push_back(c.gradients(step, leaf));
    if (!c.rates.empty()) serial->scale_learning_rates(c.rates[static_cast<std::size_t>(step)]);
    serial->step(leaves);
    steps.push_back(serial->parameters());
  }
  return steps;
}

std::string first_difference(const Case& c, const Place& place, const std::vector<NamedMatrix>& slices,
                             const std::vector<NamedMatrix>& whole) {
  if (slices.size() != whole.size()) return "not as many parameters";
  for (std::size_t p = 0; p < whole.size(); ++p)
    if (!same_bits(slices[p].matrix, named_slice(c.parameters[p], whole[p].matrix, c.grid.tp(), place.tp).matrix))
      return whole[p].name;
  return "";
}

}  // namespace muonwalk::test
