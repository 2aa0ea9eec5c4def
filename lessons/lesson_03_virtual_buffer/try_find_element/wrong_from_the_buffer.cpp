// fails: It is counted from the beginning of the buffer
#include "lessons/lesson_03_virtual_buffer/try_find_element/contract.hpp"

using namespace muonwalk;

Address find_element(const Buffer& buffer, const DistMeta& meta, Index row, Index col) {
  Address address;
  if (meta.tp_split_dim == SplitDim::rows)
    address.tp_rank = static_cast<int>(row / meta.shape.rows), row %= meta.shape.rows;
  if (meta.tp_split_dim == SplitDim::columns)
    address.tp_rank = static_cast<int>(col / meta.shape.cols), col %= meta.shape.cols;
  const Bucket& bucket = buffer.buckets[meta.bucket_idx];
  address.bucket_idx = meta.bucket_idx;
  address.in_bucket = meta.global_range.begin + row * meta.shape.cols + col;
  while (bucket.cuts[address.dp_rank + 1] <= address.in_bucket) ++address.dp_rank;
  address.in_shard = address.in_bucket - bucket.cuts[address.dp_rank];
  return address;
}
