#include "src/comm/call.hpp"

namespace muonwalk {

const char* collective_name(CollectiveKind kind) {
  constexpr const char* kNames[] = {"barrier",    "send",       "recv",      "all_gather", "reduce_scatter",
                                    "all_reduce", "all_to_all", "broadcast", "wait"};
  return kNames[static_cast<int>(kind)];
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
