#include "sim/cluster/shown_phases.hpp"

#include <fmt/format.h>

namespace muonwalk::sim {
namespace {

// Calls visit(buffer, bucket, number): the number tells buckets apart where there are several.
template <class Visit>
void visit_buckets(const Layout& layout, const Visit& visit) {
  std::size_t buckets = 0;
  for (const Buffer& buffer : layout.buffers) buckets += buffer.buckets.size();
  int number = 0;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k, ++number)
      visit(static_cast<int>(b), static_cast<int>(k), buckets > 1 ? fmt::format(" {}", number) : "");
}

}  // namespace

void show_state(Rank& rank, const Layout& layout, const MuonState& state) {
  if (!rank.recorded()) return;
  visit_buckets(layout, [&](int b, int k, const std::string& number) {
    const Buffer& buffer = layout.buffers[static_cast<std::size_t>(b)];
    const Range bucket = buffer.buckets[static_cast<std::size_t>(k)].range;
    rank.show("weights" + number, state.weights[b][k]).elements(bucket, buffer);
    rank.show("momentum" + number, state.momentum[b][k]).elements(layout.dp_slice(b, k, rank.place.dp), buffer);
  });
}

ShownPhases::ShownPhases(Rank& rank, const Layout& layout) : rank_(&rank), layout_(&layout) {
  if (!rank.recorded()) return;
  visit_buckets(layout, [&](int b, int k, const std::string& number) {
    const Buffer& buffer = layout.buffers[static_cast<std::size_t>(b)];
    const Range bucket = buffer.buckets[static_cast<std::size_t>(k)].range;
    rank.show("gradients" + number, bucket.size()).elements(bucket, buffer).from("weights" + number);
  });
}

void ShownPhases::operator()(Phase phase, const DistMeta*) {
  rank_->phase(std::string(phase));
  if (!rank_->recorded() || !shown_.insert(phase).second) return;
  visit_buckets(*layout_, [&](int b, int k, const std::string& number) {
    const Buffer& buffer = layout_->buffers[static_cast<std::size_t>(b)];
    const Bucket& bucket = buffer.buckets[static_cast<std::size_t>(k)];
    show_bucket(phase, b, k, number);
    for (const int p : bucket.parameters) {
      const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(p)];
      if (!layout_->owned_range(meta, rank_->place.dp).empty()) show_parameter(phase, meta, number);
    }
  });
}

// The phases that work on a part of the bucket.
void ShownPhases::show_bucket(Phase phase, int b, int k, const std::string& number) {
  const Buffer& buffer = layout_->buffers[static_cast<std::size_t>(b)];
  const Bucket& bucket = buffer.buckets[static_cast<std::size_t>(k)];
  const Range own = layout_->dp_slice(b, k, rank_->place.dp);
  const Index piece = own.size();
  if (phase == phases::reduce_gradients) rank_->show("gradients" + number, piece).elements(own, buffer).note("summed");
  if (phase == phases::momentum) {
    rank_->show("momentum" + number, piece).elements(own, buffer);
    rank_->show("update" + number, piece).elements(own, buffer).from("gradients" + number);
  }
  if (phase == phases::dp_gather) rank_->show("update" + number, bucket.range.size()).elements(bucket.range, buffer);
  if (phase == phases::gather_weights)
    rank_->show("weights" + number, bucket.range.size()).elements(bucket.range, buffer).note("new");
  if (phase == phases::apply) {
    Shown& weights = rank_->show("weights" + number, piece);
    weights.elements(own, buffer).note("new");
    for (const int p : bucket.parameters) {
      const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(p)];
      if (!layout_->owned_range(meta, rank_->place.dp).empty()) weights.from(meta.name);
    }
  }
}

// The phases that go from parameter to parameter, on the ranks that own an element of it.
void ShownPhases::show_parameter(Phase phase, const DistMeta& meta, const std::string& number) {
  const int tp = rank_->place.tp;
  if (phase == phases::tp_gather) rank_->show(meta.name, meta.full_shape).whole().from("update" + number);
  if (phase == phases::orthogonalize) rank_->show(meta.name + ", orthogonal", meta.full_shape).whole();
  if (phase == phases::tp_shard) {
    Shown& slice = rank_->show(meta.name + ", orthogonal", meta.shape);
    const Index rows = meta.shape.rows, cols = meta.shape.cols;
    if (meta.tp_split_dim == SplitDim::rows) slice.rows({tp * rows, (tp + 1) * rows}, meta.full_shape.rows);
    if (meta.tp_split_dim == SplitDim::columns) slice.columns({tp * cols, (tp + 1) * cols}, meta.full_shape.cols);
  }
  if (phase == phases::dp_shard) {
    const Range owned = layout_->owned_range(meta, rank_->place.dp);
    const Index first = meta.global_range.begin;
    rank_->show(meta.name + ", orthogonal", owned.size())
        .elements({owned.begin - first, owned.end - first}, meta.shape.size());
  }
}

}  // namespace muonwalk::sim
