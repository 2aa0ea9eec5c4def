#include "sim/lesson_22/array_steps.hpp"

#include <fmt/format.h>

#include <numeric>

#include "src/errors.hpp"

namespace muonwalk::sim {

Array gather(Communicator& group, Processor& processor, const Array& shard, const std::vector<Index>& counts,
             Precision precision) {
  Array all = processor.array(std::accumulate(counts.begin(), counts.end(), Index{0}));
  if (precision == Precision::fp32) {
    processor.wait();
    group.all_gather_v(static_cast<const float*>(shard.data()), counts, all.data());
    return all;
  }
  const ArrayOf<bfloat16> travelling = processor.array_of_bf16(all.size());
  bfloat16* const own = travelling.data() + std::accumulate(counts.begin(), counts.begin() + group.rank(), Index{0});
  processor.to_bf16(shard.data(), shard.size(), own);
  processor.wait();
  group.all_gather_v(static_cast<const bfloat16*>(own), counts, travelling.data());
  processor.from_bf16(travelling.data(), all.size(), all.data());
  return all;
}

std::vector<DistMeta> owned_matrices(const Layout& layout, int dp_rank) {
  std::vector<DistMeta> owned;
  for (const DistMeta& meta : layout.buffers.at(0).parameters)
    if (!layout.owned_range(meta, dp_rank).empty()) owned.push_back(meta);
  return owned;
}

Array tp_gather(Communicator& tp, Processor& processor, const Array& bucket, const DistMeta& meta,
                Precision precision) {
  const Array slice = processor.array(meta.shape.size());
  processor.copy(slice.data(), bucket.data() + meta.global_range.begin, slice.size());
  if (meta.tp_split_dim == SplitDim::none || tp.size() == 1) {
    Array matrix = processor.array(slice.size());
    processor.copy(matrix.data(), slice.data(), slice.size());
    return matrix;
  }
  const auto ranks = static_cast<std::size_t>(tp.size());
  Array slices = gather(tp, processor, slice, std::vector<Index>(ranks, slice.size()), precision);
  if (meta.tp_split_dim == SplitDim::rows) return slices;
  Array matrix = processor.array(slices.size());
  const Index rows = meta.shape.rows, cols = meta.shape.cols;
  for (Index r = 0; r < tp.size(); ++r)
    processor.copy_rows(matrix.data() + r * cols, tp.size() * cols, slices.data() + r * slice.size(), cols, rows, cols);
  return matrix;
}

Array tp_shard(Processor& processor, const Array& matrix, Index stride, const DistMeta& meta, int tp_rank) {
  const Index rows = meta.shape.rows, cols = meta.shape.cols;
  Index begin = 0;
  if (meta.tp_split_dim == SplitDim::rows) begin = tp_rank * rows * cols;
  if (meta.tp_split_dim == SplitDim::columns) begin = tp_rank * cols;
  Array slice = processor.array(rows * cols);
  processor.copy_rows(slice.data(), cols, matrix.data() + begin, stride, rows, cols);
  return slice;
}

Array dp_shard(Processor& processor, const Array& slice, const Layout& layout, const DistMeta& meta, int dp_rank) {
  const Range owned = layout.owned_range(meta, dp_rank);
  Array shard = processor.array(owned.size());
  processor.copy(shard.data(), slice.data() + (owned.begin - meta.global_range.begin), owned.size());
  return shard;
}

std::vector<NamedMatrix> slices_on_host(Processor& processor, const Layout& layout, const Array& bucket, int tp_rank) {
  Buckets buckets(1);
  buckets[0].push_back(processor.on_host(bucket));
  return unpack_buckets(layout, buckets, tp_rank);
}

void require_usable(const Grid& grid, Products products, bool on_gpus) {
  if (grid.pp() > 1)
    throw UsageError(fmt::format(
        "--pp {} has no place in this lesson, where all ranks hold slices of all matrices; try lesson 09", grid.pp()));
  if (on_gpus && products == Products::eigen)
    throw UsageError(
        "--products eigen has bits that no GPU has; leave it out, and host and GPU multiply with the chain");
}

}  // namespace muonwalk::sim
