#include "sim/lesson_22/crossing.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/lesson_22/array_steps.hpp"
#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

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
  CHECK(work_lines(host->noted()).size() == 1);
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
  CHECK(elements_of({1000, 24}, 2)(0, 0) == 500);
  CHECK(elements_of({1000, 24}, 2)(0, 1) == 6);
}

TEST_CASE("lesson 22 refuses pipeline stages, and Eigen's products on GPUs") {
  CHECK_NOTHROW(require_usable(Grid().dp(2), Products::eigen, false));
  CHECK_NOTHROW(require_usable(Grid().dp(2), Products::chain, true));
  CHECK_THROWS_AS(require_usable(Grid().dp(2), Products::eigen, true), UsageError);
  CHECK_THROWS_AS(require_usable(Grid().pp(2), Products::chain, false), UsageError);
}
