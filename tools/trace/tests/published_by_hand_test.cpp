// The published claims on traces made by hand, in which host, device and kernels all have other times: what is
// corrected is known here also where the published traces are not.

#include "tools/trace/tests/published_by_hand.hpp"

#include <doctest/doctest.h>

#include "tests/near.hpp"
#include "tools/trace/published.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

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
    CHECK(found[i] == near(expected[i], 1e-9));
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
  CHECK(recounted(0, 0) == near(0.163));  // an operator, a device range and a kernel
  CHECK(recounted(0, 1) == 3);
  CHECK(recounted(2, 0) == near(0.004));
  CHECK(recounted(2, 1) == near(0.400));
  CHECK(recounted(2, 2) == near(1));
  CHECK(recounted(3, 0) == near(0.095));  // half of host and device together
  CHECK_FALSE(claims[0].figures[0].found_again());
  CHECK(found_again(claims).found == 0);
}

TEST_CASE("published, by hand: a name is found however it is spelled, and a part of it is enough") {
  TraceWriting trace;
  const std::vector<std::string> names = {"all_gather", "all-gather", "AllGather",  "ncclDevKernel_ALLGATHER_x",
                                          "all.gather", "all gather", "gather_all", "allreduce"};
  for (std::size_t i = 0; i < names.size(); ++i) trace.kernel(names[i], 10 * static_cast<int>(i), 1 << i);
  const TraceFile file = read_trace_text("made up", trace.json());
  for (const char* text : {"all_gather", "AllGather", "all-gather", "allgather"}) {
    CAPTURE(text);
    for (const NameMatch& match : {match_names(file, text), match_names(file, text, 0)}) {
      CHECK(match.all.events == 4);
      CHECK(match.all.total_ns == 15 * 1000);
    }
  }
  CHECK(match_names(file, "gather").all.events == 7);
  CHECK(match_names(file, "all_gather", 1).all.events == 0);
}

TEST_CASE("published, by hand: of traces without steps, figures per step are those of all, and what is missing is 0") {
  const std::vector<PublishedClaim> claims = published_claims({muon_async(), adamw_async()});
  expect_near(claims[1], {0.120, 0.045});
  CHECK(claims[1].differs == "The table's figures are the sum of 1 steps, and not one step.");
  expect_near(claims[2], {0, 0.200, 0, 0, 0.100, 0});
  CHECK(claims[2].figures[2].recounted == 0);
  CHECK(claims[2].differs.find("Muon's range on the device holds none, AdamW's none.") != std::string::npos);
  expect_near(claims[3], {0, 0});
  const TraceFile nothing = read_by_hand(TraceWriting(0, 4).kernel("gemm", 0, 10));
  const std::vector<PublishedClaim> none = published_claims({nothing, nothing, nothing, nothing});
  expect_near(none[0], {0, 0, 0, 0, 0});
  expect_near(none[4], {0, 0, 0, 0, 0.010, 0.010, 1, 1, 0, 0});
  CHECK(none[0].differs.find("the ratio compares unknown with unknown, ") != std::string::npos);
  CHECK(none[0].evidence[1] == "AdamW: 0 events, 0.00 ms");
}

TEST_CASE("published, by hand: the element types that are compared are all there are, each once") {
  const auto with = [](const std::vector<const char*>& types) {
    TraceWriting trace(0, 4);
    for (std::size_t i = 0; i < types.size(); ++i)
      trace.collective("allreduce", 10 * static_cast<int>(i), 5, 8, types[i], "[0, 1]", 2);
    return read_by_hand(trace);
  };
  const std::vector<PublishedClaim> claims =
      published_claims({with({"Float", "BFloat16", "Float", ""}), with({"Half", "Half"})});
  CHECK(claims[0].differs.find("the ratio compares float32, bfloat16 with float16, gathers") != std::string::npos);
}

TEST_CASE(
    "published, by hand: a figure is found again when it is the published one in the digits that were published") {
  const auto found = [](std::optional<double> published, std::optional<double> recounted, int decimals) {
    return PublishedFigure{"", "", published, recounted, decimals, 0, 0}.found_again();
  };
  CHECK(found(139.53, 139.5344, 2));
  CHECK(found(139.53, 139.5256, 2));
  CHECK_FALSE(found(139.53, 139.5356, 2));
  CHECK_FALSE(found(139.53, 139.5244, 2));
  CHECK(found(271, 271.4, 0));
  CHECK_FALSE(found(271, 271.6, 0));
  CHECK_FALSE(found(1.1, std::nullopt, 1));
  CHECK(found(std::nullopt, 4, 1));
  CHECK(found(std::nullopt, std::nullopt, 1));
}
