// What traces call collectives and element types, name by name.
#include "sim/replay/collective.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace muonwalk::sim;

TEST_CASE("collective: each has its text, which speaks of it; so do the names that libraries give it") {
  using C = Collective;
  const std::pair<C, const char*> texts[] = {{C::all_gather, "all_gather"},
                                             {C::reduce_scatter, "reduce_scatter"},
                                             {C::all_reduce, "all_reduce"},
                                             {C::all_to_all, "all_to_all"},
                                             {C::broadcast, "broadcast"},
                                             {C::reduce, "reduce"},
                                             {C::gather, "gather"},
                                             {C::scatter, "scatter"},
                                             {C::send, "send"},
                                             {C::recv, "recv"},
                                             {C::send_recv, "send_recv"},
                                             {C::barrier, "barrier"},
                                             {C::other, "other"}};
  for (const auto& [collective, text] : texts) {
    CAPTURE(text);
    CHECK(collective_text(collective) == std::string(text));
    CHECK(collective_of(text) == collective);
    CHECK(collective_of(std::string("gloo:") + text) == collective);
    CHECK(collective_of(std::string("nccl:_") + text + "_base") == collective);
  }
  const std::pair<const char*, C> names[] = {{"ncclDevKernel_Broadcast_RING_LL", C::broadcast},
                                             {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", C::reduce_scatter},
                                             {"ncclDevKernel_Reduce_Sum_f32", C::reduce},
                                             {"ncclDevKernel_SendRecv", C::send_recv},
                                             {"ncclAllToAll", C::all_to_all},
                                             {"c10d::barrier", C::barrier},
                                             {"c10d::scatter_", C::scatter},
                                             {"c10d::gather_", C::gather},
                                             {"isend", C::send},
                                             {"irecv", C::recv},
                                             {"receive", C::recv},
                                             {"RECEIVE any", C::recv},
                                             {"allreduce_coalesced", C::all_reduce},
                                             {"_all__gather_", C::all_gather},
                                             {"", C::other},
                                             {"wait", C::other},
                                             {"all", C::other}};
  for (const auto& [name, collective] : names) {
    CAPTURE(name);
    CHECK(collective_text(collective_of(name)) == std::string(collective_text(collective)));
  }
}

TEST_CASE("collective: no group is smaller than one rank") {
  for (const int ranks : {-3, 0, 1}) {
    CHECK(bus_factor(Collective::all_reduce, ranks) == 0);
    CHECK(bus_factor(Collective::send, ranks) == 1);
  }
}

TEST_CASE("element types: PyTorch's names, the names here, and the bytes of an element") {
  const struct {
    const char *pytorch, *text;
    int size;
  } types[] = {{"Float", "float32", 4},
               {"BFloat16", "bfloat16", 2},
               {"Half", "float16", 2},
               {"Double", "float64", 8},
               {"Float8_e4m3fn", "float8_e4m3fn", 1},
               {"Float8_e5m2", "float8_e5m2", 1},
               {"Byte", "uint8", 1},
               {"Char", "int8", 1},
               {"Short", "int16", 2},
               {"Int", "int32", 4},
               {"Long", "int64", 8},
               {"Bool", "bool", 1},
               {"ComplexFloat", "complex64", 8},
               {"bytes", "bytes", 1}};
  for (const auto& type : types) {
    CAPTURE(type.text);
    CHECK(element_type_text(type.pytorch) == type.text);
    CHECK(element_type_text(type.text) == type.text);  // it stays as it is
    CHECK(element_type_size(type.text) == type.size);
  }
  for (const char* unknown : {"float", "FLOAT", "Float ", ""}) {
    CHECK(element_type_text(unknown) == unknown);
    CHECK(element_type_size(unknown) == 0);
  }
}
