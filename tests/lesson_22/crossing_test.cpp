#include "sim/lesson_22/crossing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/lesson_22/array_steps.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_threads.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::test;

TEST_CASE("what crosses between host and GPU is worked out a second time, from the layout alone") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Grid& grid : {Grid(), Grid().dp(2).tp(2), Grid().dp(3), Grid().dp(2).tp(4)})
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Place place = grid.place(rank);
        const Layout layout = plan_layout(small_parameters(), grid);
        const MuonSettings settings = muon_settings(precision, 1, Products::chain);
        const Index whole = layout.buffers[0].size, own = layout.shard_elements(place.dp);
        const Index gathered = precision == Precision::bf16 ? 2 : 4, norm = precision == Precision::bf16 ? 16 : 8;

        Crossed staged, resident;
        staged.to_device = 4 * whole + gathered * own + 4 * own;
        staged.to_host = 4 * own + gathered * whole + 4 * whole;
        resident.to_device = 4 * whole;
        for (const DistMeta& meta : owned_matrices(layout, place.dp)) {
          const Index full = meta.full_shape.size();
          if (grid.tp() > 1 && meta.tp_split_dim != SplitDim::none) {
            staged.to_device += gathered * full / grid.tp();
            staged.to_host += gathered * full;
          }
          staged.to_device += 4 * full;
          staged.to_host += 4 * full + norm;
          resident.to_host += norm;
        }

        const Plan plan = muon_plan(layout, place, settings);
        const PhaseCrossing sum = total(crossing(plan, settings));
        CAPTURE(rank);
        CHECK(sum.staged.to_device == staged.to_device);
        CHECK(sum.staged.to_host == staged.to_host);
        CHECK(sum.resident.to_device == resident.to_device);
        CHECK(sum.resident.to_host == resident.to_host);
        CHECK(sum.sent == ledger_of(plan).total().bytes_sent);
      }
}

TEST_CASE("the table has a line per phase that moves something, in the order of the step, and one for all") {
  const MuonSettings settings = muon_settings(Precision::fp32, 1, Products::chain);
  const Layout layout = plan_layout(small_parameters(), Grid().dp(2).tp(2));
  const std::string text = crossing_text(crossing(muon_plan(layout, Place(), settings), settings));
  std::size_t at = 0;
  for (const char* line : {"predicted, for rank 0", "\ngradients ", "\nreduce-scatter of gradients ", "\nDP gather ",
                           "\nTP gather ", "\nNewton–Schulz ", "\nall-gather of weights ", "\nall "}) {
    const std::size_t next = text.find(line, at);
    REQUIRE_MESSAGE(next != std::string::npos, line);
    at = next;
  }
  CHECK(text.find("momentum") == std::string::npos);
}

TEST_CASE("on the host nothing crosses, nothing is queued, and the phases are noted all the same") {
  const std::unique_ptr<Processor> host = host_processor();
  const Flat values = {1, 2, 3};
  Array array;
  host->watch("first", [&] { array = host->from_host(values); });
  host->watch("second", [&] { CHECK(host->on_host(array) == values); });
  REQUIRE(host->noted().size() == 2);
  CHECK(host->noted()[1].phase == "second");
  CHECK(crossed_in(host->noted()).to_device + crossed_in(host->noted()).to_host == 0);
  CHECK(work_lines(host->noted()) == std::vector<std::string>{"nothing: on the host, a call returns when it is done"});
  CHECK(host->memory_of(array.data()) == "the host's memory");
  host->forget();
  CHECK(host->noted().empty());
}

TEST_CASE("work is a line per phase, with both directions of the bytes and every queue by name") {
  PhaseWork work;
  work.phase = "all-gather of weights";
  work.queues = {"mine", "NCCL dp 0"};
  work.kernels = 1;
  work.copies = 2;
  work.library_calls = 3;
  work.host_waits = 4;
  work.to_device = 1000;
  work.to_host = 24;
  const std::vector<std::string> lines = work_lines({work});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "phase       kernels  copies  NCCL  waits  host–GPU    queued on");
  CHECK(lines[1] == "all-gather        1       2     3      4   1,024 B    mine, NCCL dp 0");
  PhaseWork none;
  none.phase = "momentum";
  const std::vector<std::string> two = work_lines({none, work});
  REQUIRE(two.size() == 3);
  CHECK(two[1] == "momentum          0       0     0      0       0 B");
  CHECK(two[2] == lines[1]);
  CHECK(elements_of({1000, 24}, 2)(0, 0) == 500);
  CHECK(elements_of({1000, 24}, 2)(0, 1) == 6);
}

TEST_CASE("lesson 22 refuses pipeline stages, and Eigen's products on GPUs") {
  CHECK_NOTHROW(require_usable(Grid().dp(2), Products::eigen, false));
  CHECK_NOTHROW(require_usable(Grid().dp(2), Products::chain, true));
  CHECK(usage_error([] { require_usable(Grid().dp(2), Products::eigen, true); }) ==
        "--products eigen has bits that no GPU has; leave it out, and host and GPU multiply with the chain");
  for (const bool on_gpus : {false, true})
    CHECK(usage_error([&] { require_usable(Grid().pp(2), Products::chain, on_gpus); }) ==
          "--pp 2 has no place in this lesson, where all ranks hold slices of all matrices; try lesson 09");
}

TEST_CASE("arrays on the host: the steps on them have the bits of the steps on matrices, on every rank") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Grid& grid : {Grid().dp(2).tp(2), Grid().dp(3).tp(4), Grid().dp(2)}) {
      const Layout layout =
          plan_layout({{"rows", {8, 3}, SplitDim::rows}, {"cols", {5, 8}, SplitDim::columns}, {"whole", {2, 7}}}, grid);
      const MuonSettings settings = muon_settings(precision, 1, Products::chain);
      std::vector<Matrix> full;
      std::vector<const Matrix*> pointers;
      for (std::size_t p = 0; p < 3; ++p) {
        const Shape shape = layout.meta(static_cast<int>(p)).full_shape;
        full.push_back(random_matrix({3, p}, shape.rows, shape.cols));
      }
      for (const Matrix& each : full) pointers.push_back(&each);
      std::vector<std::string> wrong(static_cast<std::size_t>(grid.size()));
      run_ranks(grid, [&](TestRank& rank) {
        std::string& complaint = wrong[static_cast<std::size_t>(rank.place.rank)];
        const std::unique_ptr<Processor> host = host_processor();
        const Flat bucket = pack_buckets(layout, pointers, rank.place.tp)[0][0];
        const Array held = host->from_host(bucket);
        const std::vector<NamedMatrix> slices = slices_on_host(*host, layout, held, rank.place.tp);
        std::vector<std::string> owned;
        for (const DistMeta& meta : owned_matrices(layout, rank.place.dp)) {
          owned.push_back(meta.name);
          const Matrix slice = view_parameter(bucket, 0, meta);
          if (!same_bits(slices[static_cast<std::size_t>(meta.parameter)].matrix, slice)) complaint += " slice";
          const Matrix whole = tp_gather(rank.tp, slice, meta.tp_split_dim, settings.gathered());
          const Array gathered = tp_gather(rank.tp, *host, held, meta, settings.gathered());
          if (host->on_host(gathered) != whole.flat()) complaint += " gather of " + meta.name;
          const Matrix shard = tp_shard(whole, meta.tp_split_dim, grid.tp(), rank.place.tp);
          const Array own = tp_shard(*host, gathered, whole.cols(), meta, rank.place.tp);
          if (host->on_host(own) != shard.flat()) complaint += " TP shard of " + meta.name;
          const Array mine = dp_shard(*host, own, layout, meta, rank.place.dp);
          if (host->on_host(mine) != dp_shard(shard, layout, meta, rank.place.dp)) complaint += " DP shard";
        }
        for (const DistMeta& meta : layout.buffers[0].parameters)
          if ((std::count(owned.begin(), owned.end(), meta.name) == 1) ==
              layout.owned_range(meta, rank.place.dp).empty())
            complaint += " owner of " + meta.name;
        const std::vector<Index> counts = layout.dp_counts(0, 0);
        const Range own = layout.dp_slice(0, 0, rank.place.dp);
        const Flat part(bucket.begin() + own.begin, bucket.begin() + own.end);
        const Array all = gather(rank.dp, *host, host->from_host(part), counts, settings.gathered());
        if (host->on_host(all) != dp_gather(rank.dp, part, counts, settings.gathered())) complaint += " DP gather";
      });
      for (const std::string& each : wrong) CHECK(each == "");
    }
}
