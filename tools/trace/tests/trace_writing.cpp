#include "tools/trace/tests/trace_writing.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <fstream>
#include <stdexcept>

namespace muonwalk::testing {

TraceWriting::TraceWriting(int rank, int world_size)
    : head_(fmt::format(R"("schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}})",
                        rank, world_size)) {}

TraceWriting& TraceWriting::event(const std::string& category, const std::string& name, double begin, double duration,
                                  const std::string& args) {
  return raw(fmt::format(
      R"("ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}})",
      category, name, begin, duration, args));
}

TraceWriting& TraceWriting::kernel(const std::string& name, double begin, double duration, int stream) {
  return raw(
      fmt::format(R"("ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                  R"("args": {{"stream": {}}})",
                  name, stream, begin, duration, stream));
}

TraceWriting& TraceWriting::collective(const std::string& name, double begin, double duration, long elements,
                                       const std::string& type, const std::string& ranks, int group_size) {
  const bool gather = name == "_allgather_base";
  return event("kernel", gather ? "ncclDevKernel_AllGather_RING_LL" : "ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin,
               duration,
               fmt::format(R"("Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "{}", )"
                           R"("Group size": {}, "Process Group Name": "1", "Process Group Ranks": "{}")",
                           name, gather ? elements / group_size : elements, elements, type, group_size, ranks));
}

TraceWriting& TraceWriting::raw(const std::string& event) {
  events_.push_back("{" + event + "}");
  return *this;
}

std::string TraceWriting::json() const {
  return fmt::format("{{{}, \"traceEvents\": [\n{}\n]}}\n", head_, fmt::join(events_, ",\n"));
}

std::string TraceWriting::write(const std::string& path) const {
  const std::string text = json();
  if (path.size() > 3 && path.substr(path.size() - 3) == ".gz") {
    gzFile file = gzopen(path.c_str(), "wb");
    const bool written = file != nullptr && gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0;
    if (file == nullptr || gzclose(file) != Z_OK || !written) throw std::runtime_error("can't write " + path);
  } else if (!(std::ofstream(path, std::ios::binary) << text)) {
    throw std::runtime_error("can't write " + path);
  }
  return path;
}

std::string lesson_trace() {
  std::vector<std::string> events;
  const auto add = [&](int rank, int thread, const char* category, const char* name, double begin, double duration,
                       const char* args) {
    events.push_back(
        fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":"{}","ts":{},"dur":{},"args":{{{}}}}})",
                    100 + rank, thread, category, name, begin, duration, args));
  };
  for (int rank = 0; rank < 2; ++rank) {
    events.push_back(
        fmt::format(R"json({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"rank {} (dp {})"}}}})json",
                    100 + rank, rank, rank));
    events.push_back(fmt::format(
        R"({{"ph":"M","pid":{},"tid":2,"name":"thread_name","args":{{"name":"communication"}}}})", 100 + rank));
    add(rank, 1, "step", "step 1", 0, 100, "");
    add(rank, 1, "phase", "optimizer: update", 50, 50, "");
    add(rank, 1, "computation", "product", 0, 30, "");
    add(rank, 2, "communication", "all_gather over dp", rank == 0 ? 40 : 60, rank == 0 ? 40 : 20,
        R"("collective":"all_gather","group":"dp","group_size":2,"group_ranks":"[0, 1]","type":"float32","elements":4,)"
        R"("bytes":16,"message_bytes":32,"algbw":1.0,"busbw":1.0)");
  }
  events.push_back(R"({"ph":"C","pid":100,"name":"bytes sent","ts":1,"args":{"bytes":16}})");
  return fmt::format(
      R"({{"traceEvents":[{}],"otherData":{{"muonwalk":{{"version":1,"name":"lesson_09_full_step","ranks":2}}}}}})",
      fmt::join(events, ","));
}

std::string rich_trace() {
  TraceWriting trace(1, 4);
  trace.event("user_annotation", "ProfilerStep#3", 0, 900).event("cpu_op", "c10d::allreduce_", 10, 5);
  trace.event("user_annotation", "Optimizer.step#Muon.step", 20, 30)
      .event("gpu_user_annotation", "Optimizer.step#Muon.step", 400, 300);
  for (int i = 0; i < 20; ++i) trace.kernel("gemm \\u00d7 \\\"quoted\\\"", 100 + 20 * i, 15.125, 7 + i % 3);
  trace.collective("allreduce", 150, 60, 1024, "Float", "[0, 1, 2, 3]", 4);
  trace.collective("_allgather_base", 500, 80, 4096, "BFloat16", "[0, 1]", 2);
  trace.event("gpu_memcpy", "Memcpy DtoD", 600, 3.5, "\"bytes\": 4096").event("cuda_runtime", "cudaLaunchKernel", 5, 2);
  trace.raw(R"("ph": "s", "id": 15, "pid": 0, "tid": 7, "ts": 5.5, "cat": "ac2g", "name": "ac2g")");
  return trace.json();
}

}  // namespace muonwalk::testing
