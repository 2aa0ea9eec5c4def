// What lesson 22 says of the bytes that cross between host and GPU, and its tables.

#include <doctest/doctest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lessons/lesson_22_nccl/tables.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// The three numbers of a line of the lesson's last table: "all  55,808 B  253,472 B  24,096 B".
std::vector<Index> numbers_of(const std::string& screen, const std::string& line) {
  const std::size_t table = screen.find("predicted, for rank 0"), begin = screen.find('\n' + line + "  ", table) + 1;
  REQUIRE(table != std::string::npos);
  REQUIRE(begin > table);
  std::string text = screen.substr(begin + line.size(), screen.find('\n', begin) - begin - line.size());
  for (std::size_t at; (at = text.find_first_of(",B")) != std::string::npos;) text.erase(at, 1);
  std::istringstream in(text);
  std::vector<Index> numbers(3);
  for (Index& number : numbers) in >> number;
  REQUIRE(in);
  return numbers;
}

}  // namespace

TEST_CASE("what crosses between host and GPU is worked out a second time, from the layout alone") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Grid& grid : {Grid(), Grid().dp(2).tp(2), Grid().dp(3), Grid().dp(2).tp(4)}) {
      const Layout layout = plan_layout(small_parameters(), grid);
      const Index whole = layout.buffers[0].size, own = layout.shard_elements(0),
                  gathered = element_size(precision == Precision::bf16 ? ElementType::bfloat16 : ElementType::float32);
      const Index norm = precision == Precision::bf16 ? 16 : 8;
      Index staged = 8 * whole + 8 * own + gathered * (whole + own), resident = 4 * whole;
      for (const DistMeta& meta : layout.buffers[0].parameters) {
        if (layout.owned_range(meta, 0).empty()) continue;
        const Index full = meta.full_shape.size();
        if (grid.tp() > 1 && meta.tp_split_dim != SplitDim::none) staged += gathered * (full / grid.tp() + full);
        staged += 8 * full + norm;
        resident += norm;
      }
      const Plan plan = muon_plan(layout, Place(), muon_settings(precision, 1, Products::chain));

      const Outcome lesson = run_program({LESSON, "--dp", std::to_string(grid.dp()), "--tp", std::to_string(grid.tp()),
                                          "--precision", precision == Precision::bf16 ? "bf16" : "fp32"},
                                         60);
      CAPTURE(grid.text());
      CAPTURE(lesson.err);
      CHECK(lesson.exit_code == 0);
      CHECK(numbers_of(lesson.out, "all") == std::vector<Index>{ledger_of(plan).total().bytes_sent, staged, resident});
      CHECK(numbers_of(lesson.out, "gradients") == std::vector<Index>{0, 0, 4 * whole});
      CHECK(numbers_of(lesson.out, "Newton–Schulz")[0] == 0);
      CHECK(lesson.out.find("\nmomentum ") == std::string::npos);  // it moves nothing
    }
}

TEST_CASE("entries of a phase are added up where it began first, and all of them in the sum") {
  PhaseCrossing first{"first", 1, {2, 3}, {4, 5}}, second{"second", 10, {20, 30}, {40, 50}};
  const std::vector<PhaseCrossing> phases = summed_by_phase({first, second, first});
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].phase == "first");
  CHECK(phases[0].sent == 2);
  CHECK(phases[0].staged.to_host == 6);
  CHECK(phases[1].resident.to_device == 40);
  const PhaseCrossing sum = total(phases);
  CHECK(sum.sent == 12);
  CHECK(sum.staged.to_device == 24);
  CHECK(sum.resident.to_host == 60);
  CHECK(elements_of({1000, 24}, 2)(0, 0) == 500);
  CHECK(elements_of({1000, 24}, 2)(0, 1) == 6);
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
  PhaseWork work{"all-gather of weights", {"mine", "NCCL dp 0"}, 1, 2, 3, 4, 1000, 24}, none;
  none.phase = "momentum";
  const std::vector<std::string> lines = work_lines({none, work});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "phase       kernels  copies  NCCL  waits  host–GPU    queued on");
  CHECK(lines[1] == "momentum          0       0     0      0       0 B");
  CHECK(lines[2] == "all-gather        1       2     3      4   1,024 B    mine, NCCL dp 0");
}

TEST_CASE("lesson 22 refuses pipeline stages before any rank starts") {
  muonwalk::testing::expect_refused({LESSON}, {{{"--pp", "2"}, "--pp 2 has no place in this lesson"}});
}
