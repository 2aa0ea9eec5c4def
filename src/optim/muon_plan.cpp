#include <algorithm>

#include "src/optim/full_step.hpp"

namespace muonwalk {
namespace {

// What a gather takes, sends and gives back (steps.cpp): beside the shard the whole, in bf16 also as 2-byte elements.
void gather(Plan& plan, const char* group, const char* what, Index shard, Index whole, Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  plan.take(whole, what);
  if (bf16) plan.take(whole, "2-byte elements", ElementType::bfloat16);
  plan.call(group, CollectiveKind::all_gather, bf16 ? ElementType::bfloat16 : ElementType::float32, shard, whole);
  if (bf16) plan.give_back(whole, "2-byte elements", ElementType::bfloat16);
}

// The same for one slice, among those that own a part of it (gather_from_owners).
void gather_slice(Plan& plan, const Layout& layout, const DistMeta& meta, Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  const Index slice = meta.shape.size(), own = layout.owned_range(meta, plan.place.dp).size();
  const ElementType type = bf16 ? ElementType::bfloat16 : ElementType::float32;
  plan.work(phases::dp_gather, meta.shape, 0, &meta);
  plan.take(slice, "slice");
  if (bf16) plan.take(slice, "2-byte elements", ElementType::bfloat16);
  std::vector<Call> waits;
  for (const int owner : layout.owners(meta)) {
    if (owner == plan.place.dp) continue;
    plan.operations.push_back(Call{"dp", CollectiveKind::send, type, own, 0, owner});
    plan.operations.push_back(Call{"dp", CollectiveKind::recv, type, 0, layout.owned_range(meta, owner).size(), owner});
    waits.insert(waits.end(), 2, Call{"dp", CollectiveKind::wait, type, 0, 0, owner});
  }
  plan.operations.insert(plan.operations.end(), waits.begin(), waits.end());
  if (bf16) plan.give_back(slice, "2-byte elements", ElementType::bfloat16);
}

void plan_newton_schulz(Plan& plan, const DistMeta& meta, Shape shape, Index copied, const MuonSettings& settings) {
  plan.work(phases::orthogonalize, shape, newton_schulz_flops(shape.rows, shape.cols, settings.newton_schulz), &meta);
  if (copied > 0) plan.take(copied, "rows");
  const Index working = newton_schulz_elements(shape, settings.newton_schulz);
  plan.take(working, "X, A, B");
  plan.give_back(working, "X, A, B");
  if (copied > 0) plan.give_back(copied, "rows");
}

}  // namespace

Index newton_schulz_elements(Shape full, const NewtonSchulzSettings& settings) {
  const Index m = std::min(full.rows, full.cols);
  const bool gram = settings.gram && full.rows != full.cols;
  return 2 * full.size() + ((settings.precision == Precision::bf16 ? 3 : 2) + (gram ? 2 : 0)) * m * m;
}

void plan_orthogonalize_gathered(Plan& plan, const DistMeta& meta, const MuonSettings& settings) {
  if (const auto fused = settings.fused.find(meta.name); fused != settings.fused.end()) {
    for (const Piece& piece : fused->second) {
      const Shape shape{piece.count(), meta.full_shape.cols};
      plan_newton_schulz(plan, meta, shape, shape.size(), settings);  // besides the matrix, the piece's own rows
    }
  } else {
    plan_newton_schulz(plan, meta, meta.full_shape, 0, settings);
  }
}

// TP gather → Newton–Schulz → TP shard.
void Orthogonalizer::plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const {
  const Index slice = meta.shape.size(), full = meta.full_shape.size();
  if (cut_by_tp(meta)) {
    // Slices of rows lie as the whole matrix does. Slices of columns are laid side by side, which takes a copy.
    const bool by_rows = meta.tp_split_dim == SplitDim::rows;
    gather(plan, "tp", by_rows ? "matrix" : "slices", slice, full, settings.gathered());
    if (!by_rows) {
      plan.take(full, "matrix");
      plan.give_back(full, "slices");
    }
  } else {
    plan.take(full, "matrix");
  }
  plan.give_back(slice, "slice");

  plan_orthogonalize_gathered(plan, meta, settings);

  plan.work(phases::tp_shard, meta.shape, 0, &meta);
  plan.take(slice, "slice");
  plan.give_back(full, "matrix");
}

Plan plan_of_muon_held(const Layout& layout, const Place& place, const MuonSettings& settings) {
  Plan plan = settings.summed_gradients ? plan_of_held(layout, place, {"weights"}, {"gradients", "momentum"})
                                        : plan_of_held(layout, place, {"weights", "gradients"}, {"momentum"});
  for (const std::vector<Flat>& all : zero_second_moments(layout, place, settings))
    for (const Flat& means : all)
      if (!means.empty()) plan.take(static_cast<Index>(means.size()), "second moment");
  return plan;
}

void plan_own_update(Plan& plan, const Layout& layout, const MuonSettings& settings, BucketNumber bucket) {
  const Index whole = layout.bucket(bucket).range.size();
  const Index own = layout.dp_slice(bucket.buffer, bucket.bucket, plan.place.dp).size();
  const Work momentum{phases::momentum, -1, {1, own}, momentum_flops(settings) * static_cast<double>(own)};
  if (settings.summed_gradients) {
    plan.operations.push_back(momentum);
    plan.take(own, "update");
  } else {
    plan.work(phases::reduce_gradients, {1, whole});
    plan.take(own, "update");
    plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, whole, own);
    plan.operations.push_back(momentum);
  }
}

// The journey of one matrix, from the gathered bucket, or the shard, to the weights.
void plan_matrix_step(Plan& plan, const Layout& layout, const MuonSettings& settings, const DistMeta& meta,
                      const Orthogonalizer& orthogonalizer) {
  const Index slice = meta.shape.size();
  const Index owned = layout.owned_range(meta, plan.place.dp).size();
  const Work apply{phases::apply, meta.parameter, {1, owned}, apply_flops(settings) * static_cast<double>(owned)};
  if (orthogonalizer.works_together_on(meta)) return plan.operations.push_back(apply);

  const bool cut = !gathers_buckets(layout, settings) && owned != slice;
  if (cut) gather_slice(plan, layout, meta, settings.gathered());
  const Orthogonalizer& way = cut_by_tp(meta) ? orthogonalizer : plain_orthogonalizer();
  plan.operations.push_back(way.begins(meta, settings));
  if (!cut) plan.take(slice, "slice");
  way.plan(plan, meta, settings);

  plan.work(phases::dp_shard, {1, owned}, 0, &meta);
  plan.take(owned, "owned");

  plan.operations.push_back(apply);
  plan.give_back(owned, "owned");
  plan.give_back(slice, "slice");
}

// In the order of full_step, phase by phase.
Plan muon_plan(const Layout& layout, const Place& place, const MuonSettings& settings,
               const Orthogonalizer& orthogonalizer) {
  Plan plan = plan_of_muon_held(layout, place, settings);
  const bool gathers = gathers_buckets(layout, settings);
  for (const auto& [b, k] : layout.all_buckets()) {
    const Index whole = layout.bucket({b, k}).range.size();
    const Index own = layout.dp_slice(b, k, place.dp).size();
    plan_own_update(plan, layout, settings, {b, k});
    if (gathers) {
      plan.work(phases::dp_gather, {1, whole});
      gather(plan, "dp", "bucket", own, whole, settings.gathered());
      plan.give_back(own, "update");
    }

    orthogonalizer.plan_together(plan, layout, settings, {b, k});
    for (const int index : layout.owned_parameters(b, k, place.dp))
      plan_matrix_step(plan, layout, settings, layout.buffers[b].parameters[index], orthogonalizer);

    plan.work(phases::gather_weights, {1, whole});
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own, whole);
    gathers ? plan.give_back(whole, "bucket") : plan.give_back(own, "update");
  }
  return plan;
}

}  // namespace muonwalk
