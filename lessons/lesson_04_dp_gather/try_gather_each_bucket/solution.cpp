#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"

using namespace muonwalk;

// The bucket is gone before the next one comes, and each matrix before the one behind it.
void gather_each_bucket(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards, const UseMatrix& use) {
  for (std::size_t b = 0; b < buffer.buckets.size(); ++b) {
    const Flat bucket = dp.all_gather(shards[b]);
    for (const int p : buffer.buckets[b].parameters) {
      const DistMeta& meta = buffer.parameters[p];
      const auto first = bucket.begin() + (meta.global_range.begin - buffer.buckets[b].range.begin);
      use(meta, Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size())));
    }
  }
}
