#include "src/layout/parameter.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

TEST_CASE("tp_shape: TP cuts the split dimension into equal parts and leaves the other") {
  CHECK(tp_shape({"w", {100, 60}, SplitDim::rows, 0}, 4) == Shape{25, 60});
  CHECK(tp_shape({"w", {100, 60}, SplitDim::columns, 0}, 4) == Shape{100, 15});
  CHECK(tp_shape({"w", {101, 61}, SplitDim::none, 0}, 4) == Shape{101, 61});
  CHECK(tp_shape({"w", {101, 61}, SplitDim::rows, 0}, 1) == Shape{101, 61});
}

TEST_CASE("tp_shape: a TP size that does not divide is refused with the nearest that would work") {
  const auto refusal = [](Shape shape, SplitDim dim, int tp) {
    return usage_error([&] { tp_shape({"w0", shape, dim, 0}, tp); });
  };
  CHECK(refusal({100, 7}, SplitDim::rows, 3) ==
        "--tp 3 does not divide the 100 rows of parameter \"w0\"; try --tp 1, 2, 4 or 5");
  CHECK(refusal({7, 324}, SplitDim::columns, 5) ==
        "--tp 5 does not divide the 324 columns of parameter \"w0\"; try --tp 2, 3, 4 or 6");
  CHECK(refusal({101, 7}, SplitDim::rows, 2) == "--tp 2 does not divide the 101 rows of parameter \"w0\"; try --tp 1");
  CHECK(refusal({22, 7}, SplitDim::rows, 4) ==
        "--tp 4 does not divide the 22 rows of parameter \"w0\"; try --tp 1, 2, 11 or 22");
  CHECK(refusal({26, 1}, SplitDim::columns, 2) ==
        "--tp 2 does not divide the 1 column of parameter \"w0\"; try --tp 1");
  // Suggestions stay small, whatever was asked.
  CHECK(refusal({128, 1}, SplitDim::rows, 1000) ==
        "--tp 1000 does not divide the 128 rows of parameter \"w0\"; try --tp 8, 16, 32 or 64");
  CHECK(refusal({1, 9}, SplitDim::rows, 2) == "--tp 2 does not divide the 1 row of parameter \"w0\"; try --tp 1");
  // Of two that are equally far from what was asked, the smaller: of 4 and 12 for 8.
  CHECK(refusal({60, 7}, SplitDim::rows, 8) ==
        "--tp 8 does not divide the 60 rows of parameter \"w0\"; try --tp 4, 5, 6 or 10");
  CHECK(refusal({7, 130}, SplitDim::columns, 64) ==
        "--tp 64 does not divide the 130 columns of parameter \"w0\"; try --tp 5, 10, 13 or 26");
  CHECK(refusal({3, 3}, SplitDim::none, 0) ==
        "--tp 0 is less than 1, but a TP group has at least one rank; try --tp 1");
  CHECK(refusal({128, 1}, SplitDim::rows, 0) ==
        "--tp 0 is less than 1, but a TP group has at least one rank; try --tp 1");
}

TEST_CASE("tp_range: the ranges of all TP ranks follow each other and cover the dimension") {
  for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
    for (int tp = 1; tp <= 6; ++tp) {
      const Parameter parameter{"w", {tp * 3, tp * 5}, dim, 0};
      Index next = 0;
      for (int rank = 0; rank < tp; ++rank) {
        const Range range = tp_range(parameter, tp, rank);
        CHECK(range.begin == next);
        CHECK(range.size() == (dim == SplitDim::rows ? 3 : 5));
        next = range.end;
      }
      CHECK(next == (dim == SplitDim::rows ? parameter.shape.rows : parameter.shape.cols));
    }
  }
  const Parameter whole{"w", {7, 5}, SplitDim::none, 0};
  CHECK(tp_range(whole, 3, 2) == Range{0, 7});
  CHECK_THROWS_WITH_AS(tp_range(whole, 3, 3), "TP rank 3 is not in 0..2", std::out_of_range);
  CHECK_THROWS_WITH_AS(tp_range(whole, 3, -1), "TP rank -1 is not in 0..2", std::out_of_range);
  CHECK(usage_error([] {
          tp_range({"w", {9, 10}, SplitDim::columns}, 4, 0);
        }) == "--tp 4 does not divide the 10 columns of parameter \"w\"; try --tp 1, 2, 5 or 10");
  CHECK(usage_error([&] { tp_range(whole, -3, 0); }) ==
        "--tp -3 is less than 1, but a TP group has at least one rank; try --tp 1");
}

TEST_CASE("intersection: what two ranges share, element by element") {
  for (Index a = 0; a < 5; ++a) {
    for (Index b = a; b <= 5; ++b) {
      for (Index c = 0; c < 5; ++c) {
        for (Index d = c; d <= 5; ++d) {
          const Range shared = intersection({a, b}, {c, d});
          for (Index i = 0; i < 5; ++i) {
            const bool in_both = a <= i && i < b && c <= i && i < d;
            CHECK((shared.begin <= i && i < shared.end) == in_both);
          }
          if (shared.empty()) CHECK(shared == Range{a, a});
        }
      }
    }
  }
}

TEST_CASE("range_text: the last element is included, as a reader counts") {
  CHECK(range_text({0, 12}) == "0–11");
  CHECK(range_text({7, 8}) == "7");
  CHECK(range_text({7, 7}) == "nothing");
  CHECK(range_text({7, 3}) == "nothing");
}

TEST_CASE("split_name: these words and values, and no others") {
  CHECK(std::string(split_name(SplitDim::none)) == "none");
  CHECK(std::string(split_name(SplitDim::rows)) == "rows");
  CHECK(std::string(split_name(SplitDim::columns)) == "columns");
  CHECK(static_cast<int>(SplitDim::none) == -1);
  CHECK(static_cast<int>(SplitDim::rows) == 0);
  CHECK(static_cast<int>(SplitDim::columns) == 1);
  CHECK_THROWS_WITH_AS(split_name(static_cast<SplitDim>(2)), "unknown split dimension", std::invalid_argument);
}
