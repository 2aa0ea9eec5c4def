#include "lessons/lesson_09_full_step/kept_momentum.hpp"

#include <algorithm>
#include <functional>

#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// `work` with every matrix of which the rank owns an element, and what it owns of it, counted in its shard.
void for_own(const Layout& hidden, const Place& place, const std::function<void(const DistMeta&, Range)>& work) {
  for (const Buffer& buffer : hidden.buffers)
    for (const DistMeta& meta : buffer.parameters) {
      const Range owned = hidden.owned_range(meta, place.dp);
      const Index shard = hidden.dp_slice(meta.buffer_idx, meta.bucket_idx, place.dp).begin;
      if (!owned.empty()) work(meta, {owned.begin - shard, owned.end - shard});
    }
}

}  // namespace

MuonMemory kept_before(const Training& training) {
  const auto* files = dynamic_cast<const FileTraining*>(&training);
  return files == nullptr ? MuonMemory() : files->kept();
}

void put_kept(const MuonMemory& kept, const Layout& hidden, const Place& place, MuonState& state) {
  for_own(hidden, place, [&](const DistMeta& meta, Range mine) {
    if (const auto whole = kept.momentum.find(meta.name); whole != kept.momentum.end()) {
      const Matrix slice = tp_shard(whole->second, meta.tp_split_dim, hidden.grid.tp(), place.tp);
      const Flat part = dp_shard(slice, hidden, meta, place.dp);
      std::copy(part.begin(), part.end(), state.momentum[meta.buffer_idx][meta.bucket_idx].begin() + mine.begin);
    }
    if (const auto means = kept.second_moments.find(meta.name); means != kept.second_moments.end())
      state.second_moments[0][meta.parameter] = means->second;
  });
}

std::vector<NamedMatrix> kept_parts(const MuonState& state, const Layout& hidden, const Place& place) {
  std::vector<NamedMatrix> parts;
  for_own(hidden, place, [&](const DistMeta& meta, Range mine) {
    const Flat& shard = state.momentum[meta.buffer_idx][meta.bucket_idx];
    parts.push_back({meta.name, Matrix(1, mine.size(), Flat(shard.begin() + mine.begin, shard.begin() + mine.end))});
    if (state.second_moments.empty()) return;
    const Flat& means = state.second_moments[0][meta.parameter];
    parts.push_back({meta.name + " second moment", Matrix(1, static_cast<Index>(means.size()), means)});
  });
  return parts;
}

}  // namespace muonwalk::sim
