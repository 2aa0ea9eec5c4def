#pragma once

#include <cstdint>
#include <string>

#include "src/comm/communicator.hpp"

namespace muonwalk::testing {

/// What a rank makes of a sequence of random calls: every kind, element type and size up to `largest` elements, zero
/// included, checked bit for bit against a naive reference that knows what every rank holds, and with a ledger that is
/// predicted call by call. All ranks of the group must pass the same arguments.
struct RandomCalls {
  std::uint64_t seed = 0;
  int calls = 100;
  Index largest = 50;
};

/// Empty when everything was right; otherwise the call, the seed and what was wrong. The first wrong result ends it.
std::string make_random_calls(Communicator& communicator, const RandomCalls& settings);

/// Posted transfers: in each round a rank posts random sends and receives, with collectives in between, some of them
/// blocking, and waits in random order for some of those under way, the rest in later rounds. What arrives is compared
/// with what a serial program knows each message to hold, and the ledger with what was posted.
struct RandomTransfers {
  std::uint64_t seed = 0;
  int rounds = 10;
  int messages = 30;  ///< in a round, of all ranks together
  Index largest = 50;
};

/// Empty when everything was right. All ranks of the group must pass the same arguments.
std::string make_random_transfers(Communicator& communicator, const RandomTransfers& settings);

/// The sum in the order of a balanced tree over neighbours, written once more and differently from tree_sum: the leaves
/// are halved at the largest power of two below their number.
float tree_by_halving(const float* leaves, Index count);

}  // namespace muonwalk::testing
