#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "sim/analyser/event.hpp"
#include "sim/analyser/rank_times.hpp"
#include "sim/analyser/trace_input.hpp"
#include "sim/recording/collective.hpp"

using namespace muonwalk::sim;

TEST_CASE("interval_set: the union counts every moment once") {
  CHECK(IntervalSet().length() == 0);
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {5, 15}, {20, 30}}).intervals() ==
        std::vector<Interval>{{0, 15}, {20, 30}});
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {2, 3}}).length() == 10);
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {10, 20}}).intervals() == std::vector<Interval>{{0, 20}});
}

TEST_CASE("interval_set: what has no length, or less, adds nothing and splits nothing") {
  CHECK(IntervalSet(std::vector<Interval>{{5, 5}}).empty());
  CHECK(IntervalSet(std::vector<Interval>{{7, 3}}).empty());
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {4, 4}}).intervals() == std::vector<Interval>{{0, 10}});
}

TEST_CASE("interval_set: the intersection holds the moments that are in both") {
  const IntervalSet a({{0, 10}, {20, 30}, {40, 50}}), b({{5, 25}, {30, 41}});
  CHECK(intersected(a, b).intervals() == std::vector<Interval>{{5, 10}, {20, 25}, {40, 41}});
  CHECK(intersected(a, IntervalSet()).empty());
}

TEST_CASE("interval_set: union and intersection equal counting moment by moment, for random intervals") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int kMoments = 60;
    std::vector<bool> in_a(kMoments), in_b(kMoments);
    const auto some = [&](std::vector<bool>& moments) {
      std::vector<Interval> intervals;
      for (unsigned i = random() % 12; i > 0; --i) {
        const std::int64_t begin = random() % kMoments, end = std::min<std::int64_t>(kMoments, begin + random() % 9);
        intervals.push_back({begin, end});
        for (std::int64_t at = begin; at < end; ++at) moments[static_cast<std::size_t>(at)] = true;
      }
      return IntervalSet(intervals);
    };
    const IntervalSet a = some(in_a), b = some(in_b);
    std::int64_t both = 0, any = 0;
    for (std::size_t at = 0; at < kMoments; ++at) {
      both += in_a[at] && in_b[at];
      any += in_a[at] || in_b[at];
    }
    CHECK(intersected(a, b).length() == both);
    CHECK(united(a, b).length() == any);
    CHECK(a.length() == std::count(in_a.begin(), in_a.end(), true));
  }
}

TEST_CASE("collective: the same one in all its spellings") {
  for (const char* name : {"_allgather_base", "all_gather", "allgather_into_tensor_coalesced", "gloo:all_gather",
                           "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"})
    CHECK(collective_of(name) == Collective::all_gather);
  CHECK(collective_of("_reduce_scatter_base") == Collective::reduce_scatter);
  CHECK(collective_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL") == Collective::all_reduce);
  CHECK(collective_of("ncclKernel_SendRecv") == Collective::send_recv);
  CHECK(collective_of("all_to_allv") == Collective::all_to_all);
  CHECK(collective_of("gather") == Collective::gather);
  CHECK(collective_of("reduce") == Collective::reduce);
  CHECK(collective_of("gemm") == Collective::other);
}

TEST_CASE("classify: every category of both dialects has its class, what talks is told by its name") {
  using D = TraceDialect;
  using C = EventClass;
  const struct {
    D dialect;
    const char *category, *name;
    C expected;
  } events[] = {{D::pytorch, "kernel", "gemm", C::computation},
                {D::pytorch, "kernel", "ncclDevKernel_AllReduce", C::communication},
                {D::pytorch, "kernel", "gloo:all_reduce", C::communication},
                {D::pytorch, "gpu_memcpy", "Memcpy DtoH", C::copy},
                {D::pytorch, "gpu_memset", "Memset", C::copy},
                {D::pytorch, "gpu_user_annotation", "nccl:all_reduce", C::device_range},
                {D::pytorch, "user_annotation", "ProfilerStep#1", C::host_range},
                {D::pytorch, "user_annotation", "gloo:all_reduce", C::host_collective},
                {D::pytorch, "cpu_op", "aten::mm", C::host_operator},
                {D::pytorch, "cpu_op", "gloo:all_reduce", C::host_collective},
                {D::pytorch, "cuda_runtime", "cudaLaunchKernel", C::other},
                {D::pytorch, "computation", "gemm", C::other},
                {D::muonwalk, "computation", "gemm", C::computation},
                {D::muonwalk, "communication", "all_reduce", C::communication},
                {D::muonwalk, "step", "optimizer step 1", C::step},
                {D::muonwalk, "phase", "momentum", C::host_range},
                {D::muonwalk, "message", "message", C::other},
                {D::muonwalk, "kernel", "gemm", C::other}};
  for (const auto& event : events) {
    CAPTURE(event.category);
    CAPTURE(event.name);
    CHECK(event_class_name(classify(event.dialect, event.category, event.name)) ==
          std::string(event_class_name(event.expected)));
  }
}

TEST_CASE("collective: bus factors are those of nccl-tests") {
  for (const int n : {1, 2, 4, 7, 64}) {
    const double shares = (n - 1.0) / n;
    const std::pair<Collective, double> factors[] = {{Collective::all_reduce, 2 * shares},
                                                     {Collective::all_gather, shares},
                                                     {Collective::reduce_scatter, shares},
                                                     {Collective::all_to_all, shares},
                                                     {Collective::gather, shares},
                                                     {Collective::scatter, shares},
                                                     {Collective::broadcast, 1},
                                                     {Collective::reduce, 1},
                                                     {Collective::send, 1},
                                                     {Collective::recv, 1},
                                                     {Collective::send_recv, 1},
                                                     {Collective::barrier, 0},
                                                     {Collective::other, 0}};
    for (const auto& [collective, factor] : factors) {
      CAPTURE(collective_text(collective));
      CHECK(bus_factor(collective, n) == doctest::Approx(factor));
    }
  }
}

TEST_CASE("collective: element types of PyTorch and of lessons have a size, others none") {
  CHECK(element_type_text("BFloat16") == "bfloat16");
  CHECK(element_type_size("bfloat16") == 2);
  CHECK(element_type_size(element_type_text("Float")) == 4);
  CHECK(element_type_size(element_type_text("bytes")) == 1);
  CHECK(element_type_text("Quaternion") == "Quaternion");
  const std::pair<const char*, int> sizes[] = {
      {"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"Byte", 1},
      {"Char", 1},  {"Short", 2},    {"Int", 4},  {"Long", 8},   {"Bool", 1},          {"ComplexFloat", 8}};
  for (const auto& [name, size] : sizes) {
    CAPTURE(name);
    CHECK(element_type_size(element_type_text(name)) == size);
  }
  CHECK(element_type_size("Quaternion") == 0);
}

namespace {

std::optional<std::int64_t> ns_of(const std::string& digits) {
  JsonScalar value;
  value.kind = JsonScalar::Kind::decimal;
  value.text = &digits;
  return value.microseconds_as_ns();
}

}  // namespace

TEST_CASE("json_scalar: microseconds become nanoseconds without losing the last digit") {
  CHECK(ns_of("5056285617232.305") == 5056285617232305);
  CHECK(ns_of("1759300074000000.001") == 1759300074000000001);
  CHECK(ns_of("0.0005") == 1);
  CHECK(ns_of("0.00049") == 0);
  CHECK(ns_of("-1.5") == -1500);
  CHECK(ns_of("1.5e3") == 1500000);
}

TEST_CASE("json_scalar: what is not a time is nothing") {
  CHECK_FALSE(ns_of("1e30").has_value());
  CHECK_FALSE(ns_of("99999999999999999999.5").has_value());
  JsonScalar text;
  text.kind = JsonScalar::Kind::text;
  const std::string digits = "12";
  text.text = &digits;
  CHECK_FALSE(text.microseconds_as_ns().has_value());
  CHECK(text.as_integer() == 12);
  CHECK_FALSE(JsonScalar().as_integer().has_value());
}
