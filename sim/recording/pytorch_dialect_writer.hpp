#pragma once

#include <memory>

#include "sim/recording/run_trace.hpp"
#include "sim/recording/trace_file_writer.hpp"

namespace muonwalk::sim {

/// Writes one rank of a run as torch.profiler writes a rank, so that tools for such traces can read it, for example
/// HolisticTraceAnalysis. Those tools look at a device; here the processor stands in for it:
///   - "kernel" on stream 7: what the rank did by itself (computation_of), and on stream 20: its calls, which are named
///   as
///     PyTorch names collectives on a CPU, "gloo:all_gather", also where threads talk through memory;
///   - "user_annotation" on the host: steps of the optimizer as "ProfilerStep#3", other steps and phases by their
///   names; one
///     that begins with "optimizer" as "Optimizer.step#…";
///   - "gpu_user_annotation": the same names, on each stream from their first to their last kernel.
/// The file is finished but not yet committed, so that those of all ranks can take their places together. Throws
/// UsageError as FileBeside does.
std::unique_ptr<TraceFileWriter> write_pytorch_dialect(const std::string& path, const RunTrace& run, int rank);

}  // namespace muonwalk::sim
