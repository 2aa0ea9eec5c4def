#include <algorithm>

#include "src/optim/full_step.hpp"

namespace muonwalk {
namespace {

// What a gather takes, sends and gives back (steps.cpp): beside the shard there is the whole, in bf16 once more as
// 2-byte elements.
void gather(Plan& plan, const char* group, const char* what, Index shard, Index whole, Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  plan.take(whole, what);
  if (bf16) plan.take(whole, "2-byte elements");
  plan.call(group, CollectiveKind::all_gather, bf16 ? ElementType::bfloat16 : ElementType::float32, shard, whole);
  if (bf16) plan.give_back(whole, "2-byte elements");
}

// What Newton–Schulz holds besides its input: the matrix's wide copy X and the next X; and A and B, each m × m with the
// shorter side m. In bf16 c A is rounded, so it needs a place of its own.
Index newton_schulz_elements(Shape full, Precision precision) {
  const Index m = std::min(full.rows, full.cols);
  return 2 * full.size() + (precision == Precision::bf16 ? 3 : 2) * m * m;
}

// The journey of one matrix, from the gathered bucket to the weights.
void plan_matrix(Plan& plan, const Layout& layout, const DistMeta& meta, const MuonSettings& settings) {
  const Index slice = meta.shape.size(), full = meta.full_shape.size();
  const Index owned = layout.owned_range(meta, plan.place.dp).size();
  const bool travels = meta.tp_split_dim != SplitDim::none && layout.grid.tp() > 1;

  plan.work(phases::tp_gather, meta.shape, 0, &meta);
  plan.take(slice, "slice");
  if (travels) {
    // Slices of rows lie as the whole matrix does. Slices of columns are laid side by side, which takes a copy.
    const bool by_rows = meta.tp_split_dim == SplitDim::rows;
    gather(plan, "tp", by_rows ? "matrix" : "slices", slice, full, settings.precision);
    if (!by_rows) {
      plan.take(full, "matrix");
      plan.give_back(full, "slices");
    }
  } else {
    plan.take(full, "matrix");
  }
  plan.give_back(slice, "slice");

  plan.work(phases::orthogonalize, meta.full_shape,
            newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, settings.ns_steps), &meta);
  const Index working = newton_schulz_elements(meta.full_shape, settings.precision);
  plan.take(working, "X, A, B");
  plan.give_back(working, "X, A, B");

  plan.work(phases::tp_shard, meta.shape, 0, &meta);
  plan.take(slice, "slice");
  plan.give_back(full, "matrix");

  plan.work(phases::dp_shard, {1, owned}, 0, &meta);
  plan.take(owned, "owned");

  plan.work(phases::apply, {1, owned}, 3.0 * static_cast<double>(owned), &meta);
  plan.give_back(owned, "owned");
  plan.give_back(slice, "slice");
}

}  // namespace

// In the order of full_step, phase by phase.
Plan muon_plan(const Layout& layout, const Place& place, const MuonSettings& settings) {
  Plan plan{layout.grid, place, {}};
  Index all = 0;
  for (const Buffer& buffer : layout.buffers) all += buffer.size;
  plan.take(all, "weights");
  plan.take(all, "gradients");
  plan.take(layout.shard_elements(place.dp), "momentum");

  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
      const Index whole = buffer.buckets[k].range.size();
      const Index own = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), place.dp).size();

      plan.work(phases::reduce_gradients, {1, whole});
      plan.take(own, "update");
      plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, whole, own);

      plan.work(phases::momentum, {1, own}, (settings.nesterov ? 4.0 : 2.0) * static_cast<double>(own));
      if (!layout.whole_matrices()) {
        plan.work(phases::dp_gather, {1, whole});
        gather(plan, "dp", "bucket", own, whole, settings.precision);
        plan.give_back(own, "update");
      }

      for (const int index : buffer.buckets[k].parameters)
        if (!layout.owned_range(buffer.parameters[index], place.dp).empty())
          plan_matrix(plan, layout, buffer.parameters[index], settings);

      plan.work(phases::gather_weights, {1, whole});
      plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own, whole);
      if (layout.whole_matrices())
        plan.give_back(own, "update");
      else
        plan.give_back(whole, "bucket");
    }
  }
  return plan;
}

}  // namespace muonwalk
