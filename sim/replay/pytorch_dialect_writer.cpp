#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/replay/trace_writers.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kComputationStream = 7;  // PyTorch's own numbers, with which readers are familiar
constexpr int kCommunicationStream = 20;
constexpr int kHostProcesses = 100000;  // the device of rank r is process r, its host another one

const char* pytorch_type_name(ElementType type) {
  return type == ElementType::float32 ? "Float" : type == ElementType::bfloat16 ? "BFloat16" : "Byte";
}

// "optimizer step 3" is what PyTorch's profiler calls ProfilerStep#3.
std::string annotation_name(const std::string& name, SpanKind kind) {
  const std::size_t number = name.find_last_not_of("0123456789") + 1;
  if (kind == SpanKind::step && is_optimizer_step(name) && number < name.size())
    return "ProfilerStep#" + name.substr(number);
  return kind == SpanKind::phase && name.rfind("optimizer", 0) == 0 ? "Optimizer.step#" + name : name;
}

struct Kernel : ComputationSlice {
  std::string arguments;
};

class PytorchWriter {
 public:
  PytorchWriter(const std::string& path, const RunTrace& run, int rank)
      : of_rank_(run.ranks[static_cast<std::size_t>(rank)]),
        rank_(rank),
        file_(path, fields_of(run, rank), run.began_ns) {}

  std::unique_ptr<FileBeside> write() {
    names();
    annotations();
    for (const ComputationSlice& slice : computation_of(of_rank_)) kernels_.push_back({slice, ""});
    stream(kComputationStream);
    for (const Span& span : of_rank_.spans)
      if (span.kind == SpanKind::call)
        kernels_.push_back(
            {{span.begin_ns, span.end_ns, std::string("gloo:") + collective_name(span.collective)}, arguments(span)});
    stream(kCommunicationStream);
    return file_.finish();
  }

 private:
  static std::string fields_of(const RunTrace& run, int rank) {
    std::string groups;
    int count = 0;
    for (const Group& group : run.ranks[static_cast<std::size_t>(rank)].groups) {
      if (group.size() == 0) continue;
      groups +=
          fmt::format(R"({}{{"pg_name":"{}","pg_desc":"{}","backend_config":"cpu:gloo","pg_size":{},"ranks":{}}})",
                      ++count == 1 ? "" : ",", group.name, group.name, group.size(), group_ranks_text(group));
    }
    return fmt::format(
        R"("schemaVersion":1,"deviceProperties":[],"displayTimeUnit":"ms",)"
        "\n"
        R"("distributedInfo":{{"backend":"gloo","rank":{},"world_size":{},"pg_count":{},"pg_config":[{}]}},)"
        "\n"
        R"("recorded_by":{{"name":{},"dropped_events":{}}})",
        rank, run.ranks.size(), count, groups, quoted(run.name), run.ranks[static_cast<std::size_t>(rank)].dropped);
  }

  void names() {
    const int host = kHostProcesses + rank_;
    file_.name("process", host, 0, of_rank_.label + ", what the program does", 0);
    file_.name("thread", host, 1, "steps and phases", 1);
    file_.name("process", rank_, 0, of_rank_.label + ", the processor as a device", 1);
    for (const auto& [stream, work] :
         {std::pair(kComputationStream, "computation"), std::pair(kCommunicationStream, "communication")})
      file_.name("thread", rank_, stream, fmt::format("stream {} {}", stream, work), stream);
  }

  void annotations() {
    for (const Span& span : of_rank_.spans)
      if (span.kind == SpanKind::step || span.kind == SpanKind::phase)
        file_.slice(kHostProcesses + rank_, 1, "user_annotation", name_of(span), span.begin_ns, span.end_ns);
  }

  std::string name_of(const Span& span) const {
    return annotation_name(of_rank_.names[static_cast<std::size_t>(span.name)], span.kind);
  }

  std::string arguments(const Span& call) const {
    const Group& group = of_rank_.groups[call.group];
    return fmt::format(R"("Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"Group size":{},"dtype":"{}",)"
                       R"("Process Group Name":"{}","Process Group Description":"{}","Process Group Ranks":"{}",)",
                       collective_name(call.collective), call.elements_in, call.elements_out, group.size(),
                       pytorch_type_name(call.type), group.name, group.name, group_ranks_text(group));
  }

  // Writes the kernels of a stream, and around them the ranges that they lie in.
  void stream(int number) {
    const std::string on = fmt::format(R"("device":{},"stream":{})", rank_, number);
    for (const Span& span : of_rank_.spans) {
      if (span.kind != SpanKind::step && span.kind != SpanKind::phase) continue;
      const auto begins_before = [](const Kernel& kernel, std::int64_t moment) { return kernel.begin_ns < moment; };
      const auto first = std::lower_bound(kernels_.begin(), kernels_.end(), span.begin_ns, begins_before);
      const auto after = std::lower_bound(first, kernels_.end(), span.end_ns, begins_before);
      if (first != after)
        file_.slice(rank_, number, "gpu_user_annotation", name_of(span), first->begin_ns, std::prev(after)->end_ns, on);
    }
    for (const Kernel& kernel : kernels_)
      file_.slice(rank_, number, "kernel", kernel.name, kernel.begin_ns, kernel.end_ns, kernel.arguments + on);
    kernels_.clear();
  }

  const RankTrace& of_rank_;
  int rank_;
  TraceFileWriter file_;
  std::vector<Kernel> kernels_;  // of the stream that is written next, in the order of time
};

}  // namespace

std::unique_ptr<FileBeside> write_pytorch_dialect(const std::string& path, const RunTrace& run, int rank) {
  return PytorchWriter(path, run, rank).write();
}

}  // namespace muonwalk::sim
