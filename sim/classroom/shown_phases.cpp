#include "sim/classroom/shown_phases.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace muonwalk::sim {
namespace {

// " 2", which tells buckets apart where there are several.
std::string bucket_suffix(const Layout& layout, int number) {
  return layout.all_buckets().size() > 1 ? fmt::format(" {}", number) : "";
}

// Calls visit(buffer, bucket, its two numbers, and its number among all).
template <class Visit>
void visit_buckets(const Layout& layout, const Visit& visit) {
  int number = 0;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k, ++number)
      visit(layout.buffers[b], layout.buffers[b].buckets[k], static_cast<int>(b), static_cast<int>(k), number);
}

// Only what a recording keeps is copied.
void keep(Shown& shown, const float* values) {
  const Index size = shown.block.rows * shown.block.cols;
  if (size <= kMostRecordedValues) shown.values.assign(values, values + size);
}

}  // namespace

void show_state(Rank& rank, const Layout& layout, const MuonState& state) {
  if (!rank.recorded()) return;
  visit_buckets(layout, [&](const Buffer& buffer, const Bucket& bucket, int b, int k, int number) {
    const std::string suffix = bucket_suffix(layout, number);
    rank.show("weights" + suffix, state.weights[b][k]).elements(bucket.range, buffer);
    rank.show("momentum" + suffix, state.momentum[b][k]).elements(layout.dp_slice(b, k, rank.place.dp), buffer);
  });
}

ShownPhases::ShownPhases(Rank& rank, const Layout& layout, const Buckets* gradients, const MuonState* state)
    : rank_(&rank), layout_(&layout), state_(state) {
  if (!rank.recorded()) return;
  visit_buckets(layout, [&](const Buffer& buffer, const Bucket& bucket, int b, int k, int number) {
    const std::string suffix = bucket_suffix(layout, number);
    Shown& shown =
        rank.show("gradients" + suffix, bucket.range.size()).elements(bucket.range, buffer).from("weights" + suffix);
    if (gradients != nullptr) keep(shown, (*gradients)[b][k].data());
  });
}

void ShownPhases::operator()(Phase phase, const DistMeta* parameter) {
  rank_->phase(std::string(phase));
  if (!rank_->recorded()) return;
  bucket_ += phase == phases::reduce_gradients;
  phase_ = phase;
  parameter_ = parameter == nullptr || phase == phases::apply ? "" : parameter->name;  // apply changes the bucket
  if (!shown_.insert(phase).second) return;
  visit_buckets(*layout_, [&](const Buffer& buffer, const Bucket& bucket, int b, int k, int number) {
    show_bucket(phase, b, k, number);
    for (const int p : bucket.parameters) {
      const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(p)];
      if (!layout_->owned_range(meta, rank_->place.dp).empty())
        show_parameter(phase, meta, bucket_suffix(*layout_, number));
    }
  });
}

void ShownPhases::made(const float* values, Index count) {
  if (!rank_->recorded()) return;
  const auto [shown, first, whole] = waiting_.at({phase_, parameter_, parameter_.empty() ? bucket_ : 0});
  const Index size = shown->block.rows * shown->block.cols;
  if (count != size && count != whole)
    throw std::logic_error(
        fmt::format("{} in phase {}: {} values were handed over for {}", shown->block.name, phase_, count, size));
  keep(*shown, values + (count == size ? 0 : first));
  if (phase_ != phases::momentum) return;
  const auto& [momentum, state] = momentum_.at(static_cast<std::size_t>(bucket_));
  if (state != nullptr) keep(*momentum, state->data());
}

// The phases that work on a part of the bucket.
void ShownPhases::show_bucket(Phase phase, int b, int k, int number) {
  const Buffer& buffer = layout_->buffers[static_cast<std::size_t>(b)];
  const Bucket& bucket = buffer.buckets[static_cast<std::size_t>(k)];
  const Range own = layout_->dp_slice(b, k, rank_->place.dp);
  const std::string suffix = bucket_suffix(*layout_, number);
  const auto show = [&](const char* name, Range part) -> Shown& {
    Shown& shown = rank_->show(name + suffix, part.size()).elements(part, buffer);
    waiting_[{phase, "", number}] = {&shown, part.begin - bucket.range.begin, bucket.range.size()};
    return shown;
  };
  if (phase == phases::reduce_gradients) show("gradients", own).note("summed");
  if (phase == phases::momentum) {
    momentum_.push_back({&show("momentum", own), state_ == nullptr ? nullptr : &state_->momentum[b][k]});
    show("update", own).from("gradients" + suffix);
  }
  if (phase == phases::dp_gather) show("update", bucket.range);
  if (phase == phases::gather_weights) show("weights", bucket.range).note("new");
  if (phase == phases::apply) {
    Shown& weights = show("weights", own).note("new");
    for (const int p : bucket.parameters) {
      const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(p)];
      if (!layout_->owned_range(meta, rank_->place.dp).empty()) weights.from(meta.name);
    }
  }
}

// The phases that go from parameter to parameter, on the ranks that own an element of it.
void ShownPhases::show_parameter(Phase phase, const DistMeta& meta, const std::string& number) {
  const int tp = rank_->place.tp;
  const auto show = [&](const std::string& name, auto shape) -> Shown& {
    Shown& shown = rank_->show(name, shape);
    waiting_[{phase, meta.name, 0}] = {&shown, 0, shown.block.rows * shown.block.cols};
    return shown;
  };
  if (phase == phases::tp_gather) show(meta.name, meta.full_shape).whole().from("update" + number);
  if (phase == phases::orthogonalize) show(meta.name + ", orthogonal", meta.full_shape).whole();
  if (phase == phases::tp_shard) {
    Shown& slice = show(meta.name + ", orthogonal", meta.shape);
    const Index rows = meta.shape.rows, cols = meta.shape.cols;
    if (meta.tp_split_dim == SplitDim::rows) slice.rows({tp * rows, (tp + 1) * rows}, meta.full_shape.rows);
    if (meta.tp_split_dim == SplitDim::columns) slice.columns({tp * cols, (tp + 1) * cols}, meta.full_shape.cols);
  }
  if (phase == phases::dp_shard) {
    const Range owned = layout_->owned_range(meta, rank_->place.dp);
    const Index first = meta.global_range.begin;
    show(meta.name + ", orthogonal", owned.size())
        .elements({owned.begin - first, owned.end - first}, meta.shape.size());
  }
}

}  // namespace muonwalk::sim
