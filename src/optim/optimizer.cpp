#include "src/optim/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/text/names.hpp"

namespace muonwalk {
namespace {

void check_group(const char* step, const char* name, const Communicator& group, int grid_size, int coordinate) {
  if (group.size() == grid_size && group.rank() == coordinate) return;
  throw std::invalid_argument(
      fmt::format("{} was given rank {} of a {} group of {}, but in the layout's grid it is {} {} of {}; hand it "
                  "the rank's own {} group.",
                  step, group.rank(), name, group.size(), name, coordinate, grid_size, name));
}

void check_buckets(const char* step, const Layout& layout, const Place& place, const StepInput& handed,
                   const char* remedy) {
  const std::vector<Buffer>& buffers = layout.buffers;
  if (handed.buckets.size() != buffers.size())
    throw std::invalid_argument(fmt::format("{} was given {} for {} buffers, but the layout has {}; {}", step,
                                            handed.what, handed.buckets.size(), buffers.size(), remedy));
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const std::vector<Flat>& given = handed.buckets[b];
    if (given.size() != buffers[b].buckets.size())
      throw std::invalid_argument(fmt::format("{} was given {} for {} buckets of buffer {}, but the layout has {}; {}",
                                              step, handed.what, given.size(), b, buffers[b].buckets.size(), remedy));
    for (std::size_t k = 0; k < given.size(); ++k) {
      const Range expected = handed.whole ? buffers[b].buckets[k].range
                                          : layout.dp_slice(static_cast<int>(b), static_cast<int>(k), place.dp);
      if (static_cast<Index>(given[k].size()) != expected.size())
        throw std::invalid_argument(
            fmt::format("{} was given {} of {} elements for bucket {} of buffer {}, but the layout says {}; {}", step,
                        handed.what, given[k].size(), k, b, expected.size(), remedy));
    }
  }
}

constexpr const char* kResumeWith = "resume with the layout, and on the rank, that it was saved with.";

// Refuses saved buckets that are not as many and as large as those in whose place they are to be.
void check_saved(const SavedBuckets& saved, const std::string& name, const Buckets& own) {
  if (saved.name != name)
    throw std::invalid_argument(
        fmt::format("resume was given {} where {} are kept; {}", in_quotes(saved.name), in_quotes(name), kResumeWith));
  if (saved.buckets.size() != own.size())
    throw std::invalid_argument(fmt::format("resume was given {} for {} buffers, but the rank keeps them for {}; {}",
                                            name, saved.buckets.size(), own.size(), kResumeWith));
  for (std::size_t b = 0; b < own.size(); ++b) {
    if (saved.buckets[b].size() != own[b].size())
      throw std::invalid_argument(fmt::format("resume was given {} for {} buckets, but the rank keeps them for {}; {}",
                                              name, saved.buckets[b].size(), own[b].size(), kResumeWith));
    for (std::size_t k = 0; k < own[b].size(); ++k)
      if (saved.buckets[b][k].size() != own[b][k].size())
        throw std::invalid_argument(
            fmt::format("resume was given {} of {} elements for bucket {}, but the rank keeps {}; {}", name,
                        saved.buckets[b][k].size(), k, own[b][k].size(), kResumeWith));
  }
}

}  // namespace

SavedState Optimizer::save() const {
  SavedState saved;
  saved.optimizer = name();
  const BucketsView whole = weights();
  for (std::size_t b = 0; b < whole.size(); ++b) saved.weights.push_back(whole[b]);
  const StateTensors own = const_cast<Optimizer*>(this)->state_tensors();  // as above
  for (const StateTensors::Item& item : own.items) saved.kept.push_back({item, *item.buckets});
  if (!own.steps.empty()) saved.steps = *own.steps.front();
  return saved;
}

void Optimizer::resume(const Layout& layout, const Place& place, SavedState saved) {
  if (saved.optimizer != name())
    throw std::invalid_argument(
        fmt::format("a state that {} has saved was given to {}; resume with an optimizer of the same kind.",
                    in_quotes(saved.optimizer), in_quotes(name())));
  if (saved.steps < 0)
    throw std::invalid_argument(
        fmt::format("resume was given a state after {} steps; there are at least 0.", saved.steps));
  check_buckets("resume", layout, place, {"weights", saved.weights}, kResumeWith);
  start(layout, place, std::move(saved.weights));
  const StateTensors own = state_tensors();
  if (saved.kept.size() != own.items.size())
    throw std::invalid_argument(fmt::format("resume was given {} things that are kept, but {} keeps {}; {}",
                                            saved.kept.size(), in_quotes(name()), own.items.size(), kResumeWith));
  for (std::size_t i = 0; i < own.items.size(); ++i)
    check_saved(saved.kept[i], own.items[i].name, *own.items[i].buckets);
  for (std::size_t i = 0; i < own.items.size(); ++i) *own.items[i].buckets = std::move(saved.kept[i].buckets);
  for (int* steps : own.steps) *steps = saved.steps;
}

void Optimizer::scale_learning_rates(float) {
  throw std::logic_error(
      fmt::format("{} was asked to scale its learning rate, but it has none that changes; take an optimizer that "
                  "implements scale_learning_rates.",
                  name()));
}

Index Optimizer::kept_elements() const {
  Index elements = 0;
  // It only says where things lie, so that asking for it changes nothing.
  for (const StateTensors::Item& item : const_cast<Optimizer*>(this)->state_tensors().items)
    elements += element_count(*item.buckets);
  return elements;
}

Plan plan_of_held(const Layout& layout, const Place& place, std::initializer_list<const char*> whole,
                  std::initializer_list<const char*> shards) {
  Plan plan{layout.grid, place, {}};
  Index all = 0;
  for (const Buffer& buffer : layout.buffers) all += buffer.size;
  for (const char* what : whole) plan.take(all, what);
  for (const char* what : shards) plan.take(layout.shard_elements(place.dp), what);
  return plan;
}

void require_own_gradients(const char* step, bool summed) {
  if (!summed) return;
  throw std::invalid_argument(
      fmt::format("{} was told that gradients are summed before it begins, but it sums them itself; leave "
                  "summed_gradients off, or take full_step and Zero1AdamW.",
                  step));
}

void require_fitting(const char* step, const StepContext& context, std::initializer_list<StepInput> handed) {
  check_group(step, "dp", context.dp, context.layout.grid.dp(), context.place.dp);
  check_group(step, "tp", context.tp, context.layout.grid.tp(), context.place.tp);
  for (const StepInput& each : handed)
    check_buckets(step, context.layout, context.place, each,
                  each.whole ? "pack them with pack_buckets." : "hand it what this rank owns of each bucket.");
}

}  // namespace muonwalk
