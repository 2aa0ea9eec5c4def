#include "src/optim/optimizer.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace muonwalk {
namespace {

void check_group(const char* step, const char* name, const Communicator& group, int grid_size, int coordinate) {
  if (group.size() == grid_size && group.rank() == coordinate) return;
  throw std::invalid_argument(
      fmt::format("{} was given rank {} of a {} group of {}, but in the layout's grid it is {} {} of {}; hand it "
                  "the rank's own {} group.",
                  step, group.rank(), name, group.size(), name, coordinate, grid_size, name));
}

void check_buckets(const char* step, const StepContext& context, const HandedBuckets& handed) {
  const char* const remedy = "pack them with pack_buckets or initial_state.";
  const std::vector<Buffer>& buffers = context.layout.buffers;
  if (handed.buckets.size() != buffers.size())
    throw std::invalid_argument(fmt::format("{} was given {} for {} buffers, but the layout has {}; {}", step,
                                            handed.what, handed.buckets.size(), buffers.size(), remedy));
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const std::vector<Flat>& given = handed.buckets[b];
    if (given.size() != buffers[b].buckets.size())
      throw std::invalid_argument(fmt::format("{} was given {} for {} buckets of buffer {}, but the layout has {}; {}",
                                              step, handed.what, given.size(), b, buffers[b].buckets.size(), remedy));
    for (std::size_t k = 0; k < given.size(); ++k) {
      const Range expected = handed.whole
                                 ? buffers[b].buckets[k].range
                                 : context.layout.dp_slice(static_cast<int>(b), static_cast<int>(k), context.place.dp);
      if (static_cast<Index>(given[k].size()) != expected.size())
        throw std::invalid_argument(
            fmt::format("{} was given {} of {} elements for bucket {} of buffer {}, but the layout says {}; {}", step,
                        handed.what, given[k].size(), k, b, expected.size(), remedy));
    }
  }
}

}  // namespace

Index Optimizer::kept_elements() const {
  Index elements = 0;
  for (const Kept& kept : keeps()) elements += kept.elements;
  return elements;
}

void require_fitting(const char* step, const StepContext& context, std::initializer_list<HandedBuckets> handed) {
  check_group(step, "dp", context.dp, context.layout.grid.dp(), context.place.dp);
  check_group(step, "tp", context.tp, context.layout.grid.tp(), context.place.tp);
  for (const HandedBuckets& each : handed) check_buckets(step, context, each);
}

}  // namespace muonwalk
