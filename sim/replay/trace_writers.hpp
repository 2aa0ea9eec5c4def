#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sim/replay/run_trace.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

/// A Chrome trace that is being written: an object of some fields and, at its end, the array of events, one per line.
class TraceFileWriter {
 public:
  /// Takes the next piece of the file.
  using Sink = std::function<void(const std::string& piece)>;

  /// `fields` are what stands beside the events: `"key":value,"key":value`; `began_ns` is the time 0 of the trace.
  TraceFileWriter(Sink sink, const std::string& fields, std::int64_t began_ns = 0);

  /// One event, a JSON object.
  void event(const std::string& json);
  /// A complete event, [begin_ns, end_ns) on the clock of `began_ns`. `arguments` are what its "args" hold:
  /// `"key":value,"key":value`.
  void slice(int process, int thread, const char* category, const std::string& name, std::int64_t begin_ns,
             std::int64_t end_ns, const std::string& arguments = "");
  /// What a process is called, or a thread (`what` is "process" or "thread"), and its place among the others.
  void name(const char* what, int process, int thread, const std::string& text, int place);
  /// A moment on that clock, as events have it.
  std::string time(std::int64_t moment_ns) const;
  /// All events were written.
  void finish();

 private:
  Sink sink_;
  std::int64_t began_ns_;
  std::string unwritten_;
  bool first_ = true;
};

/// Nanoseconds as microseconds: "12.345".
std::string microseconds_text(std::int64_t ns);

/// The name in quotes, as JSON has it and a reader of the trace can see it (visible_name).
std::string quoted(const std::string& text);

/// Writes all ranks of a run into one Chrome trace, for chrome://tracing, Perfetto and muonwalk-trace.
/// tools/trace/README.md says which events it has; those of no duration are, besides names and the order of rows:
///   - an arrow for each message, from the moment in which the sender hands it over to the one in which the receiver's
///     exchange is done; only where both ends were recorded;
///   - counters: "bytes sent" since the start, after each call; "elements held" in matrices and flat buffers, at the
///     beginning and the end of whatever was recorded (what is held in between for a shorter time is not seen).
/// The file has yet to take its place. Throws UsageError as FileBeside does.
std::unique_ptr<FileBeside> write_chrome_trace(const std::string& path, const RunTrace& run);

/// What write_chrome_trace writes.
std::string chrome_trace_text(const RunTrace& run);

}  // namespace muonwalk::sim
