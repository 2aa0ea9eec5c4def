#pragma once

namespace muonwalk::sim {

/// The two kinds of traces that muonwalk-trace reads. Both are Chrome traces: a JSON object with an array "traceEvents"
/// (or that array alone), plain or compressed with gzip. "ts" and "dur" are microseconds. Only complete events ("ph":
/// "X") have a duration and are counted; metadata ("M") gives names; flows (s, t, f), counters (C) and instants (i) are
/// for viewers. The order of events, and of the keys of an object, does not matter.
///
/// ── pytorch ── what torch.profiler writes, one rank a file; lessons write it with --trace-per-rank.
///
///   "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}      the rank, and of how many
///
///   cat                              name                      counts as
///   kernel                           nccl…, gloo…              communication
///   kernel                           any other                 computation
///   gpu_memcpy, gpu_memset                                     copy
///   gpu_user_annotation                                        device range: from its first to its last kernel
///   user_annotation                                            host range: what the program does
///   user_annotation, cpu_op          gloo:…                    host collective: it runs on the CPU
///   cpu_op                                                     host operator; computation without kernels
///   cuda_runtime, cuda_driver, overhead, python_function, …    left out: what they start is there itself
///
///   Arguments of a communication kernel, as PyTorch writes them: "stream" (an integer), "Collective name"
///   ("allreduce", "_allgather_base", …), "In msg nelems", "Out msg nelems", "dtype" ("Float", "BFloat16", …), "Group
///   size", "Process Group Name" and "Process Group Ranks" ("[0, 2]", a string). A step is a host range
///   "ProfilerStep#N", or else "Optimizer.step#…". The optimizer is what ranges named "Optimizer.step#…"
///   span, on the device and on the host.
///
/// ── muonwalk ── what a lesson writes with --trace: all ranks in one file, on one clock.
///
///   "otherData": {"muonwalk": {"version": 1, "name": "lesson_09_full_step", "ranks": 8,
///                              "parameters": [{"name": "w0", "rows": 96, "cols": 64}]}}
///     (or "muonwalk" beside "traceEvents".) It is what tells this dialect from the other; "parameters" are the
///     matrices that the run trained, and let a comparison see that two runs did not do the same work.
///
///   "backend" names the transport; "ok": false says that the check of the run failed; "dropped_events" [rank] counts
///   what the recording had no room for. (In PyTorch's dialect, lessons write that into "recorded_by".)
///
///   A process is a rank: metadata "process_name" with args {"name": "rank 3 (dp 1, tp 1)"}; "pid" may be any number.
///   Two threads in each, by metadata "thread_name": "computation" and "communication".
///
///   cat             on thread        counts as
///   step            computation      a step of the optimizer: what a figure "per step" divides by
///   phase           computation      a part of a step, for the reader's eye; the optimizer, where the name begins with
///                                    "optimizer"
///   computation     computation      computation; no waiting for another rank, which would then look overlapped
///   communication   communication    communication: one collective, from the rank's call until it returns
///
///   Slices of a thread nest: computation in phases in steps. Arguments of a communication event:
///     "collective"     "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "send", "recv",
///                      "barrier"
///     "group"          "dp", "tp", "pp", "world"
///     "group_size"     ranks in it
///     "group_ranks"    "[0, 2]": a string, as PyTorch has it; calls of the same group are set side by side by it
///     "type"           "float32", "bfloat16", "bytes"
///     "elements"       elements that this rank handed to the transport in the call: the ledger's bytes in elements
///     "bytes"          bytes that this rank handed to the transport in the call: the ledger's figure
///     "message_bytes"  the size that bandwidths are made from, as nccl-tests count it: of all_gather the gathered
///                      whole, of reduce_scatter and all_to_all all that goes in, otherwise the buffer
///     "algbw", "busbw" in GB/s, for the reader's eye: the analyser computes its own
enum class TraceDialect { pytorch, muonwalk };

/// "pytorch", "muonwalk".
const char* dialect_name(TraceDialect dialect);

}  // namespace muonwalk::sim
