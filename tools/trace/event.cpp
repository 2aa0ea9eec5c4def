#include "tools/trace/event.hpp"

#include <fmt/format.h>

#include <array>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

EventClass classify_pytorch(const std::string& category, const std::string& name) {
  if (category == "kernel")
    return begins_with(name, "nccl") || begins_with(name, "gloo") ? EventClass::communication : EventClass::computation;
  if (category == "gpu_memcpy" || category == "gpu_memset") return EventClass::copy;
  if (category == "gpu_user_annotation") return EventClass::device_range;
  if (category == "user_annotation")
    return begins_with(name, "gloo:") ? EventClass::host_collective : EventClass::host_range;
  if (category == "cpu_op") return begins_with(name, "gloo:") ? EventClass::host_collective : EventClass::host_operator;
  return EventClass::other;
}

}  // namespace

const char* dialect_name(TraceDialect dialect) {
  constexpr std::array<const char*, 2> kNames = {"pytorch", "muonwalk"};
  return kNames[static_cast<std::size_t>(dialect)];
}

const char* event_class_name(EventClass event_class) {
  constexpr std::array<const char*, kEventClasses> kNames = {
      "computation",   "communication", "copy", "device range", "host collective",
      "host operator", "host range",    "step", "transfer",     "other"};
  return kNames[static_cast<std::size_t>(event_class)];
}

EventClass classify(TraceDialect dialect, const std::string& category, const std::string& name) {
  if (dialect == TraceDialect::pytorch) return classify_pytorch(category, name);
  for (const EventClass each :
       {EventClass::computation, EventClass::communication, EventClass::step, EventClass::transfer})
    if (category == event_class_name(each)) return each;
  return category == "phase" ? EventClass::host_range : EventClass::other;
}

std::string why_left_out(TraceDialect dialect, const std::string& category) {
  if (dialect == TraceDialect::pytorch) {
    if (category == "cuda_runtime" || category == "cuda_driver")
      return fmt::format("{}: calls that start work, which is there as kernels and copies", category);
    if (category == "overhead" || category == "Trace") return fmt::format("{}: the profiler's own", category);
    if (category == "python_function") return "python_function: lines of the program, around the operators";
  }
  return category.empty() ? "no category: no class of events that is known"
                          : fmt::format("{}: no class of events that is known", visible_name(category));
}

bool names_optimizer(TraceDialect dialect, const std::string& name) {
  return begins_with(name, dialect == TraceDialect::pytorch ? "Optimizer.step#" : "optimizer");
}

}  // namespace muonwalk::sim
