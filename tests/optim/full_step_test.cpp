// The complete distributed step: the cases that it is tested with (optimizer_test.cpp), a NaN, and its reference.
#include "src/optim/full_step.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "tests/cases.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

/// What the random cases covered, and how often; each must have happened.
using Covered = std::map<std::string, int>;

void note(const Case& c, const Layout& layout, Covered& covered) {
  for (const Buffer& buffer : layout.buffers) {
    covered["several buckets"] += buffer.buckets.size() > 1;
    covered["padding"] += buffer.padding > 0;
    std::vector<std::set<int>> bucket_owners(buffer.buckets.size());
    for (const DistMeta& meta : buffer.parameters) {
      const std::vector<int> owners = layout.owners(meta);
      covered["a matrix on three or more DP ranks"] += owners.size() >= 3;
      bucket_owners[meta.bucket_idx].insert(owners.begin(), owners.end());
      if (c.grid.tp() > 1 && meta.tp_split_dim != SplitDim::none) ++covered[split_name(meta.tp_split_dim)];
      covered["a single row or column"] += meta.full_shape.rows == 1 || meta.full_shape.cols == 1;
    }
    for (const auto& owners : bucket_owners)
      covered["a rank that owns nothing of a bucket"] += static_cast<int>(owners.size()) < c.grid.dp();
  }
  covered["several buffers"] += layout.buffers.size() > 1;
  ++covered[precision_name(c.settings.newton_schulz.precision)];
  ++covered[c.settings.nesterov ? "Nesterov" : "plain momentum"];
  ++covered[c.settings.weight_decay != 0 ? "decay" : "no decay"];
}

}  // namespace

TEST_CASE("random cases: what optimizers are tested with has everything that a layout can have") {
  Covered covered;
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{80}); ++seed)
    note(random_case(seed), random_case(seed).layout(), covered);
  CHECK(covered.size() == 14);
  for (const auto& [what, times] : covered) CHECK_MESSAGE(times > 0, what);
}

TEST_CASE(
    "full_step: a NaN in one rank's gradient ends the step with the parameter's name, and no rank waits forever") {
  Case c;
  c.parameters = {{"good", {8, 8}}, {"attention.q", {8, 12}}};
  c.grid = Grid().dp(2).tp(2);
  const Layout layout = c.layout();
  const auto step = [&](TestRank& rank) {
    MuonState state{pack_buckets(layout, pointers(c.weights()), rank.place.tp), zero_shards(layout, rank.place.dp)};
    Buckets gradients = pack_buckets(layout, pointers(c.gradients(0, rank.place.dp)), rank.place.tp);
    if (rank.place.rank == 3) gradients[0][0][100] = std::numeric_limits<float>::quiet_NaN();
    full_step({layout, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
  };
  CHECK_THROWS_WITH_AS(run_ranks(c.grid, step), doctest::Contains("attention.q"), UsageError);
}

#if defined(__linux__)  // which does not follow a fork
TEST_CASE("Muon: the reference starts no thread, however many its ranks have: the process that compares forks again") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // threads of a forked process may hang
    MuonSettings settings;
    settings.newton_schulz.threads = 3;
    const auto reference = Muon(settings).reference({{"w", Matrix(300, 200)}});
    reference->step({{random_matrix({3, 0}, 300, 200)}});
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      threads += task.path().empty() ? 0 : 1;
    _exit(threads == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif
