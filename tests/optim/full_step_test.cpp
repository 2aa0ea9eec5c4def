// The complete distributed step against the serial reference, bit for bit, over random layouts.
#include "src/optim/full_step.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/optim/against_serial.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer does not know libgomp's barriers, so under it the products stay on their rank's own thread.
constexpr bool kOneThread = true;
constexpr std::uint64_t kCases = 40;
#else
constexpr bool kOneThread = false;
constexpr std::uint64_t kCases = 300;
#endif

/// What the random cases covered; each of these must have happened.
struct Covered {
  int spans_three_ranks = 0;  ///< a matrix with elements on three or more DP ranks
  int owns_nothing = 0;       ///< a rank that owns no element of any parameter of some bucket
  int outside_bf16 = 0, bf16 = 0, one_thread = 0, two_threads = 0, nesterov = 0, plain = 0, decay = 0, no_decay = 0;
  int several_buckets = 0, several_buffers = 0, padding = 0, rows = 0, columns = 0, single_row_or_column = 0;
};

void note(const Case& c, const Layout& layout, Covered& covered) {
  for (const Buffer& buffer : layout.buffers) {
    covered.several_buckets += buffer.buckets.size() > 1;
    covered.padding += buffer.padding > 0;
    std::vector<std::set<int>> bucket_owners(buffer.buckets.size());
    for (const DistMeta& meta : buffer.parameters) {
      const std::vector<int> owners = layout.owners(meta);
      covered.spans_three_ranks += owners.size() >= 3;
      bucket_owners[meta.bucket_idx].insert(owners.begin(), owners.end());
      if (c.grid.tp() > 1) covered.rows += meta.tp_split_dim == SplitDim::rows;
      if (c.grid.tp() > 1) covered.columns += meta.tp_split_dim == SplitDim::columns;
      covered.single_row_or_column += meta.full_shape.rows == 1 || meta.full_shape.cols == 1;
    }
    for (const auto& owners : bucket_owners) covered.owns_nothing += static_cast<int>(owners.size()) < c.grid.dp();
  }
  covered.several_buffers += layout.buffers.size() > 1;
  ++(c.settings.newton_schulz.precision == Precision::bf16 ? covered.bf16 : covered.outside_bf16);
  ++(c.settings.newton_schulz.threads == 1 ? covered.one_thread : covered.two_threads);
  ++(c.settings.nesterov ? covered.nesterov : covered.plain);
  ++(c.settings.weight_decay != 0 ? covered.decay : covered.no_decay);
}

}  // namespace

TEST_CASE(
    "full_step: any grid, shapes, buckets and padding: every bit equals the serial reference, every byte is "
    "predicted") {
  Covered covered;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    Case c = random_case(seed);
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      c.settings.newton_schulz.precision = precision;
      c.options.ownership = Ownership::buckets;
      // Each layout runs once with one and once with two OpenMP threads per rank; the reference takes the other number.
      const bool two = !kOneThread && (precision == Precision::bf16) == (seed % 2 == 0);
      c.settings.newton_schulz.threads = two ? 2 : 1;
      note(c, c.layout(), covered);
      const auto serial = run_serial(c, kOneThread ? 1 : 3 - c.settings.newton_schulz.threads);
      // Every other case runs with one of the two other policies as well (and optimizer_test runs with all).
      const Ownership other =
          (precision == Precision::fp32) == (seed % 4 == 1) ? Ownership::buffer : Ownership::matrices;
      for (const Ownership ownership : {Ownership::buckets, other}) {
        if (ownership == other && seed % 2 == 0) continue;
        c.options.ownership = ownership;
        INFO(c.text());
        const Layout layout = c.layout();
        const auto ranks = run_distributed(c);
        REQUIRE(first_difference(c, ranks, serial) == "");
        for (int r = 0; r < c.grid.size(); ++r) {
          const Ledger predicted = ledger_of(muon_plan(layout, c.grid.place(r), c.settings));
          for (const Snapshot& snapshot : ranks[r]) REQUIRE(first_difference(predicted, snapshot.counted) == "");
        }
      }
    }
  }
  MESSAGE(covered.spans_three_ranks, " matrices spanned three or more DP ranks; in ", covered.owns_nothing,
          " buckets some rank owned nothing");
  REQUIRE(covered.spans_three_ranks > 0);
  REQUIRE(covered.owns_nothing > 0);
  for (const int count : {covered.outside_bf16, covered.bf16, covered.one_thread, covered.nesterov, covered.plain,
                          covered.decay, covered.no_decay, covered.several_buckets, covered.several_buffers,
                          covered.padding, covered.rows, covered.columns, covered.single_row_or_column}) {
    REQUIRE(count > 0);
  }
  REQUIRE((kOneThread || covered.two_threads > 0));
}

TEST_CASE("full_step: the number of OpenMP threads never changes a bit") {
  if (kOneThread) return;
  for (std::uint64_t seed = 1000; seed < 1010; ++seed) {
    Case c = random_case(seed);
    c.settings.newton_schulz.threads = 1;
    const auto one = run_distributed(c);
    c.settings.newton_schulz.threads = 2;
    INFO(c.text());
    CHECK(first_difference(c, run_distributed(c), run_serial(c, 1)) == "");
    CHECK(first_difference(c, one, run_serial(c, 2)) == "");
  }
}

TEST_CASE("full_step: four leaves of gradients on 1×1, 2×2, 4×1 and 1×4 ranks: identical bits") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Case c;
    c.seed = 11;
    c.parameters = {{"a", {12, 20}, SplitDim::rows},
                    {"b", {8, 36}, SplitDim::columns},
                    {"c", {7, 5}, SplitDim::none},
                    {"d", {40, 4}, SplitDim::columns, 1}};
    c.options.parameter_alignment = 7;
    c.settings.newton_schulz.precision = precision;
    constexpr int kLeaves = 4, kSteps = 3;

    SerialMuon serial(c.weights(), c.settings);
    std::vector<std::vector<NamedMatrix>> expected;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::vector<Matrix>> leaves;
      for (int leaf = 0; leaf < kLeaves; ++leaf) leaves.push_back(c.gradients(step, leaf));
      serial.step(leaves);
      expected.push_back(serial.parameters());
    }

    for (const Grid& grid : {Grid(), Grid().dp(2).tp(2), Grid().dp(4), Grid().tp(4)}) {
      INFO(grid.text());
      c.grid = grid;
      const Layout layout = c.layout();
      std::vector<std::vector<Buckets>> weights(static_cast<std::size_t>(grid.size()));
      run_ranks(grid, [&](TestRank& rank) {
        MuonState state = initial_state(layout, pointers(c.weights()), rank.place);
        const int leaves = kLeaves / grid.dp();
        for (int step = 0; step < kSteps; ++step) {
          // The rank adds the gradients of its own micro-batches first, as a tree too.
          std::vector<std::vector<Matrix>> mine;
          for (int i = 0; i < leaves; ++i) mine.push_back(c.gradients(step, rank.place.dp * leaves + i));
          std::vector<Matrix> sums;
          for (std::size_t p = 0; p < c.parameters.size(); ++p) {
            std::vector<const float*> parts;
            for (const auto& leaf : mine) parts.push_back(leaf[p].data());
            sums.emplace_back(c.parameters[p].shape.rows, c.parameters[p].shape.cols);
            tree_sum(parts, sums.back().size(), sums.back().data());
          }
          const Buckets gradients = pack_buckets(layout, pointers(sums), rank.place.tp);
          full_step({layout, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
          weights[rank.place.rank].push_back(state.weights);
        }
      });
      for (int r = 0; r < grid.size(); ++r) {
        for (int step = 0; step < kSteps; ++step) {
          const Buckets right = pack_buckets(layout, pointers(expected[step]), grid.place(r).tp);
          for (std::size_t b = 0; b < right.size(); ++b) {
            for (std::size_t k = 0; k < right[b].size(); ++k) {
              const Flat& held = weights[r][step][b][k];
              REQUIRE(held.size() == right[b][k].size());
              CHECK(std::memcmp(held.data(), right[b][k].data(), held.size() * sizeof(float)) == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("full_step: announces its phases in the order of the journey") {
  const Layout layout = plan_layout({{"a", {4, 4}, SplitDim::rows}, {"b", {4, 6}}}, Grid());
  std::vector<Phase> seen;
  run_ranks(Grid(), [&](TestRank& rank) {
    const Matrix a(4, 4), b(4, 6);
    MuonState state = initial_state(layout, {&a, &b}, rank.place);
    const auto observer = [&](Phase phase, const DistMeta*) { seen.push_back(phase); };
    full_step({layout, rank.place, rank.dp, rank.tp, observer}, {}, state.weights, state);
  });
  const std::vector<Phase> journey = {phases::tp_gather, phases::orthogonalize, phases::tp_shard, phases::dp_shard,
                                      phases::apply};
  std::vector<Phase> expected = {phases::reduce_gradients, phases::momentum, phases::dp_gather};
  for (int parameter = 0; parameter < 2; ++parameter) expected.insert(expected.end(), journey.begin(), journey.end());
  expected.push_back(phases::gather_weights);
  CHECK(seen == expected);
}

TEST_CASE(
    "full_step: a NaN in one rank's gradient ends the step with the parameter's name, and no rank waits forever") {
  Case c;
  c.parameters = {{"good", {8, 8}}, {"attention.q", {8, 12}}};
  c.grid = Grid().dp(2).tp(2);
  Sabotage sabotage;
  sabotage.gradients = [](int, const Place& place, Buckets& gradients) {
    if (place.rank == 3) gradients[0][0][100] = std::numeric_limits<float>::quiet_NaN();
  };
  CHECK_THROWS_WITH_AS(run_distributed(c, sabotage), doctest::Contains("attention.q"), UsageError);
}

TEST_CASE("full_step: buckets or groups that do not fit the layout are refused before anything is sent") {
  const Layout layout = plan_layout({{"a", {4, 4}}}, Grid().dp(2));
  const Layout other = plan_layout({{"a", {4, 6}}}, Grid().dp(2));
  const Layout tp_layout = plan_layout({{"a", {4, 4}}}, Grid().tp(2));
  const Matrix a(4, 4), b(4, 6);
  const auto step = [&](const Layout& handed, const Buckets& gradients) {
    run_ranks(Grid().dp(2), [&](TestRank& rank) {
      MuonState state = initial_state(layout, {&a}, rank.place);
      full_step({handed, rank.place, rank.dp, rank.tp}, {}, gradients, state);
    });
  };
  const Buckets right = pack_buckets(layout, {&a}, 0);
  CHECK_NOTHROW(step(layout, right));
  const auto refusal = [&](const Layout& handed, const Buckets& gradients) -> std::string {
    try {
      step(handed, gradients);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "it was taken";
  };
  const std::string remedy = "; pack them with pack_buckets or initial_state.";
  CHECK(refusal(layout, pack_buckets(other, {&b}, 0)) ==
        "full_step was given gradients of 24 elements for bucket 0 of buffer 0, but the layout says 16" + remedy);
  CHECK(refusal(layout, {}) == "full_step was given gradients for 0 buffers, but the layout has 1" + remedy);
  CHECK(refusal(layout, Buckets(1)) ==
        "full_step was given gradients for 0 buckets of buffer 0, but the layout has 1" + remedy);
  // Whichever of the two ranks says so first.
  const auto of_group = [&](const Layout& handed, const std::string& first, const std::string& second) {
    const std::string sentence = refusal(handed, right);
    CAPTURE(sentence);
    CHECK((sentence == first || sentence == second));
  };
  const std::string own = "; hand it the rank's own ";
  of_group(
      tp_layout,
      "full_step was given rank 0 of a dp group of 2, but in the layout's grid it is dp 0 of 1" + own + "dp group.",
      "full_step was given rank 1 of a dp group of 2, but in the layout's grid it is dp 1 of 1" + own + "dp group.");
  const std::string of_tp =
      "full_step was given rank 0 of a tp group of 1, but in the layout's grid it is tp 0 of 2" + own + "tp group.";
  of_group(plan_layout({{"a", {4, 4}}}, Grid().dp(2).tp(2)), of_tp, of_tp);
}

#if defined(__linux__) && !defined(__SANITIZE_THREAD__)  // which does not follow a fork
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
