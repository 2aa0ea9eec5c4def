// Of several ranks that fail, the watch names the one with which it began. Its ranks are made up here: each has already
// told how it ended.
#include "sim/world/run_watch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// A rank that failed: why, and when.
class FailedRank : public WatchedRank {
 public:
  explicit FailedRank(Failed failure) {
    std::vector<Record> told;
    told.emplace_back(std::move(failure));
    sort_in(std::move(told));
  }
  int file() const override { return -1; }
  void take_news() override {}
  void end() override { ended_ = true; }
  void leave_to_parent() override {}
  bool wait_for_end(double) override { return true; }
  double cpu_seconds() const override { return 0; }
  bool wants_processor() const override { return false; }
};

// A rank on another host of which nobody hears any more, though it may well compute.
class SilentRank : public WatchedRank {
 public:
  SilentRank() { ended_ = false; }
  int file() const override { return -1; }
  void take_news() override {}
  void end() override { ended_ = true; }
  void leave_to_parent() override {}
  bool wait_for_end(double) override { return true; }
  double cpu_seconds() const override { return 0; }
  bool wants_processor() const override { return true; }
  bool heard_of() override { return false; }
};

// What the watch says of ranks that failed like this, in rank order.
std::string said_of(const std::vector<Failed>& failures) {
  Options options;
  options.grid = Grid().dp(static_cast<int>(failures.size()));
  const ProgressBoard board(options.grid.size());
  RunWatch watch(options, board);
  for (const Failed& failure : failures) watch.add(std::make_unique<FailedRank>(failure));
  try {
    watch.wait_for_run(2, "a step");
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing";
}

Failed failed(Failed::Kind kind, double at, const char* words = "words") { return {kind, words, at}; }

}  // namespace

TEST_CASE("of several ranks that failed for reasons of their own, the first one is named, whatever its number") {
  std::vector<double> times = {4, 2, 3, 1};
  std::sort(times.begin(), times.end());
  do {
    std::vector<Failed> failures;
    for (const double at : times) failures.push_back(failed(Failed::Kind::other, at));
    const auto first = std::min_element(times.begin(), times.end()) - times.begin();
    const std::string said = said_of(failures);
    CAPTURE(said);
    CHECK(said.find("rank " + std::to_string(first) + " failed") == 0);
  } while (std::next_permutation(times.begin(), times.end()));
}

TEST_CASE("a cause is before its consequences, even where it was told later") {
  const std::string said =
      said_of({failed(Failed::Kind::peer_lost, 1), failed(Failed::Kind::peer_lost, 2), failed(Failed::Kind::other, 9)});
  CHECK(said.find("rank 2 failed") == 0);
  CHECK(said_of({failed(Failed::Kind::peer_lost, 2), failed(Failed::Kind::peer_lost, 1)}).find("rank 1 failed") == 0);
}

TEST_CASE("a rank that nobody hears of is given up after --timeout, and not before two seconds") {
  for (const double timeout : {0.2, 3.0}) {
    CAPTURE(timeout);
    Options options;
    options.timeout_seconds = timeout;
    const ProgressBoard board(1);
    RunWatch watch(options, board);
    watch.add(std::make_unique<SilentRank>());
    std::string said;
    try {
      watch.wait_for_run(2, "a step");
    } catch (const RunError& error) {
      said = error.what();
    }
    CAPTURE(said);
    const std::string words = "rank 0 was not heard of in step 'rendezvous' for ";
    REQUIRE(said.find(words) == 0);
    CHECK(std::stod(said.substr(words.size())) >= std::max(timeout, 2.0));
  }
}
