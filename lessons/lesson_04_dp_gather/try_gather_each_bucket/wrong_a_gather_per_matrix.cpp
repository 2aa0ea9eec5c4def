// fails: right bits, but too many bytes
#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"

using namespace muonwalk;

void gather_each_bucket(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards, const UseMatrix& use) {
  for (std::size_t b = 0; b < buffer.buckets.size(); ++b)
    for (const int p : buffer.buckets[b].parameters) {
      const Flat bucket = dp.all_gather(shards[b]);
      const DistMeta& meta = buffer.parameters[p];
      const auto first = bucket.begin() + (meta.global_range.begin - buffer.buckets[b].range.begin);
      use(meta, Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size())));
    }
}
