// fails: right bits, but other calls than planned
#include "lessons/lesson_02_collectives/try_ring_all_gather/contract.hpp"

using namespace muonwalk;

Flat ring_all_gather(Communicator& group, const Flat& shard) { return group.all_gather(shard); }
