#pragma once

#include <cstdint>
#include <string>

namespace muonwalk::sim {

/// The collectives that traces name.
enum class Collective : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  recv,
  send_recv,
  barrier,
  other
};

/// "all_gather" and so on.
const char* collective_text(Collective collective);

/// The collective that a name speaks of: "_allgather_base", "allgather_into_tensor_coalesced", "gloo:all_gather" and
/// "ncclDevKernel_AllGather_RING_LL(…)" are all Collective::all_gather. Collective::other when it speaks of none.
Collective collective_of(const std::string& name);

/// What algorithm bandwidth is multiplied with to get bus bandwidth, so that it can be held against the speed of the
/// wire however many ranks there are: 2(n−1)/n for all_reduce, (n−1)/n for all_gather, reduce_scatter, all_to_all,
/// gather and scatter, else 1. From nccl-tests, doc/PERFORMANCE.md. 0 for barrier and other, which have no bandwidth.
double bus_factor(Collective collective, int ranks);

/// "float32" for PyTorch's "Float", "bfloat16" for "BFloat16"; a name that is not known stays as it is.
std::string element_type_text(const std::string& name);

/// Bytes of one element of the type, given as element_type_text writes it; 0 when it is not known.
int element_type_size(const std::string& text);

}  // namespace muonwalk::sim
