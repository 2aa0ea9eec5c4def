#include "tests/optim/against_serial.hpp"

#include <cstring>
#include <sstream>

namespace muonwalk::test {
namespace {

bool same_bytes(const float* left, const float* right, Index count) {
  return count == 0 || std::memcmp(left, right, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

/// The momentum shards of one rank as the reference would have them: packed whole, then cut at the DP boundaries.
bool same_momentum(const Layout& layout, const Place& place, const Buckets& shards, const Buckets& serial) {
  for (std::size_t b = 0; b < serial.size(); ++b) {
    for (std::size_t k = 0; k < serial[b].size(); ++k) {
      const Range own = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), place.dp);
      const Index first = own.begin - layout.buffers[b].buckets[k].range.begin;
      if (static_cast<Index>(shards[b][k].size()) != own.size()) return false;
      if (!same_bytes(shards[b][k].data(), serial[b][k].data() + first, own.size())) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::vector<Snapshot>> run_distributed(const Case& c, const Sabotage& sabotage) {
  Layout layout = c.layout();
  if (sabotage.layout) sabotage.layout(layout);
  std::vector<std::vector<Snapshot>> ranks(static_cast<std::size_t>(c.grid.size()));
  const std::vector<NamedMatrix> weights = c.weights();

  run_ranks(
      c.grid,
      [&](TestRank& rank) {
        MuonState state = initial_state(layout, pointers(weights), rank.place);
        for (int step = 0; step < c.steps; ++step) {
          const std::vector<Matrix> mine = c.gradients(step, rank.place.dp);
          Buckets gradients = pack_buckets(layout, pointers(mine), rank.place.tp);
          if (sabotage.gradients) sabotage.gradients(step, rank.place, gradients);
          const MuonState before = state;
          rank.ledger.clear();
          full_step({layout, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
          if (sabotage.after_step) sabotage.after_step(step, rank.place, before, state);
          ranks[rank.place.rank].push_back({state, rank.ledger});
        }
      },
      sabotage.backend);
  return ranks;
}

std::vector<SerialSnapshot> run_serial(const Case& c, int threads) {
  MuonSettings settings = c.settings;
  settings.newton_schulz.threads = threads;
  SerialMuon muon(c.weights(), settings);
  std::vector<SerialSnapshot> steps;
  for (int step = 0; step < c.steps; ++step) {
    std::vector<std::vector<Matrix>> leaves;
    for (int leaf = 0; leaf < c.grid.dp(); ++leaf) leaves.push_back(c.gradients(step, leaf));
    muon.step(leaves);
    steps.push_back({muon.parameters(), muon.momentum()});
  }
  return steps;
}

std::string first_difference(const Case& c, const std::vector<std::vector<Snapshot>>& ranks,
                             const std::vector<SerialSnapshot>& serial) {
  const Layout layout = c.layout();
  for (int step = 0; step < c.steps; ++step) {
    for (int r = 0; r < c.grid.size(); ++r) {
      const Place place = c.grid.place(r);
      const MuonState& state = ranks[r][step].state;
      const Buckets weights = pack_buckets(layout, pointers(serial[step].weights), place.tp);
      const Buckets momentum = pack_buckets(layout, pointers(serial[step].momentum), place.tp);
      const std::string where = "after step " + std::to_string(step) + " on rank " + std::to_string(r);

      for (std::size_t b = 0; b < weights.size(); ++b) {
        for (std::size_t k = 0; k < weights[b].size(); ++k) {
          const Flat& held = state.weights[b][k];
          const Flat& right = weights[b][k];
          if (held.size() == right.size() && same_bytes(held.data(), right.data(), static_cast<Index>(right.size())))
            continue;
          std::ostringstream out;
          out << where << " the weights of bucket " << k << " of buffer " << b << " differ";
          for (std::size_t i = 0; i < right.size() && i < held.size(); ++i) {
            if (same_bytes(&held[i], &right[i], 1)) continue;
            out << ", first at element " << i << ": " << held[i] << " is not " << right[i];
            break;
          }
          return out.str();
        }
      }
      if (!same_momentum(layout, place, state.momentum, momentum)) return where + " the momentum shards differ";
    }
  }
  return "";
}

}  // namespace muonwalk::test
