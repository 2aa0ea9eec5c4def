// fails: All values lie 2 elements too late
#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"

using namespace muonwalk;

void gather_each_bucket(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards, const UseMatrix& use) {
  for (std::size_t b = 0; b < buffer.buckets.size(); ++b) {
    const Flat bucket = dp.all_gather(shards[b]);
    auto first = bucket.begin();
    for (const int p : buffer.buckets[b].parameters) {
      const DistMeta& meta = buffer.parameters[p];
      use(meta, Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size())));
      first += meta.shape.size();
    }
  }
}
