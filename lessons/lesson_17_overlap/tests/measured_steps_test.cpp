// What lesson 17 reads out of its own trace, for a run that was made by hand.
#include <doctest/doctest.h>

#include "lessons/lesson_17_overlap/overlap_tables.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

Span span_of(SpanKind kind, int name, std::int64_t begin, std::int64_t end) {
  Span span;
  span.kind = kind;
  span.name = name;
  span.begin_ns = begin;
  span.end_ns = end;
  return span;
}

Span call_at(CollectiveKind kind, std::int64_t begin, std::int64_t end) {
  Span span = span_of(SpanKind::call, -1, begin, end);
  span.collective = kind;
  return span;
}

Span received(std::int64_t begin, std::int64_t end, CollectiveKind kind = CollectiveKind::send) {
  Span span = span_of(SpanKind::received, -1, begin, end);
  span.collective = kind;
  return span;
}

// One rank: a step "a way" with a part from 1,000 to 2,000, in which two messages are under way.
RankTrace rank_of(std::int64_t shift) {
  RankTrace rank;
  rank.names = {"another", "a way", "post", "work", "end"};
  rank.spans = {span_of(SpanKind::step, 0, 0, 500),
                span_of(SpanKind::phase, 2, 100, 300),  // of another step, which has no end
                span_of(SpanKind::step, 1, 800, 3000),
                call_at(CollectiveKind::reduce_scatter, 850, 900),  // before the part
                received(850, 900, CollectiveKind::reduce_scatter),
                span_of(SpanKind::phase, 2, 1000, 1100),
                call_at(CollectiveKind::recv, 1010, 1020),
                span_of(SpanKind::phase, 2, 1100, 1200),
                call_at(CollectiveKind::recv, 1110, 1120),
                span_of(SpanKind::phase, 3, 1200, 1900),
                received(1300, 1350, CollectiveKind::all_gather),  // of a collective, which is not a posted message
                call_at(CollectiveKind::wait, 1700, 1800),
                received(1012, 1800),
                call_at(CollectiveKind::wait, 1850, 1900),
                received(1112, 1900),
                span_of(SpanKind::phase, 4, 2000, 2900),
                call_at(CollectiveKind::all_gather, 2100, 2800)};
  for (Span& span : rank.spans)
    if (span.begin_ns >= 800) {
      span.begin_ns += shift;
      span.end_ns += shift;
    }
  return rank;
}

}  // namespace

TEST_CASE("measured ways: span, computing, calls and messages under way, of the part between two phases") {
  RunTrace run;
  run.ranks = {rank_of(0), rank_of(50)};
  const std::vector<MeasuredStep> ways = measured_steps(run, "post", "end");
  REQUIRE(ways.size() == 1);
  CHECK(ways[0].title == "a way");
  CHECK(ways[0].span_ns == 1050);  // from the first rank's 1,000 to the second one's 2,050
  CHECK(ways[0].in_calls_ns == 10 + 10 + 100 + 50);
  CHECK(ways[0].computing_ns == 1000 - 170);
  CHECK(ways[0].under_way_ns == (1800 - 1012) + (1900 - 1112));
  // Under way from 1,012 to 1,900, of which 8, 10, 100 and 50 were in calls.
  CHECK(ways[0].hidden == near((888.0 - 168) / 888, 1e-5));
  MeasuredStep way;
  way.title = "a way";
  way.span_ns = 2500000, way.computing_ns = 1000000, way.in_calls_ns = 500000, way.under_way_ns = 50000;
  way.hidden = 0.25;
  CHECK(measured_table({way}) ==
        "measured here, ms  span  computing  in calls  under way, added up  hidden\n"
        "  a way            2.50       1.00      0.50               0.0500  25.0 %");
  CHECK(measured_steps(run, "no such phase", "end").empty());
}
