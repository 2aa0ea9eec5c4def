#include "src/comm/call.hpp"

namespace muonwalk {

const char* collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::barrier:
      return "barrier";
    case CollectiveKind::send:
      return "send";
    case CollectiveKind::recv:
      return "recv";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::wait:
      return "wait";
  }
  return "unknown call";
}

std::string text(const Call& call) {
  std::string line = call.group + " " + collective_name(call.kind);
  if (call.kind != CollectiveKind::barrier && call.kind != CollectiveKind::wait) {
    line += std::string(" of ") + element_name(call.type) + ", " + std::to_string(call.elements_in) + " in, " +
            std::to_string(call.elements_out) + " out";
  }
  if (call.peer >= 0)
    line += (call.kind == CollectiveKind::broadcast ? ", root " : ", peer ") + std::to_string(call.peer);
  return line;
}

}  // namespace muonwalk
