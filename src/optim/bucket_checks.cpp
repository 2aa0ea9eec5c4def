#include "src/optim/bucket_checks.hpp"

#include <stdexcept>
#include <string>

namespace muonwalk {
namespace {

void check_group(const std::string& kind, const Communicator& group, int grid_size, int coordinate) {
  if (group.size() != grid_size || group.rank() != coordinate) {
    throw std::invalid_argument("full_step was given rank " + std::to_string(group.rank()) + " of a " + kind +
                                " group of " + std::to_string(group.size()) +
                                ", but its place in the layout's grid is " + kind + " " + std::to_string(coordinate) +
                                " of " + std::to_string(grid_size) + "; hand it the rank's own " + kind + " group.");
  }
}

/// `shares` is 1 for whole buckets and dp for DP shards.
void check_buckets(const std::string& what, const Layout& layout, const Buckets& buckets, Index shares) {
  if (buckets.size() != layout.buffers.size()) {
    throw std::invalid_argument("full_step was given " + what + " for " + std::to_string(buckets.size()) +
                                " buffers, but the layout has " + std::to_string(layout.buffers.size()) +
                                "; pack them with pack_buckets or initial_state.");
  }
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    if (buckets[b].size() != buffer.buckets.size()) {
      throw std::invalid_argument("full_step was given " + what + " for " + std::to_string(buckets[b].size()) +
                                  " buckets of buffer " + std::to_string(b) + ", but the layout has " +
                                  std::to_string(buffer.buckets.size()) +
                                  "; pack them with pack_buckets or initial_state.");
    }
    for (std::size_t k = 0; k < buckets[b].size(); ++k) {
      const Index expected = buffer.buckets[k].range.size() / shares;
      const Index given = static_cast<Index>(buckets[b][k].size());
      if (given != expected) {
        throw std::invalid_argument("full_step was given " + what + " of " + std::to_string(given) +
                                    " elements for bucket " + std::to_string(k) + " of buffer " + std::to_string(b) +
                                    ", but the layout says " + std::to_string(expected) +
                                    "; pack them with pack_buckets or initial_state.");
      }
    }
  }
}

}  // namespace

void check_full_step(const Layout& layout, const Place& place, const Communicator& dp, const Communicator& tp,
                     const Buckets& gradients, const MuonState& state) {
  check_group("dp", dp, layout.grid.dp(), place.dp);
  check_group("tp", tp, layout.grid.tp(), place.tp);
  check_buckets("weights", layout, state.weights, 1);
  check_buckets("momentum", layout, state.momentum, layout.grid.dp());
  check_buckets("gradients", layout, gradients, 1);
}

}  // namespace muonwalk
