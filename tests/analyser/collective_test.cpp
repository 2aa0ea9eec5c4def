#include "sim/recording/collective.hpp"

#include <doctest/doctest.h>

using namespace muonwalk::sim;

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

TEST_CASE("collective: bus factors are those of nccl-tests") {
  CHECK(bus_factor(Collective::all_reduce, 4) == doctest::Approx(1.5));
  CHECK(bus_factor(Collective::all_gather, 4) == doctest::Approx(0.75));
  CHECK(bus_factor(Collective::reduce_scatter, 8) == doctest::Approx(0.875));
  CHECK(bus_factor(Collective::all_to_all, 2) == doctest::Approx(0.5));
  CHECK(bus_factor(Collective::broadcast, 8) == doctest::Approx(1));
  CHECK(bus_factor(Collective::all_reduce, 1) == doctest::Approx(0));
  CHECK(bus_factor(Collective::barrier, 8) == doctest::Approx(0));
}

TEST_CASE("collective: element types of PyTorch and of lessons have a size, others none") {
  CHECK(element_type_text("BFloat16") == "bfloat16");
  CHECK(element_type_size("bfloat16") == 2);
  CHECK(element_type_size(element_type_text("Float")) == 4);
  CHECK(element_type_size(element_type_text("bytes")) == 1);
  CHECK(element_type_text("Quaternion") == "Quaternion");
  CHECK(element_type_size("Quaternion") == 0);
}
