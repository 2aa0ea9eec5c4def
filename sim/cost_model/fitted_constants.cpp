#include "sim/cost_model/fitted_constants.hpp"

namespace muonwalk::sim {

const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> all = {
      {"product efficiency", kProductEfficiency, "1",
       "share of the accelerator's peak that matrix products reach; it does not grow with the width of the model"},
      {"host seconds per layer", kHostSecondsPerLayer, "s",
       "forward and backward of one layer are not launched faster than this, however small they are"},
      {"node hop seconds", kNodeHopSeconds, "s",
       "latency per layer and hop of the ring of a TP group that leaves its node: about eight collectives of 60 µs"},
      {"pipeline rank seconds", kPipelineRankSeconds, "s",
       "what a layer takes longer to launch per TP rank in pipelines over several nodes: the software's slow path"},
      {"node link share", kNodeLinkShare, "1",
       "share of the links out of a node that the collectives of training reach, all GPUs of the node together"},
      {"group seconds per doubling", kGroupSecondsPerDoubling, "s",
       "what a collective over DP ranks waits, per doubling of the nodes: for its latency and for the slowest rank"},
      {"remap seconds per GiB", kRemapSecondsPerGibibyte, "s",
       "what a micro-batch loses per GiB beyond the card, with one stage or on one node: the allocator frees memory "
       "and maps it again"},
      {"usable share", kUsableShare, "1",
       "share of the card that counted memory can fill: the rest is context, NCCL's buffers and fragments"}};
  return all;
}

}  // namespace muonwalk::sim
