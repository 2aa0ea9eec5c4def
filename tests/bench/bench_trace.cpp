// How fast a trace is read, and with how much memory: a generated file of PyTorch's dialect, plain and gzip, read by
// muonwalk-trace as it is used. "bench_trace 1000" makes a file of 1000 MB instead of 300.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/io/temporary_folder.hpp"

namespace {

// An event as the profiler writes them, one of four kinds; with as many arguments as it has there.
std::string event(long i) {
  const double ts = 5002216834593.415 + 7.25 * static_cast<double>(i);
  switch (i % 4) {
    case 0:
      return fmt::format(
          R"({{"ph": "X", "cat": "cpu_op", "name": "aten::mm_{}", "pid": 3580, "tid": 3580, "ts": {:.3f}, "dur": 5.125, "args": )"
          R"({{"External id": {}, "Record function id": 0, "Ev Idx": {}}}}})",
          i % 64, ts, i, i);
    case 1:
      return fmt::format(
          R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 3580, "tid": 3580, "ts": {:.3f}, "dur": )"
          R"(2.004, "args": {{"External id": {}, "cbid": 211, "correlation": {}}}}})",
          ts, i, i);
    case 2:
      return fmt::format(
          R"({{"ph": "s", "id": {}, "pid": 3580, "tid": 3580, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g"}})", i, ts);
    default:
      return fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "void at::native::elementwise_kernel_{}<float, 4>", "pid": 0, "tid": 7, "ts": )"
          R"({:.3f}, "dur": 6.88, "args": {{"External id": {}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": )"
          R"({}, "registers per thread": 96, "shared memory": 89344, "blocks per SM": 0.041667, "warps per SM": 0.375, "grid": )"
          R"([2, 1, 1], "block": [288, 1, 1], "est. achieved occupancy %": 0}}}})",
          i % 200, ts, i, i);
  }
}

long write_trace(const std::string& path, long bytes, const char* mode) {
  gzFile file = gzopen(path.c_str(), mode);
  std::string text =
      "{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 1}, \"traceEvents\": [\n";
  long written = 0, i = 0;
  while (written + static_cast<long>(text.size()) < bytes) {
    text += event(i++) + ",\n";
    if (text.size() < (1u << 20)) continue;
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    written += static_cast<long>(text.size());
    text.clear();
  }
  text += event(i) + "]}\n";
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return written + static_cast<long>(text.size());
}

// Runs the program and says how long it took, and what it held in memory at most.
void measure(const std::string& path, const char* kind, long bytes) {
  const auto begin = std::chrono::steady_clock::now();
  std::fflush(nullptr);  // or the child would print it once more
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execl(MUONWALK_TRACE_PROGRAM, MUONWALK_TRACE_PROGRAM, "summary", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  struct rusage used = {};
  wait4(child, &status, 0, &used);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double processor = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  const double megabytes = static_cast<double>(bytes) / 1e6;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::exit(1);
  fmt::print("{:<6} {:7.0f} MB  {:6.2f} s ({:.2f} s of processor time)  {:6.0f} MB/s  peak memory {:6.0f} MB\n", kind,
             megabytes, seconds, processor, megabytes / seconds, static_cast<double>(used.ru_maxrss) / 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const long bytes = (argc > 1 ? std::atol(argv[1]) : 300) * 1'000'000;
  TemporaryFolder folder;
  for (const auto& [kind, mode] : {std::make_pair("plain", "wbT"), std::make_pair("gzip", "wb1")})
    measure(folder.file(kind), kind, write_trace(folder.file(kind), bytes, mode));
}
