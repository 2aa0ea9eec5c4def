// fails: does not hold
#include <utility>

#include "lessons/lesson_17_overlap/try_pipelined_gather/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
void pipelined_gather(Communicator& dp, const std::vector<Flat>& shards, const std::vector<std::vector<Index>>& counts,
                      const WorkOnBucket& work) {
  // Your code goes here.
}
