// fails: It is my shard of the updates as it came
#include "lessons/lesson_09_full_step/try_orthogonalize_once/contract.hpp"

using namespace muonwalk;

Flat orthogonalize_once(Communicator& dp, const Layout& layout, const std::vector<int>& owners, const Flat& shard) {
  return shard;
}
