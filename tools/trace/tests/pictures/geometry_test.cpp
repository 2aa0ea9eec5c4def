// Where everything stands in the picture of a trace: worked out here once more from the events alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/replay/drawn.hpp"
#include "tools/trace/tests/pictures/read_picture.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

TEST_CASE("trace_svg: kernels stand where their times are, ticks where their numbers say, and no word over another") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    struct Kernel {
      double begin, duration;
    };
    std::vector<std::vector<Kernel>> ranks(static_cast<std::size_t>(draw(1, 3)));
    std::vector<std::string> jsons;
    double longest = 0;
    const int scale = draw(1, 5000);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      TraceWriting writing(static_cast<int>(rank), static_cast<int>(ranks.size()));
      double now = 0;
      for (int k = draw(2, 6); k > 0; --k) {
        const double duration = draw(20, 90) * scale;
        writing.kernel(fmt::format("kernel_{}_{}", rank, ranks[rank].size()), 1e6 + now, duration);
        ranks[rank].push_back({now, duration});
        now += duration + draw(10, 40) * scale;
        longest = std::max(longest, ranks[rank].back().begin + duration);
      }
      jsons.push_back(writing.json());
    }
    const DrawnPage page(trace_svg(picture_of(jsons)));
    CHECK(page.complaint() == "");
    const std::vector<Drawn> grounds = page.of_class("mw-ground");
    REQUIRE(grounds.size() == ranks.size());
    const double left = grounds[0].x, width = grounds[0].width;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank > 0) CHECK(grounds[rank].y > grounds[rank - 1].bottom());
      for (std::size_t k = 0; k < ranks[rank].size(); ++k) {
        int found = 0;
        for (const Drawn& one : page.all)
          if (one.tag == "rect" && one.text.find(fmt::format("kernel_{}_{}", rank, k)) != std::string::npos) {
            ++found;
            const Kernel& kernel = ranks[rank][k];
            CHECK(std::abs(one.x - left - width * kernel.begin / longest) < 0.1);
            CHECK(std::abs(one.width - width * kernel.duration / longest) < 0.5);
            CHECK(one.y == grounds[rank].y);
            CHECK(one.height == grounds[rank].height);
          }
        CHECK(found == 1);
      }
    }
    // A tick per number over the lanes, from the first lane to the last, and not more of them than can be read.
    const std::vector<Drawn> ticks = page.of_class("mw-tick");
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 9);
    for (const Drawn& tick : ticks) {
      CHECK(tick.y < grounds.front().y);
      CHECK(tick.bottom() >= grounds.back().bottom());
      int numbers = 0;
      for (const Drawn& text : page.of_class("mw-middle"))
        if (std::abs(text.x + text.width / 2 - tick.x) < 0.1) {
          ++numbers;
          CHECK(std::abs(left + width * std::stod(text.text) * 1000 / longest - tick.x) < 0.1);
        }
      CHECK(numbers == 1);
    }
  }
}

TEST_CASE("trace_page: the table of collectives says each group with its ranks, as far as the trace says them") {
  const std::string page = trace_page(picture_of(
      {TraceWriting()
           .collective("ncclDevKernel_AllGather_RING", 0, 10, 64, "Float", "[0, 1, 2, 3]", 4)
           .raw(R"("ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_RING", "pid": 0, "tid": 7, "ts": 20,)"
                R"( "dur": 5, "args": {"stream": 7, "Collective name": "allreduce", "In msg nelems": 8,)"
                R"( "Out msg nelems": 8, "dtype": "Float", "Process Group Name": "of_tp", "Group size": 2})")
           .json()}));
  CHECK(page.find("[0, 1, 2, 3], 4 ranks") != std::string::npos);
  CHECK(page.find("of_tp, 2 ranks") != std::string::npos);
}
