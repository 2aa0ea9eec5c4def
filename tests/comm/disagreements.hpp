#pragma once

// Calls in which ranks do not agree, for every backend.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tests/comm/rank_runners.hpp"

namespace muonwalk::testing {

struct Disagreement {
  std::string name;
  std::string words;  ///< At least one rank's error holds these.
  std::function<void(Communicator&)> calls;
};

/// Rank 1 is always the odd one out. The last call of each is one in which every rank hears from every other.
std::vector<Disagreement> disagreements();

/// Runs the calls on one rank; the complaint is about an error that did not come. Counts the errors with the right
/// words.
std::string expect_errors(Communicator& c, const Disagreement& disagreement, std::atomic<int>& with_words);

}  // namespace muonwalk::testing
