#include "src/optim/full_step.hpp"

namespace muonwalk {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::reduce_gradients:
      return "reduce-scatter of gradients";
    case Phase::momentum:
      return "momentum";
    case Phase::dp_gather:
      return "DP gather";
    case Phase::tp_gather:
      return "TP gather";
    case Phase::orthogonalize:
      return "Newton–Schulz";
    case Phase::tp_shard:
      return "TP shard";
    case Phase::dp_shard:
      return "DP shard";
    case Phase::apply:
      return "apply";
    case Phase::gather_weights:
      return "all-gather of weights";
  }
  return "unknown phase";
}

}  // namespace muonwalk
