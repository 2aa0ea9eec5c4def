// The published claims on traces made by hand, in which host, device and kernels all have other times: what is
// corrected is known here also where the published traces are not.

#include <doctest/doctest.h>

#include "sim/analyser/published.hpp"
#include "sim/analyser/reader.hpp"
#include "tests/analyser/trace_writing.hpp"

using namespace muonwalk::sim;
using muonwalk::testing::TraceWriting;

namespace {

TraceFile read(const TraceWriting& trace) { return read_trace_text("by hand", trace.json()); }

TraceFile muon() {
  return read(TraceWriting(0, 4)
                  .event("user_annotation", "ProfilerStep#1", 0, 200)
                  .event("user_annotation", "ProfilerStep#2", 200, 200)
                  .event("user_annotation", "Muon_Full_Training_Step", 0, 400)
                  .event("user_annotation", "FWD_BWD", 0, 90)
                  .event("user_annotation", "Muon_Step", 90, 4)
                  .event("user_annotation", "Optimizer.step#Muon.step", 91, 3)
                  .event("cpu_op", "c10d::_allgather_base_", 92, 1)
                  .event("gpu_user_annotation", "FWD_BWD", 100, 100)
                  .kernel("gemm", 110, 40)
                  .event("gpu_user_annotation", "Optimizer.step#Muon.step", 200, 300)
                  .event("gpu_user_annotation", "nccl:_all_gather_base", 249, 82)
                  .collective("_allgather_base", 250, 80, 8, "BFloat16", "[0, 1]", 2)
                  .kernel("gemm", 330, 170));
}

TraceFile adamw() {
  TraceWriting trace(0, 4);
  for (int step = 0; step < 3; ++step)
    trace.event("user_annotation", "ProfilerStep#" + std::to_string(step), 100 * step, 100);
  return read(trace.event("user_annotation", "AdamW_Full_Training_Step", 0, 250)
                  .event("user_annotation", "FWD_BWD", 0, 70)
                  .event("user_annotation", "AdamW_Step", 70, 5)
                  .event("gpu_user_annotation", "FWD_BWD", 0, 60)
                  .kernel("gemm", 0, 50)
                  .event("cpu_op", "c10d::allreduce_", 55, 2)
                  .event("gpu_user_annotation", "nccl:all_reduce", 60, 41)
                  .collective("allreduce", 60, 40, 8, "Float", "[0, 1]", 2)
                  .collective("allreduce", 110, 50, 8, "Float", "[0, 1]", 2)
                  .event("gpu_user_annotation", "Optimizer.step#AdamW.step", 160, 20)
                  .kernel("adam", 165, 15));
}

TraceFile muon_async() {
  return read(TraceWriting(0, 4)
                  .kernel("gemm", 0, 100)
                  .event("gpu_user_annotation", "nccl:_all_gather_base", 50, 120)
                  .collective("_allgather_base", 50, 120, 8, "BFloat16", "[0, 1]", 2)
                  .kernel("gemm", 170, 30));
}

TraceFile adamw_async() {
  return read(TraceWriting(0, 4)
                  .event("gpu_user_annotation", "nccl:all_reduce", 0, 46)
                  .collective("allreduce", 0, 45, 8, "Float", "[0, 1]", 2)
                  .kernel("gemm", 36, 64));
}

// The corrected figures of a claim, in their order.
std::vector<double> corrected(const PublishedClaim& claim) {
  std::vector<double> figures;
  for (const PublishedFigure& figure : claim.figures) figures.push_back(figure.corrected);
  return figures;
}

void expect_near(const PublishedClaim& claim, const std::vector<double>& expected) {
  CAPTURE(claim.title);
  const std::vector<double> found = corrected(claim);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(claim.figures[i].what);
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("published, by hand: each corrected figure is of kernels, of the device, or of one step, as its claim says") {
  const std::vector<PublishedClaim> claims = published_claims({muon(), adamw(), muon_async(), adamw_async()});
  REQUIRE(claims.size() == 5);
  expect_near(claims[0], {0.080, 1, 0.090, 2, 0.080 / 0.090});
  expect_near(claims[1], {0.080 / 2, 0.090 / 3});
  expect_near(claims[2], {0.300, 0.390, 100 * 0.300 / 0.390, 0.020, 0.180, 100 * 0.020 / 0.180});
  expect_near(claims[3], {0.040, 0.050});
  expect_near(claims[4], {0.120, 0.045, 0.120 / 0.080, 0.045 / 0.090, 0.200, 0.100, 0.200 / 0.390, 0.100 / 0.180,
                          100 * 50.0 / 120, 100 * 9.0 / 45});
  CHECK(published_claims({muon(), adamw()}).size() == 4);
}

TEST_CASE(
    "published, by hand: the recounted figures count as it was published: every event of a name, whatever its class") {
  const std::vector<PublishedClaim> claims = published_claims({muon(), adamw()});
  const auto recounted = [&](std::size_t claim, std::size_t figure) {
    return *claims[claim].figures[figure].recounted;
  };
  CHECK(recounted(0, 0) == doctest::Approx(0.163));  // an operator, a device range and a kernel
  CHECK(recounted(0, 1) == 3);
  CHECK(recounted(2, 0) == doctest::Approx(0.004));
  CHECK(recounted(2, 1) == doctest::Approx(0.400));
  CHECK(recounted(2, 2) == doctest::Approx(1));
  CHECK(recounted(3, 0) == doctest::Approx(0.095));  // half of host and device together
  CHECK_FALSE(claims[0].figures[0].found_again());
  CHECK(found_again(claims).found == 0);
}
