#include "sim/analyser/pictures/span_parts.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

TEST_CASE("span_parts: any trace: each microsecond of the span is in one part, as counting them one by one says") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int kMicroseconds = 300;
    bool computing[kMicroseconds] = {}, communicating[kMicroseconds] = {}, copying[kMicroseconds] = {};
    int first = kMicroseconds, last = 0;
    TraceWriting trace;
    for (int i = 0; i < 25; ++i) {
      const int begin = static_cast<int>(random() % 250), duration = static_cast<int>(1 + random() % 40);
      const int kind = static_cast<int>(random() % 3);
      if (kind == 0) trace.kernel("gemm", begin, duration, static_cast<int>(random() % 3));
      if (kind == 1) trace.collective("allreduce", begin, duration, 8, "Float", "[0, 1]", 2);
      if (kind == 2) trace.event("gpu_memcpy", "Memcpy DtoD", begin, duration);
      for (int at = begin; at < begin + duration; ++at)
        (kind == 0 ? computing : kind == 1 ? communicating : copying)[at] = true;
      first = std::min(first, begin);
      last = std::max(last, begin + duration);
    }
    std::array<std::int64_t, kSpanParts> counted{};
    for (int at = first; at < last; ++at) {
      const SpanPart part = computing[at] && communicating[at] ? SpanPart::overlap
                            : computing[at]                    ? SpanPart::computation_alone
                            : communicating[at]                ? SpanPart::communication_alone
                            : copying[at]                      ? SpanPart::copies_alone
                                                               : SpanPart::idle;
      counted[static_cast<std::size_t>(part)] += 1000;
    }
    const Summary summary = summarize(read_jsons({trace.json()}));
    CHECK(summary.ranks[0].span_ns == (last - first) * 1000);
    CHECK(span_parts(summary.ranks[0]) == counted);
  }
}

TEST_CASE("span_part_figures: milliseconds and share; no share of nothing") {
  CHECK(span_part_figures(12'340'000, 24'680'000) == "12.34 ms, 50.0 %");
  CHECK(span_part_figures(0, 0) == "0.00 ms");
}
