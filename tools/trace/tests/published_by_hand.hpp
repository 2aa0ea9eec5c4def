#pragma once

#include <string>

#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

namespace muonwalk::testing {

/// Four traces that stand in for the published ones: host, device and kernels all have other times in them.
/// @{
inline sim::TraceFile read_by_hand(const TraceWriting& trace) { return sim::read_trace_text("by hand", trace.json()); }

inline sim::TraceFile muon() {
  return read_by_hand(TraceWriting(0, 4)
                          .event("user_annotation", "ProfilerStep#1", 0, 200)
                          .event("user_annotation", "ProfilerStep#2", 200, 200)
                          .event("user_annotation", "Muon_Full_Training_Step", 0, 400)
                          .event("user_annotation", "FWD_BWD", 0, 90)
                          .event("user_annotation", "Muon_Step", 90, 4)
                          .event("user_annotation", "Optimizer.step#Muon.step", 91, 3)
                          .event("cpu_op", "c10d::_allgather_base_", 92, 1)
                          .event("gpu_user_annotation", "FWD_BWD", 100, 100)
                          .kernel("gemm", 110, 40)
                          .event("gpu_user_annotation", "Optimizer.step#Muon.step", 200, 300)
                          .event("gpu_user_annotation", "nccl:_all_gather_base", 249, 82)
                          .collective("_allgather_base", 250, 80, 8, "BFloat16", "[0, 1]", 2)
                          .kernel("gemm", 330, 170));
}

inline sim::TraceFile adamw() {
  TraceWriting trace(0, 4);
  for (int step = 0; step < 3; ++step)
    trace.event("user_annotation", "ProfilerStep#" + std::to_string(step), 100 * step, 100);
  return read_by_hand(trace.event("user_annotation", "AdamW_Full_Training_Step", 0, 250)
                          .event("user_annotation", "FWD_BWD", 0, 70)
                          .event("user_annotation", "AdamW_Step", 70, 5)
                          .event("gpu_user_annotation", "FWD_BWD", 0, 60)
                          .kernel("gemm", 0, 50)
                          .event("cpu_op", "c10d::allreduce_", 55, 2)
                          .event("gpu_user_annotation", "nccl:all_reduce", 60, 41)
                          .collective("allreduce", 60, 40, 8, "Float", "[0, 1]", 2)
                          .collective("allreduce", 110, 50, 8, "Float", "[0, 1]", 2)
                          .event("gpu_user_annotation", "Optimizer.step#AdamW.step", 160, 20)
                          .kernel("adam", 165, 15));
}

inline sim::TraceFile muon_async() {
  return read_by_hand(TraceWriting(0, 4)
                          .kernel("gemm", 0, 100)
                          .event("gpu_user_annotation", "nccl:_all_gather_base", 50, 120)
                          .collective("_allgather_base", 50, 120, 8, "BFloat16", "[0, 1]", 2)
                          .kernel("gemm", 170, 30));
}

inline sim::TraceFile adamw_async() {
  return read_by_hand(TraceWriting(0, 4)
                          .event("gpu_user_annotation", "nccl:all_reduce", 0, 46)
                          .collective("allreduce", 0, 45, 8, "Float", "[0, 1]", 2)
                          .kernel("gemm", 36, 64));
}
/// @}

}  // namespace muonwalk::testing
