#pragma once

#include <string>
#include <vector>

namespace muonwalk::testing {

/// A trace in PyTorch's dialect, written by hand: one event per call, times in microseconds.
class TraceWriting {
 public:
  explicit TraceWriting(int rank = 0, int world_size = 1);

  /// A complete event. `args` is the inside of a JSON object, as it stands: "\"stream\": 7".
  TraceWriting& event(const std::string& category, const std::string& name, double begin, double duration,
                      const std::string& args = "");
  TraceWriting& kernel(const std::string& name, double begin, double duration, int stream = 7);
  /// A communication kernel: `elements` of `type` that come out of an all-gather or go into an all-reduce.
  TraceWriting& collective(const std::string& name, double begin, double duration, long elements,
                           const std::string& type, const std::string& ranks, int group_size);
  /// Anything between braces, as it stands.
  TraceWriting& raw(const std::string& event);

  std::string json() const;
  /// Writes it to a file; ".gz" at the end of the path compresses it. Returns the path.
  std::string write(const std::string& path) const;

 private:
  std::string head_;
  std::vector<std::string> events_;
};

/// A lesson's trace: two ranks, dp 2, each with a step, the phase "optimizer: update", a computation of 30 µs and an
/// all-gather of 8 float32 in which each sent 16 bytes: rank 0 waits 20 µs for rank 1.
std::string lesson_trace();

/// A hand-written trace with everything: copies, ranges, operators, several streams, a straggler's rank.
std::string rich_trace();

}  // namespace muonwalk::testing
