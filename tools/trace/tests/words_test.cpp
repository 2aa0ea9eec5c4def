// The words of the dialects: categories and why they are left out, names of the optimizer, numbers as texts.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/replay/collective.hpp"
#include "tests/near.hpp"
#include "tools/trace/event.hpp"
#include "tools/trace/raw_trace.hpp"
#include "tools/trace/trace_input.hpp"

using namespace muonwalk::sim;

TEST_CASE("words: why a category is left out is said in the words of its dialect") {
  using D = TraceDialect;
  const std::string unknown = ": no class of events that is known",
                    runtime = ": calls that start work, which is there as kernels and copies";
  const struct {
    D dialect;
    std::string category, why;
  } rows[] = {{D::pytorch, "cuda_runtime", "cuda_runtime" + runtime},
              {D::pytorch, "cuda_driver", "cuda_driver" + runtime},
              {D::pytorch, "overhead", "overhead: the profiler's own"},
              {D::pytorch, "Trace", "Trace: the profiler's own"},
              {D::pytorch, "python_function", "python_function: lines of the program, around the operators"},
              {D::pytorch, "GPU", "GPU" + unknown},
              {D::pytorch, "PROXY", "PROXY" + unknown},
              {D::pytorch, "a\nb", "a\\nb" + unknown},
              {D::pytorch, "", "no category" + unknown},
              {D::muonwalk, "cuda_runtime", "cuda_runtime" + unknown},
              {D::muonwalk, "overhead", "overhead" + unknown},
              {D::muonwalk, "python_function", "python_function" + unknown},
              {D::muonwalk, "COLL_API", "COLL_API" + unknown},
              {D::muonwalk, "", "no category" + unknown}};
  for (const auto& row : rows) {
    CAPTURE(row.category);
    CAPTURE(dialect_name(row.dialect));
    CHECK(why_left_out(row.dialect, row.category) == row.why);
  }
}

TEST_CASE("words: what names the optimizer, in each dialect, at the beginning of a name") {
  for (const auto& [name, pytorch, lesson] : {std::tuple{"Optimizer.step#Muon.step", true, false},
                                              {"Optimizer.step#", true, false},
                                              {"Optimizer.step", false, false},
                                              {"Optimizer.zero_grad#Muon", false, false},
                                              {"optimizer: gather", false, true},
                                              {"optimizer step 1", false, true},
                                              {"optimize", false, false},
                                              {"the optimizer", false, false},
                                              {"an Optimizer.step#", false, false},
                                              {"", false, false}}) {
    CAPTURE(name);
    CHECK(names_optimizer(TraceDialect::pytorch, name) == pytorch);
    CHECK(names_optimizer(TraceDialect::muonwalk, name) == lesson);
  }
}

TEST_CASE("words: only what begins with the library's name talks") {
  for (const char* computing : {"my_nccl", "gemm_gloo", "NCCL", "all_reduce", ""}) {
    CAPTURE(computing);
    CHECK((classify(TraceDialect::pytorch, "kernel", computing) == EventClass::computation));
  }
  for (const char* other : {"gloo", "a gloo:all_reduce", "nccl:all_reduce"}) {
    CAPTURE(other);
    CHECK((classify(TraceDialect::pytorch, "user_annotation", other) == EventClass::host_range));
    CHECK((classify(TraceDialect::pytorch, "cpu_op", other) == EventClass::host_operator));
  }
}

TEST_CASE("words: the same text has the same number, and is there when it was moved") {
  RawTrace table("a trace");
  CHECK(table.number("a") == 0);
  CHECK(table.number("") == 1);
  CHECK(table.number("a") == 0);
  for (int i = 0; i < 1000; ++i) CHECK(table.number("text " + std::to_string(i)) == 2 + i);
  const RawTrace moved = std::move(table);
  CHECK(moved.text(0) == "a");
  CHECK(moved.text(1001) == "text 999");
}

TEST_CASE("words: numbers that stand as texts, times of every form, and labels") {
  using Kind = JsonScalar::Kind;
  const auto scalar = [](Kind kind, const std::string& text, std::int64_t integer = 0) {
    JsonScalar value;
    value.kind = kind;
    value.text = &text;
    value.integer = integer;
    return std::make_tuple(value.as_integer(), value.as_label(), value.as_text(), value.microseconds_as_ns());
  };
  using Nothing = std::optional<std::int64_t>;
  CHECK(
      (scalar(Kind::text, "-12") == std::make_tuple(Nothing(-12), std::string("-12"), std::string("-12"), Nothing())));
  CHECK((scalar(Kind::integer, "", -12) ==
         std::make_tuple(Nothing(-12), std::string("-12"), std::string(), Nothing(-12000))));
  CHECK(
      (scalar(Kind::decimal, "1.25") == std::make_tuple(Nothing(), std::string("1.25"), std::string(), Nothing(1250))));
  CHECK((scalar(Kind::nothing, "7", 7) == std::make_tuple(Nothing(), std::string(), std::string(), Nothing())));
  for (const char* text : {"", " 4", "4 ", "4x", "+4", "4.0", "0x4", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(std::get<0>(scalar(Kind::text, text)).has_value());
  }
  const std::pair<const char*, std::int64_t> times[] = {{"5056285617232.305", 5056285617232305},
                                                        {"1759300074000000.001", 1759300074000000001},
                                                        {"0.0005", 1},
                                                        {"-0.0005", -1},
                                                        {"-0.00049", 0},
                                                        {"-7.0015", -7002},
                                                        {"0.9995", 1000},
                                                        {"12.", 12000},
                                                        {"3.1", 3100},
                                                        {"3.14", 3140},
                                                        {"3.14159265", 3142},
                                                        {"25e-1", 2500},
                                                        {"-1.5E3", -1500000},
                                                        {"4000000000000000.0", 4000000000000000000},
                                                        {"-4000000000000000.0", -4000000000000000000},
                                                        {"4e15", 4000000000000000000}};
  for (const auto& [digits, ns] : times) {
    CAPTURE(digits);
    CHECK(std::get<3>(scalar(Kind::decimal, digits)) == ns);
  }
  for (const char* digits :
       {"4000000000000001.0", "-4000000000000001.0", "4.1e15", "-1e16", "1e400", "99999999999999999999.5"}) {
    CAPTURE(digits);
    CHECK_FALSE(std::get<3>(scalar(Kind::decimal, digits)).has_value());
  }
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
      CHECK(bus_factor(collective, n) == near(factor));
    }
  }
}
